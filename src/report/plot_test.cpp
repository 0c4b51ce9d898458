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

uint32_t big_endian(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; i++) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

// Chunk by chunk as a reader goes, to the pixels (stored blocks are the bytes themselves).
struct Png {
  explicit Png(const std::string& file) {
    EXPECT_EQ(file.substr(0, 8), "\x89PNG\r\n\x1a\n");
    for (size_t at = 8; at < file.size();) {
      const size_t n = big_endian(file, at);
      const std::string type = file.substr(at + 4, 4), data = file.substr(at + 8, n);
      if (type == "IHDR") width = big_endian(data, 0), height = big_endian(data, 4);
      if (type == "PLTE") palette = data;
      if (type == "iTXt") words += data;
      if (type == "IDAT")
        for (size_t block = 2; block + 4 < data.size(); block += 5 + length_at(data, block))
          pixels += data.substr(block + 5, length_at(data, block));
      last = type;
      at += n + 12;
    }
  }
  static size_t length_at(const std::string& data, size_t block) {
    return static_cast<uint8_t>(data[block + 1]) + 256u * static_cast<uint8_t>(data[block + 2]);
  }
  int colour(size_t x, size_t y) const { return static_cast<uint8_t>(pixels.at(y * (width + 1) + 1 + x)); }
  size_t width = 0, height = 0;
  std::string palette, words, pixels, last;
};

TEST(HeatmapPng, HasACellsColourWhereTheCellIs) {
  Heatmap map = ramp(4, 10);
  map.title = "a <ramp>";
  map.values[12] = std::nanf("");
  map.low = 0, map.high = 38;
  const Png png(heatmap_png(map));
  EXPECT_EQ(png.last, "IEND");
  EXPECT_EQ(png.palette.size(), 768u);
  EXPECT_EQ(png.pixels.size(), png.height * (png.width + 1));
  EXPECT_EQ(png.width, 10u * 36 + 3 * 12 + 16);
  const auto cell = [&](size_t row, size_t column) {
    return png.colour(12 + 36 * column + 18, 12 + 36 * row + 18);
  };
  EXPECT_EQ(cell(0, 0), 0);
  EXPECT_EQ(cell(1, 9), 252 / 2);
  EXPECT_EQ(cell(3, 8), 252);
  EXPECT_EQ(cell(1, 2), 255);
  EXPECT_EQ(png.colour(12 + 36 * 9, 12 + 36 * 3), 254) << "39 is beyond the scale: framed";
  EXPECT_NE(png.words.find("a <ramp>"), std::string::npos);
}

TEST(HeatmapPng, TakesMoreCellsThanOneBlockHolds) {
  const Png png(heatmap_png(ramp(600, 900)));
  EXPECT_EQ(png.pixels.size(), png.height * (png.width + 1));
  EXPECT_GT(png.pixels.size(), 65535u);
  EXPECT_EQ(heatmap_file(ramp(2, 2), "a.png").substr(1, 3), "PNG");
  EXPECT_THROW(heatmap_file(ramp(2, 2), "a.jpg"), Error);
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
