#include "kernels/scalar/int8_blocks.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace liuli::kernels {
namespace {

template <class T>
void put(int8_t* lines, int offset, int row, T value) {
  static_assert(sizeof value == 4);
  std::memcpy(lines + offset + 4 * row, &value, sizeof value);
}

int sum(const int8_t* values, int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += values[i];
  return sum;
}

}  // namespace

float int8_block(const float* x, int n, int8_t* q) noexcept {
  uint32_t top = 0;
  for (int i = 0; i < n; i++) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(x[i]) & 0x7fffffff;
    top = magnitude > top ? magnitude : top;
  }
  float most = std::bit_cast<float>(top);
  if (most < kInt8Least) most = 0.0f;
  const float scale = most * kInt8ByLargest, inverse = 1.0f / scale;
  for (int i = 0; i < kInt8Block; i++) {
    const float steps = (i < n ? x[i] : 0.0f) * inverse;
    q[i] = std::fabs(steps) < 128.0f ? static_cast<int8_t>(std::nearbyint(steps)) : int8_t{0};
  }
  return scale;
}

void int8_store(const float* x, int n, int row, int8_t* lines) noexcept {
  int8_t q[kInt8Block];
  const float scale = int8_block(x, n, q);
  for (int i = 0; i < kInt8Block; i++)
    lines[i / 4 * kInt8Line + 4 * row + i % 4] = static_cast<int8_t>(q[i] ^ -128);
  const int first = sum(q, kInt8Block / 2), second = sum(q + kInt8Block / 2, kInt8Block / 2);
  put(lines, kInt8RowScale, row, scale);
  put(lines, kInt8RowSum, row, static_cast<float>(first + second));
  put(lines, kInt8RowHalfSums, row, static_cast<float>(first));
  put(lines, kInt8RowHalfSums + kInt8Line, row, static_cast<float>(second));
}

void int8_store(const Int8Weights& w, bool two_scales, bool has_minimum, int row, int8_t* lines) noexcept {
  for (int i = 0; i < kInt8Block; i++) lines[i / 4 * kInt8Line + 4 * row + i % 4] = w.code[i];
  const int columns = two_scales ? kInt8Block / 2 : kInt8Block;
  for (int half = 0; half < kInt8Block / columns; half++) {
    put(lines, kInt8Starts + half * kInt8Line, row, -128 * sum(w.code + half * columns, columns));
    put(lines, kInt8Scales + half * kInt8Line, row, w.scale[half]);
    if (has_minimum) put(lines, kInt8Minima + half * kInt8Line, row, w.minimum[half]);
  }
}

}  // namespace liuli::kernels
