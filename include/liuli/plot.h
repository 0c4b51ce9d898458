// Pictures of matrices: as SVG, as PNG, and in a terminal.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace liuli {

/// Colours for values from low to high (viridis), or for values around 0 (blue, white, red). Both are told apart with
/// every common kind of colour blindness.
enum class ColourScale { sequential, diverging };

/// A matrix and what its axes mean.
struct Heatmap {
  std::string title, x_title, y_title, value_title;
  std::vector<std::string> x_labels, y_labels;  ///< per column and row; empty: their numbers
  int64_t rows = 0, columns = 0;
  std::vector<float> values;             ///< [rows, columns]; NaN: nothing is drawn
  std::vector<std::string> cell_labels;  ///< text in each cell, or empty
  ColourScale scale = ColourScale::sequential;
  /// The values that the ends of the scale stand for; NaN: from the values, outliers left out.
  double low = std::numeric_limits<double>::quiet_NaN(), high = std::numeric_limits<double>::quiet_NaN();
};

struct HeatmapRange {
  double low = 0, high = 1;
  std::vector<int64_t> clipped;  ///< cells beyond it, largest |value| first
};
/// The ends of the scale. Without fixed ones: from the smallest to the largest value; where a few values lie more than
/// 10 interquartile ranges from the median, these are clipped, so that the others can be told apart. A diverging scale is
/// symmetric.
HeatmapRange heatmap_range(const Heatmap& map);

/// A complete SVG file: axes, labels, a colour bar, values as tooltips; clipped cells are outlined and listed below.
/// Errors: invalid_argument where sizes disagree.
std::string heatmap_svg(const Heatmap& map);

/// The same as PNG, without words: cells and colour bar (low end below); title, axes, range and outliers are in the file's
/// text chunks. NaN is light grey.
std::string heatmap_png(const Heatmap& map);

/// The picture for a file of this name: .svg or .png. Errors: invalid_argument for any other ending.
std::string heatmap_file(const Heatmap& map, const std::string& path);

struct TerminalStyle {
  int width = 100;      ///< columns of the terminal
  bool colour = false;  ///< 24-bit colours; otherwise characters from light to dark
};
/// The same for a terminal; where it is too narrow, the last columns that fit.
std::string heatmap_terminal(const Heatmap& map, const TerminalStyle& style = {});

}  // namespace liuli
