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

  static V from_i8(const int8_t* codes) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes))));
  }
  static void twice(V v, V& low, V& high) {
    const __m512i half = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
    low = _mm512_permutexvar_ps(half, v);
    high = _mm512_permutexvar_ps(_mm512_add_epi32(half, _mm512_set1_epi32(8)), v);
  }
  static V pairs(const float* two) {
    double both;
    __builtin_memcpy(&both, two, sizeof both);
    return _mm512_castpd_ps(_mm512_set1_pd(both));
  }
#ifdef __AVX512BF16__
  static void store_bf16(uint16_t* line, V low, V high) {
    _mm512_storeu_si512(line, (__m512i)_mm512_cvtne2ps_pbh(high, low));
  }
#else
  static void store_bf16(uint16_t* line, V low, V high) {
    auto* halves = reinterpret_cast<__m256i*>(line);
    const __m512i a = _mm512_castps_si512(round_to_bf16(low)), b = _mm512_castps_si512(round_to_bf16(high));
    _mm256_storeu_si256(halves, _mm512_cvtepi32_epi16(_mm512_srli_epi32(a, 16)));
    _mm256_storeu_si256(halves + 1, _mm512_cvtepi32_epi16(_mm512_srli_epi32(b, 16)));
  }
#endif

  using Bytes = __m512i;
  struct BytePairs {
    __m512i first, second;
  };
  using Sums = __m512i;
  static Bytes load_bytes(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static Bytes low_nibbles(Bytes b) { return _mm512_and_si512(b, _mm512_set1_epi8(15)); }
  static Bytes high_nibbles(Bytes b) { return low_nibbles(_mm512_srli_epi16(b, 4)); }
  static Bytes nibbles(const uint8_t* p) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return low_nibbles(_mm512_inserti64x4(_mm512_castsi256_si512(bytes), _mm256_srli_epi16(bytes, 4), 1));
  }
  static BytePairs byte_pairs(Bytes b) {
    return {_mm512_and_si512(b, _mm512_set1_epi16(255)), _mm512_srli_epi16(b, 8)};
  }
  static Sums no_sums() { return _mm512_setzero_si512(); }
  // GCC 12 copies and spills every accumulator of _mm512_dpwssd_epi32, and broadcasts by way of a general register.
  struct Pair {
    int16_t two[2];
  };
  static inline __attribute__((always_inline)) Sums dot_pairs(Sums sums, __m512i a, const int16_t* two) {
    __asm__("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(sums) : "v"(a), "m"(*reinterpret_cast<const Pair*>(two)));
    return sums;
  }
  static Sums dot(Sums sums, BytePairs pairs, const int16_t* four) {
    return dot_pairs(dot_pairs(sums, pairs.first, four), pairs.second, four + 2);
  }
  static V less(Sums sums, int32_t offset) {
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(sums, _mm512_set1_epi32(offset)));
  }
  static V nearest(V v) { return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static void store_i16(int16_t* out, V v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(v)));
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
