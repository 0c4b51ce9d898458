// RoPE's angles inside a step, for those who watch.
#include <algorithm>
#include <cmath>

#include "model/block.h"

namespace liuli {
namespace {

Rows copy_of(const float* values, int64_t n, int64_t width, Step& s) {
  Rows rows{s.ops.scratch.floats(n * width), n, width, width};
  std::copy_n(values, n * width, rows.data);
  return rows;
}

}  // namespace

RopeAngles shown_angles(int rope, int layer, Step& s) {
  const RopeAngles& shared = s.angles[static_cast<size_t>(rope)];
  const bool watched = s.listening(Point::attn_rope_angle, layer) ||
                       s.listening(Point::attn_rope_cos, layer) || s.listening(Point::attn_rope_sin, layer);
  if (!watched || shared.half == 0) return shared;
  const auto n = static_cast<int64_t>(s.positions.size());
  const Rows angle = copy_of(shared.angle, n, shared.half, s), cos = copy_of(shared.cos, n, shared.half, s),
             sin = copy_of(shared.sin, n, shared.half, s);
  s.probe(Point::attn_rope_angle, layer, angle);
  for (int64_t i = 0; i < n * shared.half; i++) {
    if (std::memcmp(&angle.data[i], &shared.angle[i], sizeof(float)) == 0) continue;
    cos.data[i] = static_cast<float>(std::cos(double{angle.data[i]}) * shared.factor);
    sin.data[i] = static_cast<float>(std::sin(double{angle.data[i]}) * shared.factor);
  }
  s.probe(Point::attn_rope_cos, layer, cos);
  s.probe(Point::attn_rope_sin, layer, sin);
  return {cos.data, sin.data, shared.half, angle.data, shared.factor};
}

}  // namespace liuli
