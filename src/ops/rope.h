// Rotary position embedding: pairs of a head's values turned by an angle that grows with the position.
#pragma once
#include <vector>

#include "liuli/config.h"
#include "ops/context.h"

namespace liuli {

/// frequency_i for i < dim / 2, after scaling.  Source: Su et al. 2021; Llama 3.1's and YaRN's scaling rules.
std::vector<double> rope_frequencies(const RopeConfig& config);

/// cos and sin of position · frequency_i, times the attention factor, for some positions. Angles are formed
/// in double: at positions beyond 10⁵ a float product would lose the low bits. Shapes: [n_positions, dim / 2].
struct RopeAngles {
  const float* cos = nullptr;
  const float* sin = nullptr;
  int64_t half = 0;
  const float* angle = nullptr;  ///< in radians, for those who watch
  double factor = 1;             ///< the attention factor
};
RopeAngles rope_angles(OpContext& c, const RopeConfig& config, const std::vector<double>& frequencies,
                       const int* positions, int64_t n_positions);

/// Turns every head of every row in place: pairs (i, i + half) of 2 · half values of a head from `first` on.
/// Shapes: x [n_rows, n_heads · head_dim]; row i has angle row i.
void rope_forward(OpContext& c, const RopeAngles& angles, Rows x, int64_t n_heads, int64_t head_dim,
                  int64_t first = 0);

/// The turn back: the gradient of a rotation's input is its output's, turned by the negative angle.
void rope_backward(OpContext& c, const RopeAngles& angles, Rows dx, int64_t n_heads, int64_t head_dim,
                   int64_t first = 0);

}  // namespace liuli
