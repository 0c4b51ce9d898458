// Rows of attention as bf16, for the levels whose products take bf16 on both sides.
#pragma once
#include "kernels/avx512/load_to_end.h"

namespace liuli::kernels {
namespace {

// scale · q rounded to bf16, zeros from n to `padded` (a multiple of 32).
inline void load_query_bf16(const float* q, float scale, int n, int padded, uint16_t* out) {
  const __m512 factor = _mm512_set1_ps(scale);
  for (int d = 0; d < padded; d += 32) {
    const __m512 low = _mm512_mul_ps(load_to_end(q, d, n), factor);
    const __m512 high = _mm512_mul_ps(load_to_end(q, d + 16, n), factor);
    _mm512_storeu_si512(out + d, (__m512i)_mm512_cvtne2ps_pbh(high, low));
  }
}

// The softmax weights of 32 keys.
inline void store_weights_bf16(uint16_t* p, __m512 first, __m512 second) {
  _mm512_storeu_si512(p, (__m512i)_mm512_cvtne2ps_pbh(second, first));
}

}  // namespace
}  // namespace liuli::kernels
