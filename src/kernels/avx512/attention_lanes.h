// Sixteen floats in a 512-bit register, with the operations attention is written in (ScalarLanes has their
// meaning).
#pragma once
#include <immintrin.h>

#include "kernels/attention_blocked.h"

namespace liuli::kernels {
namespace {

struct Avx512Lanes {
  using V = __m512;
  static V set1(float x) { return _mm512_set1_ps(x); }
  static V load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, V v) { _mm512_storeu_ps(p, v); }
  static float first(V v) { return _mm512_cvtss_f32(v); }
  static V add(V a, V b) { return _mm512_add_ps(a, b); }
  static V sub(V a, V b) { return _mm512_sub_ps(a, b); }
  static V mul(V a, V b) { return _mm512_mul_ps(a, b); }
  static V max(V a, V b) { return _mm512_max_ps(a, b); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static V floor(V a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
  static V scale_by_power_of_two(V p, V whole) {
    return _mm512_scalef_ps(p, _mm512_max_ps(whole, _mm512_set1_ps(-126.0f)));
  }

  static V keep_range(V v, int begin, int end, float otherwise) {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __mmask16 from = _mm512_cmpge_epi32_mask(lane, _mm512_set1_epi32(begin));
    const __mmask16 inside = _mm512_mask_cmplt_epi32_mask(from, lane, _mm512_set1_epi32(end));
    return _mm512_mask_blend_ps(inside, _mm512_set1_ps(otherwise), v);
  }
  static V round_to_bf16(V v) {
    const __m512i u = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
    return _mm512_castsi512_ps(_mm512_and_si512(up, _mm512_set1_epi32(0xffff0000)));
  }
  static void widen_bf16(const uint16_t* line, V& even, V& odd) {
    const __m512i pairs = _mm512_loadu_si512(line);
    even = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
    odd = _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(0xffff0000)));
  }

  static V widen_f16(const uint16_t* half_line) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(half_line)));
  }

  // Halves folded onto each other: 8, 4, 2, 1 lanes apart.
  static V upper(V v, int step) {
    if (step == 8) return _mm512_shuffle_f32x4(v, v, 0x4e);
    if (step == 4) return _mm512_shuffle_f32x4(v, v, 0xb1);
    if (step == 2) return _mm512_permute_ps(v, 0x4e);
    return _mm512_permute_ps(v, 0xb1);
  }
  static float reduce_add(V v) {
    for (int step = 8; step > 0; step /= 2) v = add(v, upper(v, step));
    return first(v);
  }
  static float reduce_max(V v) {
    for (int step = 8; step > 0; step /= 2) v = max(v, upper(v, step));
    return first(v);
  }
};

}  // namespace
}  // namespace liuli::kernels
