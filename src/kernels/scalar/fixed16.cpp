#include "kernels/scalar/fixed16.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace liuli::kernels {

float fixed16_block(const float* x, int n, int16_t* q) noexcept {
  uint32_t top = 0;
  for (int i = 0; i < n; i++) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(x[i]) & 0x7fffffff;
    top = magnitude > top ? magnitude : top;
  }
  float most = std::bit_cast<float>(top);
  if (most < kFixedLeast) most = 0.0f;
  const float to_one = 1.0f / most;
  float squares = 0.0f;
  for (int i = 0; i < kFixedBlock; i++) {
    const float part = (i < n ? x[i] : 0.0f) * to_one;
    squares = std::fma(part, part, squares);
  }
  const float by_length = std::sqrt(squares) * kFixedByLength;
  const float scale =
      most * (by_length > kFixedByLargest ? by_length : kFixedByLargest);  // also where it is NaN
  const float inverse = 1.0f / scale;
  for (int i = 0; i < kFixedBlock; i++) {
    const float steps = (i < n ? x[i] : 0.0f) * inverse;
    q[i] = std::fabs(steps) < 32768.0f ? static_cast<int16_t>(std::nearbyint(steps)) : int16_t{0};
  }
  return scale;
}

void fixed16_store(const float* x, int n, int row, int16_t* lines) noexcept {
  int16_t q[kFixedBlock];
  const float scale = fixed16_block(x, n, q);
  for (int i = 0; i < kFixedBlock; i++) lines[i / 2 * kFixedLine + 2 * row + i % 2] = q[i];
  std::memcpy(lines + kFixedScales + 2 * row, &scale, sizeof scale);
}

}  // namespace liuli::kernels
