// Heatmaps: scales, outliers, and files that a reader of SVG accepts.
#include <gtest/gtest.h>

#include <cmath>

#include "liuli/error.h"
#include "liuli/plot.h"

namespace liuli {
namespace {

Heatmap ramp(int64_t rows, int64_t columns) {
  Heatmap map;
  map.rows = rows;
  map.columns = columns;
  for (int64_t i = 0; i < rows * columns; i++) map.values.push_back(static_cast<float>(i));
  return map;
}

size_t count(const std::string& text, const std::string& piece) {
  size_t n = 0;
  for (size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) n++;
  return n;
}

TEST(HeatmapRange, CoversTheValuesAndLeavesOutliersOut) {
  Heatmap map = ramp(4, 10);
  EXPECT_EQ(heatmap_range(map).low, 0);
  EXPECT_EQ(heatmap_range(map).high, 39);
  EXPECT_TRUE(heatmap_range(map).clipped.empty());
  map.values[7] = 5000;
  map.values[3] = std::nanf("");
  const HeatmapRange range = heatmap_range(map);
  EXPECT_EQ(range.high, 39);
  EXPECT_EQ(range.clipped, std::vector<int64_t>{7});
  map.scale = ColourScale::diverging;
  EXPECT_EQ(heatmap_range(map).low, -39);
  map.low = 0, map.high = 10;
  EXPECT_EQ(heatmap_range(map).clipped.size(), 30u);
}

TEST(HeatmapRange, OfEqualValuesIsNotEmpty) {
  Heatmap map = ramp(2, 2);
  map.values = {3, 3, 3, 3};
  EXPECT_GT(heatmap_range(map).high, heatmap_range(map).low);
}

TEST(HeatmapSvg, DrawsEveryCellOnceAndEscapesLabels) {
  Heatmap map = ramp(3, 4);
  map.x_labels = {"<a>", "b&c", "\x01", "d"};
  map.values[5] = std::nanf("");
  const std::string svg = heatmap_svg(map);
  EXPECT_EQ(count(svg, "<title>"), 11u);  // NaN has no cell
  EXPECT_EQ(count(svg, "<a>"), 0u);
  EXPECT_GE(count(svg, "&lt;a&gt;"), 1u);
  EXPECT_GE(count(svg, "b&amp;c"), 1u);
  EXPECT_EQ(count(svg, "\x01"), 0u);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(HeatmapSvg, ListsWhatIsBeyondTheScale) {
  Heatmap map = ramp(4, 10);
  map.values[7] = 5000;
  const std::string svg = heatmap_svg(map);
  EXPECT_NE(svg.find("beyond the scale: 0, 7 = 5000"), std::string::npos);
  EXPECT_EQ(count(svg, "stroke-dasharray"), 1u);
}

TEST(HeatmapTerminal, KeepsWithinTheWidth) {
  const Heatmap map = ramp(3, 200);
  const std::string text = heatmap_terminal(map, {60, false});
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    EXPECT_LE(text[at] == '0' || text[at] == '1' ? end - at : 0, 60u);
    at = end + 1;
  }
  EXPECT_NE(text.find("the last 58 of 200 columns"), std::string::npos) << text;
  EXPECT_NE(heatmap_terminal(map, {60, true}).find("\x1b[48;2;"), std::string::npos);
}

TEST(Heatmaps, RefuseSizesThatDisagree) {
  Heatmap map = ramp(3, 4);
  map.rows = 5;
  EXPECT_THROW(heatmap_svg(map), Error);
  map = ramp(3, 4);
  map.y_labels = {"one"};
  EXPECT_THROW(heatmap_terminal(map), Error);
  EXPECT_THROW(heatmap_svg(Heatmap{}), Error);
}

}  // namespace
}  // namespace liuli
