#include "train/lab/plot.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/markup.h"
#include "train/lab/experiments.h"

namespace liuli::lab {
namespace {

// One axis: from values to 0 … 1.
struct Axis {
  bool log = false;
  double low = INFINITY, high = -INFINITY;

  bool shows(double v) const { return std::isfinite(v) && (!log || v > 0); }
  double place(double v) const { return log ? std::log10(v) : v; }
  void include(double v) {
    if (!shows(v)) return;
    low = std::min(low, place(v));
    high = std::max(high, place(v));
  }
  void settle() {
    if (low > high) low = 0, high = 1;
    if (low == high) low -= 0.5, high += 0.5;
  }
  double at(double v) const { return (place(v) - low) / (high - low); }
  double value(double at01) const {
    const double v = low + (high - low) * at01;
    return log ? std::pow(10.0, v) : v;
  }
};

struct Axes {
  Axis x, y;
  explicit Axes(const LabPlot& plot) {
    x.log = plot.log_x;
    y.log = plot.log_y;
    for (const LabSeries& s : plot.series)
      for (size_t i = 0; i < s.x.size(); i++) {
        if (!x.shows(s.x[i]) || !y.shows(s.y[i])) continue;
        x.include(s.x[i]);
        y.include(s.y[i]);
      }
    x.settle();
    y.settle();
  }
  bool shows(const LabSeries& s, size_t i) const { return x.shows(s.x[i]) && y.shows(s.y[i]); }
};

constexpr int kHeight = 14;
constexpr double kLeft = 64, kRight = 624, kTop = 30, kBottom = 300;

std::string svg_axes(const Axes& axes, const LabPlot& plot, Language language) {
  std::string svg;
  constexpr int kTicks = 4;
  for (int i = 0; i <= kTicks; i++) {
    const double t = static_cast<double>(i) / kTicks, x = kLeft + (kRight - kLeft) * t,
                 y = kBottom - (kBottom - kTop) * t;
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text x=\"{3}\" "
        "y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>",
        kLeft, kRight, y, kLeft - 6, y + 4, number(axes.y.value(t), 3));
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", x, kBottom + 16,
                       number(axes.x.value(t), 3));
  }
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", kRight, kBottom + 32,
                     escaped(plot.x_label.in(language)));
  svg += fmt::format("<text x=\"4\" y=\"11\">{}</text>", escaped(plot.y_label.in(language)));
  return svg;
}

std::string svg_series(const Axes& axes, const LabSeries& s, size_t colour, Language language) {
  std::string points, dots;
  for (size_t i = 0; i < s.x.size(); i++) {
    if (!axes.shows(s, i)) continue;
    const double x = kLeft + (kRight - kLeft) * axes.x.at(s.x[i]),
                 y = kBottom - (kBottom - kTop) * axes.y.at(s.y[i]);
    points += fmt::format("{:.1f},{:.1f} ", x, y);
    dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"><title>{}: {}, {}</title></circle>", x,
                        y, escaped(s.label.in(language)), number(s.x[i]), number(s.y[i]));
  }
  return fmt::format("<g class=\"s{}\"><polyline points=\"{}\"/>{}</g>", colour % 8, points, dots);
}

std::string svg_legend(const LabPlot& plot, Language language) {
  std::string svg;
  double x = kLeft, y = kBottom + 50;
  for (size_t i = 0; i < plot.series.size(); i++) {
    const std::string& label = plot.series[i].label.in(language);
    const double wide = 34 + 7.5 * static_cast<double>(label.size());
    if (x + wide > kRight && x > kLeft) x = kLeft, y += 18;
    svg += fmt::format(
        "<g class=\"s{}\"><circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/></g><text x=\"{:.1f}\" "
        "y=\"{:.1f}\">{}</text>",
        i % 8, x + 4, y - 4, x + 12, y, escaped(label));
    x += wide;
  }
  return svg;
}

}  // namespace

std::string text_plot(const LabPlot& plot, Language language, int width) {
  const Axes axes(plot);
  const int columns = std::clamp(width - 14, 30, 90);
  std::vector<std::string> grid(kHeight, std::string(static_cast<size_t>(columns), ' '));
  for (size_t s = 0; s < plot.series.size(); s++)
    for (size_t i = 0; i < plot.series[s].x.size(); i++) {
      const LabSeries& series = plot.series[s];
      if (!axes.shows(series, i)) continue;
      const auto column = static_cast<size_t>(std::lround(axes.x.at(series.x[i]) * (columns - 1)));
      const auto row = static_cast<size_t>(std::lround((1 - axes.y.at(series.y[i])) * (kHeight - 1)));
      grid[row][column] = static_cast<char>('a' + s);
    }
  std::string out = fmt::format("{}  ({}{})\n", plot.title.in(language), plot.y_label.in(language),
                                plot.log_y ? ", log" : "");
  for (int row = 0; row < kHeight; row++) {
    const bool labelled = row == 0 || row == kHeight - 1 || row == kHeight / 2;
    const std::string label = labelled ? number(axes.y.value(1 - row / (kHeight - 1.0)), 3) : "";
    out += fmt::format("{:>10} |{}\n", label, grid[static_cast<size_t>(row)]);
  }
  const std::string low = number(axes.x.value(0), 3), high = number(axes.x.value(1), 3);
  out += fmt::format("{:>10} +{:-<{}}\n{:>12}{}{:>{}}  {}{}\n", "", "", columns, "", low, high,
                     std::max(1, columns - static_cast<int>(low.size())), plot.x_label.in(language),
                     plot.log_x ? ", log" : "");
  for (size_t s = 0; s < plot.series.size(); s++)
    out += fmt::format("{:>12}{} {}\n", "", static_cast<char>('a' + s), plot.series[s].label.in(language));
  return out;
}

std::string svg_plot(const LabPlot& plot, Language language) {
  const Axes axes(plot);
  std::string svg = fmt::format("<svg viewBox=\"0 0 640 392\" role=\"img\" aria-label=\"{}\">",
                                escaped(plot.title.in(language)));
  svg += svg_axes(axes, plot, language);
  for (size_t i = 0; i < plot.series.size(); i++) svg += svg_series(axes, plot.series[i], i, language);
  return svg + svg_legend(plot, language) + "</svg>";
}

}  // namespace liuli::lab
