#include "convert/encode_search.h"

#include <cmath>

namespace liuli::encode {

Group make_group(const float* x, const float* w, int n) {
  Group g{.x = x, .w = w, .n = n, .min = x[0], .max = x[0]};
  for (int i = 0; i < n; i++) {
    g.sum_w += w[i];
    g.sum_x += w[i] * x[i];
    g.sum_xx += w[i] * x[i] * x[i];
    g.min = std::min(g.min, x[i]);
    g.max = std::max(g.max, x[i]);
  }
  g.peak = std::max(std::fabs(g.min), std::fabs(g.max));
  return g;
}

namespace {

/// How far inside (positive) or outside the range an end is put, in steps between codes.
constexpr float kCuts[8] = {-0.4f, -0.15f, 0.0f, 0.25f, 0.55f, 0.9f, 1.4f, 2.1f};
/// Fewer codes are wider apart: the same cuts in steps would throw half the range away.
float cut_factor(float code_max) { return code_max > 3 ? 1.0f : 0.3f; }

void try_cuts(const Group& g, const UniformLevels& levels, Minimum kind, Fit& best) {
  const float low = kind == Minimum::not_negative ? std::min(g.min, 0.0f) : g.min;
  const float step = (g.max - low) / levels.hi * cut_factor(levels.hi);
  Candidates c;
  for (int pair = 0; pair < 8; pair += 2) {
    for (int i = 0; i < kCandidates; i++) {
      const float bottom = low + step * kCuts[pair + i / 8], top = g.max - step * kCuts[i % 8];
      c.set(i, (top - bottom) / levels.hi, kind == Minimum::not_negative ? std::max(-bottom, 0.0f) : -bottom);
    }
    refit(g, levels, kind, c);
    if (const Fit fit = c.best(); fit.cost < best.cost) best = fit;
  }
}

/// A 4 × 4 grid around the best fit: the scale by up to ±1.5 · reach of one step at the last code, the minimum
/// likewise.
void try_around(const Group& g, const UniformLevels& levels, Minimum kind, float reach, Fit& best) {
  Candidates c;
  for (int i = 0; i < kCandidates; i++) {
    const float a = static_cast<float>(i % 4) - 1.5f, b = static_cast<float>(i / 4) - 1.5f;
    const float m = best.minimum + best.scale * reach * b;
    c.set(i, best.scale * (1 + reach * a / levels.hi), kind == Minimum::not_negative ? std::max(m, 0.0f) : m);
  }
  refit(g, levels, kind, c);
  if (const Fit fit = c.best(); fit.cost < best.cost) best = fit;
}

}  // namespace

Fit best_affine(const Group& g, const UniformLevels& levels, Minimum kind) {
  if (g.max == g.min && (kind == Minimum::free || g.max <= 0)) return {0, -g.max, 0};
  Fit best;
  try_cuts(g, levels, kind, best);
  try_around(g, levels, kind, 0.3f, best);
  try_around(g, levels, kind, 0.12f, best);
  return best;
}

}  // namespace liuli::encode
