// Attention over 16-bit pages by AVX2 f32 FMA: the scalar level's bits.
#include <immintrin.h>

#include "kernels/attention_f32_dots.h"
#include "kernels/isa_tables.h"

namespace liuli::kernels {
namespace {

// Sixteen floats in two 256-bit registers, with the operations attention is written in (ScalarLanes has their
// meaning).
struct Avx2Lanes {
  struct V {
    __m256 low, high;
  };
  static V both(__m256 v) { return {v, v}; }
  static V set1(float x) { return both(_mm256_set1_ps(x)); }
  static V load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static void store(float* p, V v) {
    _mm256_storeu_ps(p, v.low);
    _mm256_storeu_ps(p + 8, v.high);
  }
  static float first(V v) { return _mm256_cvtss_f32(v.low); }
  static V add(V a, V b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
  static V sub(V a, V b) { return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)}; }
  static V mul(V a, V b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
  static V max(V a, V b) { return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)}; }
  static V fma(V a, V b, V c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static V floor(V a) { return {_mm256_floor_ps(a.low), _mm256_floor_ps(a.high)}; }

  static __m256 scale(__m256 p, __m256 whole) {
    const __m256i exponent = _mm256_cvtps_epi32(_mm256_max_ps(whole, _mm256_set1_ps(-126.0f)));
    const __m256i bits = _mm256_slli_epi32(_mm256_add_epi32(exponent, _mm256_set1_epi32(127)), 23);
    return _mm256_mul_ps(p, _mm256_castsi256_ps(bits));
  }
  static V scale_by_power_of_two(V p, V whole) {
    return {scale(p.low, whole.low), scale(p.high, whole.high)};
  }

  static __m256 keep(__m256 v, int begin, int end, __m256 otherwise) {
    const __m256i lane = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    const __m256i below = _mm256_cmpgt_epi32(_mm256_set1_epi32(begin), lane);
    const __m256i inside = _mm256_andnot_si256(below, _mm256_cmpgt_epi32(_mm256_set1_epi32(end), lane));
    return _mm256_blendv_ps(otherwise, v, _mm256_castsi256_ps(inside));
  }
  static V keep_range(V v, int begin, int end, float otherwise) {
    const __m256 fill = _mm256_set1_ps(otherwise);
    return {keep(v.low, begin, end, fill), keep(v.high, begin - 8, end - 8, fill)};
  }

  static __m256 round(__m256 v) {
    const __m256i u = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
    return _mm256_castsi256_ps(_mm256_and_si256(up, _mm256_set1_epi32(0xffff0000)));
  }
  static V round_to_bf16(V v) { return {round(v.low), round(v.high)}; }

  static void widen_bf16(const uint16_t* line, V& even, V& odd) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(line));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(line + 16));
    const __m256i upper = _mm256_set1_epi32(0xffff0000);
    even = {_mm256_castsi256_ps(_mm256_slli_epi32(low, 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(high, 16))};
    odd = {_mm256_castsi256_ps(_mm256_and_si256(low, upper)),
           _mm256_castsi256_ps(_mm256_and_si256(high, upper))};
  }

  static V widen_f16(const uint16_t* half_line) {
    const auto* parts = reinterpret_cast<const __m128i*>(half_line);
    return {_mm256_cvtph_ps(_mm_loadu_si128(parts)), _mm256_cvtph_ps(_mm_loadu_si128(parts + 1))};
  }

  // Halves folded onto each other: 8, 4, 2, 1 lanes apart.
  static float reduce_add(V v) {
    __m256 a = _mm256_add_ps(v.low, v.high);
    a = _mm256_add_ps(a, _mm256_permute2f128_ps(a, a, 1));
    a = _mm256_add_ps(a, _mm256_permute_ps(a, 0x4e));
    return _mm256_cvtss_f32(_mm256_add_ps(a, _mm256_permute_ps(a, 0xb1)));
  }
  static float reduce_max(V v) {
    __m256 a = _mm256_max_ps(v.low, v.high);
    a = _mm256_max_ps(a, _mm256_permute2f128_ps(a, a, 1));
    a = _mm256_max_ps(a, _mm256_permute_ps(a, 0x4e));
    return _mm256_cvtss_f32(_mm256_max_ps(a, _mm256_permute_ps(a, 0xb1)));
  }
};

}  // namespace

const AttentionKernels* attention_avx2() noexcept {
  static constexpr AttentionKernels kernels = BlockedAttention<F32Dots<Avx2Lanes, Bf16Pages, 4, 1>>::table(
      "bf16 pages, f32 fused multiply-add, AVX2");
  return &kernels;
}

const AttentionKernels* attention_f16_avx2() noexcept {
  static constexpr AttentionKernels kernels =
      BlockedAttention<F32Dots<Avx2Lanes, F16Pages, 4, 1>>::table("f16 pages, f32 fused multiply-add, AVX2");
  return &kernels;
}

}  // namespace liuli::kernels
