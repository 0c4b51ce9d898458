#include "trace/explain_plot.h"

#include <algorithm>
#include <cmath>

#include "core/markup.h"

namespace liuli::worked {
namespace {

constexpr int kBarWidth = 50;
constexpr size_t kMaxBars = 24;
constexpr double kLogFrom = 1e4;  // above this ratio a linear picture shows only its last bars

struct Range {
  double low = 0, high = 0;  // finite |x| (bars); low > 0
  bool logarithmic() const { return low > 0 && high / low > kLogFrom; }
};

Range range_of_sizes(std::span<const double> x) {
  Range r;
  for (double v : x) {
    const double size = std::fabs(v);
    if (!std::isfinite(size) || size == 0) continue;
    r.low = r.low == 0 ? size : std::min(r.low, size);
    r.high = std::max(r.high, size);
  }
  return r;
}

int bar_length(double x, const Range& range) {
  const double size = std::fabs(x);
  if (std::isinf(size)) return kBarWidth;
  if (range.high == 0) return 0;
  const double share =
      range.logarithmic() ? std::log10(1 + size) / std::log10(1 + range.high) : size / range.high;
  return static_cast<int>(std::lround(share * kBarWidth));
}

std::vector<size_t> spread(size_t n) {
  std::vector<size_t> at;
  const size_t shown = std::min(n, kMaxBars);
  for (size_t i = 0; i < shown; ++i) at.push_back(shown == 1 ? 0 : i * (n - 1) / (shown - 1));
  return at;
}

// Maps steps and values to the drawing area; y grows downwards.
struct Axes {
  static constexpr double kLeft = 70, kRight = 610, kTop = 50, kBottom = 310;
  double low, high;
  size_t steps;
  double x(size_t n) const {
    return kLeft + (kRight - kLeft) * double(n) / double(std::max<size_t>(steps, 1));
  }
  double y(double value) const {
    // Halves first: high − low of two large numbers may overflow.
    const double span = high / 2 - low / 2;
    return span == 0 ? kBottom : kBottom - (kBottom - kTop) * ((value / 2 - low / 2) / span);
  }
};

Axes axes_of(std::span<const double> x) {
  Axes axes{0, 0, x.size() - 1};  // 0 is always on the axis: the eye should not be given a false start
  for (double v : x) {
    if (!std::isfinite(v)) continue;
    axes.low = std::min(axes.low, v);
    axes.high = std::max(axes.high, v);
  }
  return axes;
}

std::string label(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(text));
}

}  // namespace

std::string bar_plot(std::span<const double> x, const Writer& writer) {
  const Range range = range_of_sizes(x);
  const size_t index_width = std::to_string(x.size() - 1).size();
  std::string plot = writer.text(range.logarithmic() ? Text::plot_logarithmic : Text::plot_linear) + "\n";
  for (size_t n : spread(x.size())) {
    std::string bar;
    for (int i = bar_length(x[n], range); i > 0; --i) bar += "█";
    plot += fmt::format("{:>{}} │{} {}\n", n, index_width, bar, writer.quoted(x[n]));
  }
  return plot;
}

std::string curve_svg(std::span<const double> x, const std::string& title, const Writer& writer) {
  const Axes axes = axes_of(x);
  std::string points, dots;
  for (size_t n = 0; n < x.size(); ++n) {
    if (!std::isfinite(x[n])) continue;
    points += fmt::format("{:.2f},{:.2f} ", axes.x(n), axes.y(x[n]));
    if (x.size() <= kMaxBars) {
      dots += fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"3\"/>\n", axes.x(n), axes.y(x[n]));
    }
  }
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 360\" font-family=\"sans-serif\" "
      "font-size=\"13\" "
      "fill=\"currentColor\">\n";
  svg += label(320, 28, "middle", title);
  svg += fmt::format("<path d=\"M{0} {1}V{2}H{3}\" fill=\"none\" stroke=\"currentColor\"/>\n", Axes::kLeft,
                     Axes::kTop, Axes::kBottom, Axes::kRight);
  svg += label(Axes::kLeft - 6, axes.y(axes.high) + 4, "end", worked::number(axes.high, 2).text);
  svg += label(Axes::kLeft - 6, axes.y(axes.low) + 4, "end", worked::number(axes.low, 2).text);
  svg += label(Axes::kLeft, Axes::kBottom + 20, "middle", "0");
  svg += label(Axes::kRight, Axes::kBottom + 20, "middle", std::to_string(axes.steps));
  svg += label(340, Axes::kBottom + 38, "middle", writer.text(Text::plot_step_axis));
  svg += fmt::format(
      "<g fill=\"#c0392b\">\n<polyline points=\"{}\" fill=\"none\" stroke=\"#c0392b\" "
      "stroke-width=\"2\"/>\n{}</g>\n</svg>\n",
      points, dots);
  return svg;
}

}  // namespace liuli::worked
