// The roofline of a benchmark (Williams, Waterman, Patterson 2009): a test can be no faster than the memory brings bytes
// times what it does with each, and no faster than the arithmetic.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/bench_report.h"
#include "core/markup.h"

namespace liuli::cli {
namespace {

constexpr double kWidth = 760, kHeight = 470, kLeft = 70, kRight = 200, kTop = 50, kBottom = 50;

// One axis: powers of ten between the ends that hold everything shown.
struct LogAxis {
  double low, high;   ///< log10
  double begin, end;  ///< pixels
  double at(double value) const { return begin + (std::log10(value) - low) / (high - low) * (end - begin); }
};

LogAxis axis_of(const std::vector<double>& values, double begin, double end) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {std::floor(std::log10(*least)), std::ceil(std::log10(*most) + 0.05), begin, end};
}

std::string power_text(int power) {
  static const char* const units[] = {"", "k", "M", "G", "T", "P"};
  if (power < 0 || power > 17) return fmt::format("1e{}", power);
  return fmt::format("{}{}", power % 3 == 0 ? 1 : power % 3 == 1 ? 10 : 100, units[power / 3]);
}

class Roofline {
 public:
  explicit Roofline(const BenchReport& report) : report_(report) {
    const double stream = report.limits.read_bytes_per_second;
    std::vector<double> x = {0.5, 1000}, y;
    for (const BenchResult& result : report.results) {
      x.push_back(result.work.ops / result.work.bytes);
      y.push_back(ops_per_second(result));
    }
    for (const ArithmeticPeak& peak : report.limits.peaks) {
      x.push_back(2 * peak.ops_per_second / stream);
      y.push_back(peak.ops_per_second);
    }
    x_ = axis_of(x, kLeft, kWidth - kRight);
    y_ = axis_of(y, kHeight - kBottom, kTop);
  }

  std::string draw() {
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
        "{0:.0f} {1:.0f}\" "
        "font-family=\"sans-serif\" font-size=\"11\" fill=\"#222\">\n<rect width=\"100%\" height=\"100%\" "
        "fill=\"#fff\"/>\n",
        kWidth, kHeight);
    text(kLeft, 22, report_.name + ", " + report_.isa + fmt::format(", {} threads", report_.threads), "start",
         14);
    grid();
    roofs();
    points();
    return out_ + "</svg>\n";
  }

 private:
  void text(double x, double y, const std::string& words, const char* anchor, int size = 11) {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\">{}</text>\n", x,
                        y, anchor, size, escaped(words));
  }
  void line(double x1, double y1, double x2, double y2, const char* style) {
    out_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2,
                        y2, style);
  }

  void grid() {
    constexpr const char* kStyle = "stroke=\"#ddd\"";
    for (int p = static_cast<int>(x_.low); p <= static_cast<int>(x_.high); p++) {
      const double x = x_.at(std::pow(10, p));
      line(x, y_.begin, x, y_.end, kStyle);
      text(x, y_.begin + 16, p < 0 ? fmt::format("{:g}", std::pow(10, p)) : power_text(p), "middle");
    }
    for (int p = static_cast<int>(y_.low); p <= static_cast<int>(y_.high); p++) {
      const double y = y_.at(std::pow(10, p));
      line(x_.begin, y, x_.end, y, kStyle);
      text(x_.begin - 6, y + 4, power_text(p), "end");
    }
    text((x_.begin + x_.end) / 2, kHeight - 12, "operations per byte read", "middle");
    text(8, kTop - 12, "operations/s", "start");
  }

  // Every peak from where the memory can feed it; the slope up to the highest one.
  void roofs() {
    const double stream = report_.limits.read_bytes_per_second;
    double highest = 0;
    for (const ArithmeticPeak& peak : report_.limits.peaks) {
      highest = std::max(highest, peak.ops_per_second);
      const double y = y_.at(peak.ops_per_second);
      line(x_.at(peak.ops_per_second / stream), y, x_.end, y, "stroke=\"#06c\" stroke-width=\"1.5\"");
      text(x_.end + 6, y + 4, fmt::format("{} ({})", peak.name, peak.isa), "start");
    }
    const double low = std::max(std::pow(10, x_.low), std::pow(10, y_.low) / stream);
    line(x_.at(low), y_.at(low * stream), x_.at(highest / stream), y_.at(highest),
         "stroke=\"#c60\" stroke-width=\"1.5\"");
    text(x_.at(low) + 14, y_.at(low * stream) - 4, fmt::format("memory {:.1f} GB/s", stream / 1e9), "start");
  }

  void points() {
    for (const BenchResult& result : report_.results) {
      const double x = x_.at(result.work.ops / result.work.bytes), y = y_.at(ops_per_second(result));
      out_ += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"#b00\"><title>{}: {:.1f} tokens/s</title>"
          "</circle>\n",
          x, y, label_of(result.bench_case), spread_of(result.rates).median);
      const bool at_the_end = x > (x_.begin + 2 * x_.end) / 3;
      text(at_the_end ? x - 7 : x + 7, y + 4, label_of(result.bench_case), at_the_end ? "end" : "start", 10);
    }
  }

  const BenchReport& report_;
  LogAxis x_{}, y_{};
  std::string out_;
};

}  // namespace

std::string bench_roofline(const BenchReport& report) { return Roofline(report).draw(); }

}  // namespace liuli::cli
