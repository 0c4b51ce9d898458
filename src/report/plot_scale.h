// What every drawing of a heatmap shares: colours, labels, checks.
#pragma once
#include <string>

#include "liuli/plot.h"

namespace liuli {

struct Colour {
  int red = 0, green = 0, blue = 0;
  bool is_dark() const { return 299 * red + 587 * green + 114 * blue < 128000; }
};

/// The colour of a value: at the end of the scale when it lies beyond.
Colour colour_of(ColourScale scale, const HeatmapRange& range, double value);

/// Errors: invalid_argument.
void check_heatmap(const Heatmap& map);

std::string row_label(const Heatmap& map, int64_t row);
std::string column_label(const Heatmap& map, int64_t column);
/// "0.25", "1.2e+04"
std::string value_text(double value);
/// The clipped cells in words, at most `most` of them; "" when none is.
std::string clipped_text(const Heatmap& map, const HeatmapRange& range, size_t most = 8);

}  // namespace liuli
