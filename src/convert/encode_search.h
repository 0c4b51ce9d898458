// The best scale (and minimum) of one group before any rounding of scales.
#pragma once
#include "convert/encode_lanes.h"

namespace liuli::encode {

/// The scales worth trying: the largest |x| is put on t · peak, t from `low` to `high`. Clipping the largest
/// element often pays, the more so the fewer levels there are.
struct ScaleRange {
  float peak;       ///< magnitude of the outermost level: 8 for codes −8 … 7
  float low, high;  ///< of t
};
/// For an outermost level `steps` levels away from 0.
inline ScaleRange scale_range(float peak, float steps) { return {peak, 1 - 2.4f / steps, 1 + 1.0f / steps}; }

/// Best fits with a positive and with a negative scale: levels reach further on one side, so the sign matters.
struct SignedFits {
  Fit positive, negative;
  const Fit& best() const { return positive.cost <= negative.cost ? positive : negative; }
};

template <class Levels>
Fit best_symmetric(const Group& g, const Levels& levels, const ScaleRange& range, float sign) {
  constexpr int kBatches = 2;
  const float step = (range.high - range.low) / (kBatches * kCandidates - 1);
  Fit best;
  Candidates c;
  for (int batch = 0; batch < kBatches; batch++) {
    for (int i = 0; i < kCandidates; i++) {
      const float t = range.low + step * static_cast<float>(batch * kCandidates + i);
      c.set(i, sign * g.peak / (range.peak * t), 0);
    }
    refit(g, levels, Minimum::none, c);
    if (const Fit fit = c.best(); fit.cost < best.cost) best = fit;
  }
  if (best.cost == kHopeless) return best;
  // Around the winner eight times finer: codes change between the grid's points, too.
  for (int i = 0; i < kCandidates; i++)
    c.set(i, best.scale * (1 + step * (static_cast<float>(i) - 7.5f) / 8), 0);
  refit(g, levels, Minimum::none, c);
  if (const Fit fit = c.best(); fit.cost < best.cost) best = fit;
  return best;
}

template <class Levels>
SignedFits best_symmetric(const Group& g, const Levels& levels, const ScaleRange& range) {
  if (g.peak == 0) return {{0, 0, 0}, {0, 0, 0}};
  return {best_symmetric(g, levels, range, 1.0f), best_symmetric(g, levels, range, -1.0f)};
}

/// Best scale and minimum for codes 0 … levels.hi: 64 ways to cut both ends of the range, then finer.
Fit best_affine(const Group& g, const UniformLevels& levels, Minimum kind);

}  // namespace liuli::encode
