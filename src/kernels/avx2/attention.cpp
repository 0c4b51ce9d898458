// Attention over 16-bit pages by AVX2 f32 FMA: the scalar level's bits.
#include <immintrin.h>

#include "kernels/attention_codes.h"
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

  static V from_i8(const int8_t* codes) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
  }
  static void twice(V v, V& low, V& high) {
    const __m256i first = _mm256_set_epi32(3, 3, 2, 2, 1, 1, 0, 0);
    const __m256i second = _mm256_set_epi32(7, 7, 6, 6, 5, 5, 4, 4);
    low = {_mm256_permutevar8x32_ps(v.low, first), _mm256_permutevar8x32_ps(v.low, second)};
    high = {_mm256_permutevar8x32_ps(v.high, first), _mm256_permutevar8x32_ps(v.high, second)};
  }
  static V pairs(const float* two) {
    double pair;
    __builtin_memcpy(&pair, two, sizeof pair);
    return both(_mm256_castpd_ps(_mm256_set1_pd(pair)));
  }
  static __m256i upper_halves(V v) {
    const __m256i low = _mm256_srli_epi32(_mm256_castps_si256(round(v.low)), 16);
    const __m256i high = _mm256_srli_epi32(_mm256_castps_si256(round(v.high)), 16);
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
  }
  static void store_bf16(uint16_t* line, V low, V high) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(line), upper_halves(low));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(line + 16), upper_halves(high));
  }

  struct Bytes {
    __m256i low, high;
  };
  struct BytePairs {
    __m256i first[2], second[2];
  };
  using Sums = Bytes;
  static Bytes load_bytes(const uint8_t* p) {
    const auto* parts = reinterpret_cast<const __m256i*>(p);
    return {_mm256_loadu_si256(parts), _mm256_loadu_si256(parts + 1)};
  }
  static __m256i low_half(__m256i b) { return _mm256_and_si256(b, _mm256_set1_epi8(15)); }
  static Bytes low_nibbles(Bytes b) { return {low_half(b.low), low_half(b.high)}; }
  static Bytes high_nibbles(Bytes b) {
    return {low_half(_mm256_srli_epi16(b.low, 4)), low_half(_mm256_srli_epi16(b.high, 4))};
  }
  static Bytes nibbles(const uint8_t* p) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return {low_half(bytes), low_half(_mm256_srli_epi16(bytes, 4))};
  }
  static BytePairs byte_pairs(Bytes b) {
    const __m256i byte = _mm256_set1_epi16(255);
    return {{_mm256_and_si256(b.low, byte), _mm256_and_si256(b.high, byte)},
            {_mm256_srli_epi16(b.low, 8), _mm256_srli_epi16(b.high, 8)}};
  }
  static Sums no_sums() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  static __m256i dot8(__m256i sums, __m256i first, __m256i second, __m256i a, __m256i b) {
    return _mm256_add_epi32(_mm256_add_epi32(sums, _mm256_madd_epi16(first, a)),
                            _mm256_madd_epi16(second, b));
  }
  static Sums dot(Sums sums, BytePairs pairs, const int16_t* four) {
    int two[2];
    __builtin_memcpy(two, four, sizeof two);
    const __m256i a = _mm256_set1_epi32(two[0]), b = _mm256_set1_epi32(two[1]);
    return {dot8(sums.low, pairs.first[0], pairs.second[0], a, b),
            dot8(sums.high, pairs.first[1], pairs.second[1], a, b)};
  }
  static V less(Sums sums, int32_t offset) {
    const __m256i off = _mm256_set1_epi32(offset);
    return {_mm256_cvtepi32_ps(_mm256_sub_epi32(sums.low, off)),
            _mm256_cvtepi32_ps(_mm256_sub_epi32(sums.high, off))};
  }
  static V nearest(V v) {
    constexpr int kEven = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_ps(v.low, kEven), _mm256_round_ps(v.high, kEven)};
  }
  static void store_i16(int16_t* out, V v) {
    const __m256i packed = _mm256_packs_epi32(_mm256_cvtps_epi32(v.low), _mm256_cvtps_epi32(v.high));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_permute4x64_epi64(packed, 0xd8));
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

CodeAttention attention_codes_avx2() noexcept {
  using Dots = F32Dots<Avx2Lanes, Bf16Pages, 4, 1>;
  static constexpr AttentionKernels q8_0 =
      CodeAttentionOf<Dots, Q8Pages, CodeDots<Avx2Lanes, Codes8, 4, 1>>::table("Q8_0 pages, AVX2");
  static constexpr AttentionKernels q4_0 =
      CodeAttentionOf<Dots, Q4Pages, CodeDots<Avx2Lanes, Codes4, 4, 1>>::table("Q4_0 pages, AVX2");
  return {&q8_0, &q4_0};
}

}  // namespace liuli::kernels
