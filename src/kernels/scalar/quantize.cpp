// f32 rows to 16-bit integer activations, the reference.
#include <cmath>
#include <cstring>

#include "kernels/isa_tables.h"
#include "kernels/panels.h"

namespace liuli::kernels {
namespace {

constexpr float kLargest = 32512.0f;  // 127 · 256: the largest |q| whose high plane fits i8 after rounding
constexpr float kTiny = 1e-30f;       // below it 32512 / max overflows; such a chunk counts as zero

float magnitude(const float* x, int n) {
  // By integer comparison of the bits, so that a NaN wins over every number.
  uint32_t top = 0;
  for (int i = 0; i < n; i++) {
    uint32_t u;
    std::memcpy(&u, x + i, 4);
    u &= 0x7fffffffu;
    if (u > top) top = u;
  }
  float f;
  std::memcpy(&f, &top, 4);
  return f;
}

void sum_up(ActivationChunk& out, const int32_t* q) {
  for (int s = 0; s < 16; s++) {
    int32_t sum = 0;
    for (int i = 16 * s; i < 16 * s + 16; i++) sum += q[i];
    out.negative_sum16[s] = -sum;
    out.sum16[s] = static_cast<float>(sum);
  }
  for (int s = 0; s < 8; s++) {
    const int32_t sum = -(out.negative_sum16[2 * s] + out.negative_sum16[2 * s + 1]);
    out.negative_sum32[s] = -sum;
    out.sum32[s] = static_cast<float>(sum);
  }
}

void quantize_chunk(const float* x, int n, ActivationChunk& out) {
  const float top = magnitude(x, n);
  const bool finite = top <= 3.402823466e38f, usable = finite && top >= kTiny;
  const float inverse = usable ? kLargest / top : 0.0f;
  out.scale = usable ? top / kLargest : finite ? 0.0f : NAN;
  int32_t q[256] = {};
  for (int i = 0; i < n && usable; i++) q[i] = static_cast<int32_t>(std::lrintf(x[i] * inverse));
  for (int i = 0; i < 256; i++) {
    const int32_t hi = (q[i] + 128) >> 8;
    out.hi[i] = static_cast<int8_t>(hi);
    out.lo[i] = static_cast<int8_t>(q[i] - 256 * hi);
    out.q[activation_place(i)] = static_cast<int16_t>(q[i]);
  }
  sum_up(out, q);
}

void quantize(const float* x, ptrdiff_t ldx, int n_rows, int64_t k, ActivationChunk* out) noexcept {
  for (int m = 0; m < n_rows; m++)
    for (int64_t c = 0; c * 256 < k; c++)
      quantize_chunk(x + m * ldx + c * 256, static_cast<int>(k - c * 256 < 256 ? k - c * 256 : 256),
                     out[c * n_rows + m]);
}

}  // namespace

QuantizeRows quantize_x16_scalar() noexcept { return quantize; }

}  // namespace liuli::kernels
