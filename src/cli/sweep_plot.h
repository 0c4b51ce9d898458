// A sweep's result as a picture: on the terminal, as SVG and as PNG.
#pragma once
#include <string>

#include "liuli/sweep.h"

namespace liuli::cli {

/// A matrix of effects with names for its axes.
struct HeatMap {
  std::string title, column_title;
  std::vector<std::string> rows, columns;
  std::vector<double> values;  ///< [rows, columns]; 0: nothing, 1: all of it
};

/// Layers × positions; a sweep over heads of several positions: layers × heads, each the strongest of all positions.
HeatMap heat_map(const SweepResult& result, const std::string& title, const std::vector<std::string>& tokens);
/// Cells in colour if asked for (red towards 1, blue below 0), otherwise numbers.
std::string heat_map_text(const HeatMap& map, bool colour, int width);
std::string heat_map_svg(const HeatMap& map);
/// Cells and colour bar only, blue below 0 and red above.
std::string heat_map_png(const HeatMap& map);

}  // namespace liuli::cli
