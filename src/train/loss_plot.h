// The curves of a run, as a picture and as one line of text.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace liuli {

struct CurvePoint {
  int64_t step;
  double loss;
};

struct RunCurves {
  std::vector<CurvePoint> training;  ///< every step
  std::vector<CurvePoint> held_out;
};

/// Training loss (every step faint, smoothed in front) and held-out loss over steps, as an SVG that stands by itself.
std::string loss_svg(const RunCurves& curves, const std::string& title);

/// "▇▆▅▃▂▂▁": the losses in `width` groups, each one's mean, scaled to what is there.
std::string sparkline(const std::vector<CurvePoint>& points, int width);

/// Exponential moving average that forgets as 0.98^n, without the bias of its beginning.
std::vector<CurvePoint> smoothed(const std::vector<CurvePoint>& points);

}  // namespace liuli
