#include "report/plot_scale.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "liuli/error.h"

namespace liuli {
namespace {

// viridis (Smith, van der Walt 2015) at ninths; ColorBrewer's RdBu, blue first.
constexpr std::array<Colour, 9> kSequential = {{{68, 1, 84},
                                                {71, 44, 122},
                                                {59, 81, 139},
                                                {44, 113, 142},
                                                {33, 144, 141},
                                                {39, 173, 129},
                                                {92, 200, 99},
                                                {170, 220, 50},
                                                {253, 231, 37}}};
constexpr std::array<Colour, 9> kDiverging = {{{33, 102, 172},
                                               {67, 147, 195},
                                               {146, 197, 222},
                                               {209, 229, 240},
                                               {247, 247, 247},
                                               {253, 219, 199},
                                               {244, 165, 130},
                                               {214, 96, 77},
                                               {178, 24, 43}}};

std::vector<float> finite_values(const Heatmap& map) {
  std::vector<float> values;
  for (const float v : map.values)
    if (std::isfinite(v)) values.push_back(v);
  std::sort(values.begin(), values.end());
  return values;
}

double quantile(const std::vector<float>& sorted, double q) {
  return static_cast<double>(sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1))]);
}

// The smallest and largest value that are no outliers. A range that shrinks to less than a third only is worth it.
std::pair<double, double> range_without_outliers(const std::vector<float>& sorted) {
  const double low = static_cast<double>(sorted.front()), high = static_cast<double>(sorted.back()),
               median = quantile(sorted, 0.5), reach = 10 * (quantile(sorted, 0.75) - quantile(sorted, 0.25));
  if (reach <= 0) return {low, high};
  double inner_low = high, inner_high = low;
  for (const float value : sorted) {
    const auto v = static_cast<double>(value);
    if (std::fabs(v - median) > reach) continue;
    inner_low = std::min(inner_low, v);
    inner_high = std::max(inner_high, v);
  }
  return 3 * (inner_high - inner_low) < high - low ? std::pair{inner_low, inner_high} : std::pair{low, high};
}

}  // namespace

HeatmapRange heatmap_range(const Heatmap& map) {
  HeatmapRange range;
  if (const std::vector<float> sorted = finite_values(map); !sorted.empty())
    std::tie(range.low, range.high) = range_without_outliers(sorted);
  if (map.scale == ColourScale::diverging) {
    range.high = std::max(std::fabs(range.low), std::fabs(range.high));
    range.low = -range.high;
  }
  if (!std::isnan(map.low)) range.low = map.low;
  if (!std::isnan(map.high)) range.high = map.high;
  if (range.high <= range.low) range.high = range.low + 1;
  for (size_t i = 0; i < map.values.size(); i++) {
    const auto v = static_cast<double>(map.values[i]);
    if (v < range.low || v > range.high) range.clipped.push_back(static_cast<int64_t>(i));
  }
  std::stable_sort(range.clipped.begin(), range.clipped.end(), [&](int64_t a, int64_t b) {
    return std::fabs(map.values[static_cast<size_t>(a)]) > std::fabs(map.values[static_cast<size_t>(b)]);
  });
  return range;
}

Colour colour_of(ColourScale scale, const HeatmapRange& range, double value) {
  const auto& anchors = scale == ColourScale::sequential ? kSequential : kDiverging;
  const double t = std::clamp((value - range.low) / (range.high - range.low), 0.0, 1.0) *
                   static_cast<double>(anchors.size() - 1);
  const size_t below = std::min(static_cast<size_t>(t), anchors.size() - 2);
  const double part = t - static_cast<double>(below);
  auto mix = [&](int a, int b) { return static_cast<int>(std::lround(a + part * (b - a))); };
  const Colour &a = anchors[below], &b = anchors[below + 1];
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

void check_heatmap(const Heatmap& map) {
  const auto rows = static_cast<size_t>(map.rows), columns = static_cast<size_t>(map.columns);
  auto require = [](size_t have, size_t want, const char* what) {
    if (have != want)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("a heatmap has {} {}, expected {}", have, what, want));
  };
  if (map.rows < 1 || map.columns < 1)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a heatmap of {} × {} cells has nothing to draw", map.rows, map.columns));
  require(map.values.size(), rows * columns, "values");
  if (!map.x_labels.empty()) require(map.x_labels.size(), columns, "column labels");
  if (!map.y_labels.empty()) require(map.y_labels.size(), rows, "row labels");
  if (!map.cell_labels.empty()) require(map.cell_labels.size(), rows * columns, "cell labels");
}

std::string row_label(const Heatmap& map, int64_t row) {
  return map.y_labels.empty() ? std::to_string(row) : map.y_labels[static_cast<size_t>(row)];
}
std::string column_label(const Heatmap& map, int64_t column) {
  return map.x_labels.empty() ? std::to_string(column) : map.x_labels[static_cast<size_t>(column)];
}

std::string value_text(double value) { return fmt::format("{:.4g}", value); }

std::string clipped_text(const Heatmap& map, const HeatmapRange& range, size_t most) {
  if (range.clipped.empty()) return "";
  std::string text = "beyond the scale: ";
  for (size_t i = 0; i < std::min(most, range.clipped.size()); i++) {
    const int64_t cell = range.clipped[i];
    text += fmt::format("{}{}, {} = {}", i > 0 ? "; " : "", row_label(map, cell / map.columns),
                        column_label(map, cell % map.columns),
                        value_text(static_cast<double>(map.values[static_cast<size_t>(cell)])));
  }
  if (range.clipped.size() > most) text += fmt::format("; and {} more", range.clipped.size() - most);
  return text;
}

}  // namespace liuli
