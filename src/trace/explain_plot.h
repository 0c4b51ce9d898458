// Pictures of a sequence x₀ … xₙ: bars for a terminal, a curve as SVG.
#pragma once
#include <span>
#include <string>

#include "trace/explain_writer.h"

namespace liuli::worked {

/// One line per step (at most 24, evenly spread), bar length ∝ |x|, or ∝ log₁₀(1 + |x|) when the largest is
/// more than 10⁴ times the smallest; infinities fill the line.
std::string bar_plot(std::span<const double> x, const Writer& writer);
/// A 640 × 360 document with axes; values that are not finite are left out.
std::string curve_svg(std::span<const double> x, const std::string& title, const Writer& writer);

}  // namespace liuli::worked
