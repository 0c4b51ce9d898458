// A matrix of activations: n rows of f32, padded so that kernels may read whole panels.
#pragma once
#include <cstdint>
#include <cstring>

#include "core/arena.h"

namespace liuli {

/// View of n rows of `width` f32 values, `stride` floats apart. Values in [width, stride) are zero and stay
/// zero.
struct Rows {
  float* data = nullptr;
  int64_t n = 0, width = 0, stride = 0;

  float* row(int64_t i) const { return data + i * stride; }
  Rows slice(int64_t begin, int64_t count) const { return {row(begin), count, width, stride}; }
};

constexpr int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// Rows in the arena, stride a multiple of 64 with zero padding; the values themselves are not initialised.
inline Rows make_rows(Arena& arena, int64_t n, int64_t width) {
  const int64_t stride = round_up(width, 64);
  Rows rows{arena.floats(n * stride), n, width, stride};
  if (stride != width)
    for (int64_t i = 0; i < n; i++)
      std::memset(rows.row(i) + width, 0, static_cast<size_t>(stride - width) * sizeof(float));
  return rows;
}

}  // namespace liuli
