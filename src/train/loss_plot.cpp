#include "train/loss_plot.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/markup.h"

namespace liuli {
namespace {

constexpr double kWidth = 760, kHeight = 380, kLeft = 58, kRight = 130, kTop = 40, kBottom = 44;
constexpr size_t kMostPoints = 1500;  // a line of more adds bytes and nothing to see

struct Frame {
  double last_step = 1, low = 0, high = 1;

  double x(double step) const { return kLeft + step / last_step * (kWidth - kLeft - kRight); }
  double y(double loss) const {
    return kTop + (high - std::min(loss, high)) / (high - low) * (kHeight - kTop - kBottom);
  }
};

// 1, 2 or 5 times a power of ten: about `n` marks in the range.
double mark_distance(double range, int n) {
  const double raw = range / n, power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power) return factor * power;
  return 10 * power;
}

Frame frame_of(const RunCurves& curves) {
  Frame f;
  f.low = INFINITY;
  f.high = -INFINITY;
  for (const auto* points : {&curves.training, &curves.held_out})
    for (const CurvePoint& p : *points) {
      if (!std::isfinite(p.loss)) continue;
      f.low = std::min(f.low, p.loss);
      f.high = std::max(f.high, p.loss);
      f.last_step = std::max(f.last_step, static_cast<double>(p.step));
    }
  if (!(f.low < f.high))
    f = {f.last_step, std::isfinite(f.low) ? f.low - 1 : 0, std::isfinite(f.high) ? f.high + 1 : 1};
  const double margin = 0.04 * (f.high - f.low);
  f.low -= margin;
  f.high += margin;
  return f;
}

std::string polyline(const Frame& f, const std::vector<CurvePoint>& points, const char* style) {
  std::string path;
  const size_t stride = points.size() / kMostPoints + 1;
  for (size_t i = 0; i < points.size(); i += stride) {
    if (!std::isfinite(points[i].loss)) continue;
    path += fmt::format("{:.1f},{:.1f} ", f.x(static_cast<double>(points[i].step)), f.y(points[i].loss));
  }
  return fmt::format("<polyline fill=\"none\" {} points=\"{}\"/>\n", style, path);
}

std::string axes(const Frame& f) {
  std::string out;
  const double dy = mark_distance(f.high - f.low, 6), dx = mark_distance(f.last_step, 6);
  for (double v = std::ceil(f.low / dy) * dy; v <= f.high; v += dy)
    out += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" class=\"grid\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.{6}f}</text>\n",
        kLeft, kWidth - kRight, f.y(v), kLeft - 8, f.y(v) + 4, v, dy < 0.1 ? 2 : 1);
  for (double v = 0; v <= f.last_step; v += dx)
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.0f}</text>\n", f.x(v),
                       kHeight - kBottom + 18, v);
  out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">step</text>\n",
                     (kLeft + kWidth - kRight) / 2, kHeight - 8);
  return out;
}

std::string label(const Frame& f, const std::vector<CurvePoint>& points, const char* name, const char* colour,
                  double shift = 0) {
  if (points.empty()) return "";
  const CurvePoint& last = points.back();
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" style=\"fill:{}\">{} {:.3f}</text>\n",
                     f.x(static_cast<double>(last.step)) + 6, f.y(last.loss) + 4 + shift, colour, name,
                     last.loss);
}

// Two labels at one height would cover each other: how far the second moves.
double label_shift(const Frame& f, const std::vector<CurvePoint>& first,
                   const std::vector<CurvePoint>& second) {
  constexpr double kLine = 16;
  if (first.empty() || second.empty()) return 0;
  const double distance = f.y(second.back().loss) - f.y(first.back().loss);
  if (std::fabs(distance) >= kLine) return 0;
  return distance < 0 ? -kLine - distance : kLine - distance;
}

}  // namespace

std::vector<CurvePoint> smoothed(const std::vector<CurvePoint>& points) {
  constexpr double kKeep = 0.98;
  std::vector<CurvePoint> out;
  double sum = 0, weight = 0;
  for (const CurvePoint& p : points) {
    sum = kKeep * sum + (1 - kKeep) * p.loss;
    weight = kKeep * weight + (1 - kKeep);
    out.push_back({p.step, sum / weight});
  }
  return out;
}

std::string loss_svg(const RunCurves& curves, const std::string& title) {
  const Frame f = frame_of(curves);
  const std::vector<CurvePoint> line = smoothed(curves.training);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\">\n"
      "<style>text{{font:13px sans-serif;fill:#444}}.grid{{stroke:#ddd}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
      "<text x=\"{2}\" y=\"22\" style=\"font-weight:bold\">{3}</text>\n",
      kWidth, kHeight, kLeft, escaped(title));
  svg += axes(f);
  svg += polyline(f, curves.training, "stroke=\"#2a9d8f\" stroke-opacity=\"0.25\"");
  svg += polyline(f, line, "stroke=\"#2a9d8f\" stroke-width=\"2\"");
  svg += polyline(f, curves.held_out, "stroke=\"#c1440e\" stroke-width=\"2\"");
  svg += label(f, line, "training", "#2a9d8f");
  svg += label(f, curves.held_out, "held out", "#c1440e", label_shift(f, line, curves.held_out));
  return svg + "</svg>\n";
}

std::string sparkline(const std::vector<CurvePoint>& points, int width) {
  static constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const size_t n = points.size(), groups = std::min(n, static_cast<size_t>(width));
  std::vector<double> means;
  for (size_t g = 0; g < groups; g++) {
    double sum = 0;
    const size_t begin = n * g / groups, end = n * (g + 1) / groups;
    for (size_t i = begin; i < end; i++) sum += points[i].loss;
    means.push_back(sum / static_cast<double>(end - begin));
  }
  if (means.empty()) return "";
  const auto [low, high] = std::minmax_element(means.begin(), means.end());
  std::string line;
  for (const double m : means) {
    const double part = *high > *low ? (m - *low) / (*high - *low) : 0;
    line += kBars[std::isfinite(part) ? static_cast<size_t>(part * 7.999) : 0];
  }
  return line;
}

}  // namespace liuli
