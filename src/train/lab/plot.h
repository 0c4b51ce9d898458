// A report's plots, as lines for a terminal and as SVG.
#pragma once
#include <string>

#include "liuli/lab.h"

namespace liuli::lab {

/// A grid of `width` × 14 characters with one letter per series, axes and a legend.
std::string text_plot(const LabPlot& plot, Language language, int width);
/// An <svg> element of 640 × 360; colours come from the page's classes s0 … s7.
std::string svg_plot(const LabPlot& plot, Language language);

}  // namespace liuli::lab
