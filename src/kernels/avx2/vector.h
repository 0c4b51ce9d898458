// Sixteen lanes of a panel in two 256-bit registers: what granule_types.h and its kernels are written over.
// Private to the .cpp files here and in avxvnni/ (which put its products of bytes in place of vpmaddubsw): everything has internal linkage, so that no AVX2 code is linked for other
// machines.
#pragma once
#include <immintrin.h>

#include "kernels/kernels.h"

#define LIULI_INLINE __attribute__((always_inline)) static inline

#include "kernels/twice.h"

namespace liuli::kernels {
namespace {

/// One register.
struct EightLanes {
  static constexpr int kLanes = 8;
  using I = __m256i;
  using F = __m256;

  LIULI_INLINE I load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  LIULI_INLINE F load_f32(const float* p) { return _mm256_loadu_ps(p); }
  LIULI_INLINE F load_half(const void* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  }
  LIULI_INLINE I load_u16(const void* p) {
    return _mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  }
  LIULI_INLINE I load_u8(const void* p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
  }
  LIULI_INLINE void store(void* p, I v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
  LIULI_INLINE void store(float* p, F v) { _mm256_storeu_ps(p, v); }

  LIULI_INLINE I zero() { return _mm256_setzero_si256(); }
  LIULI_INLINE F zero_f32() { return _mm256_setzero_ps(); }
  LIULI_INLINE I bytes(int value) { return _mm256_set1_epi8(static_cast<char>(value)); }
  LIULI_INLINE I words(int value) { return _mm256_set1_epi32(value); }
  LIULI_INLINE F set(float value) { return _mm256_set1_ps(value); }

  /// Every 32-bit lane to the right by S (to the left if negative).
  template <int S>
  LIULI_INLINE I shift(I v) {
    if constexpr (S > 0)
      return _mm256_srli_epi32(v, S);
    else if constexpr (S < 0)
      return _mm256_slli_epi32(v, -S);
    else
      return v;
  }
  LIULI_INLINE I band(I a, I b) { return _mm256_and_si256(a, b); }
  LIULI_INLINE I or_and(I a, I b, I mask) { return _mm256_or_si256(a, _mm256_and_si256(b, mask)); }
  LIULI_INLINE I subtract_bytes(I a, I b) { return _mm256_sub_epi8(a, b); }
  LIULI_INLINE I add(I a, I b) { return _mm256_add_epi32(a, b); }
  LIULI_INLINE I add_bytes(I a, I b) { return _mm256_add_epi8(a, b); }
  LIULI_INLINE I bor(I a, I b) { return _mm256_or_si256(a, b); }
  LIULI_INLINE I bxor(I a, I b) { return _mm256_xor_si256(a, b); }
  LIULI_INLINE bool any(I v) { return !_mm256_testz_si256(v, v); }
  /// Every 32-bit lane to the right by n.
  LIULI_INLINE I shift_by(I v, int n) { return _mm256_srl_epi32(v, _mm_cvtsi32_si128(n)); }
  template <int S>
  LIULI_INLINE I signed_shift(I v) {
    return _mm256_srai_epi32(v, S);
  }
  /// The top bit of every 32-bit lane in all of its bits.
  LIULI_INLINE I top_bit(I v) { return _mm256_srai_epi32(v, 31); }
  /// Every byte times M, modulo 256.
  template <int M>
  LIULI_INLINE I multiply_bytes(I v) {
    if constexpr (M == 1) return v;
    if constexpr (M == 3) return add_bytes(v, add_bytes(v, v));
    const I m = _mm256_set1_epi16(M), odd = _mm256_set1_epi16(static_cast<short>(0xff00));
    return bor(_mm256_mullo_epi16(band(v, odd), m), _mm256_andnot_si256(odd, _mm256_mullo_epi16(v, m)));
  }
  /// 64 · ⌊3 b / 256⌋ of every byte b: rounding averages of b − 1 (but 0 of 0) and nothing give ⌈3 b / 4⌉.
  LIULI_INLINE I thirds64(I v) {
    const I b = _mm256_subs_epu8(v, bytes(1));
    return band(_mm256_avg_epu8(b, _mm256_avg_epu8(b, zero())), bytes(0xC0));
  }
  /// Where a < b (signed), then; else otherwise.
  LIULI_INLINE I if_less(I a, I b, I then, I otherwise) {
    return _mm256_blendv_epi8(otherwise, then, _mm256_cmpgt_epi32(b, a));
  }
  LIULI_INLINE I if_equal(I a, I b, I then, I otherwise) {
    return _mm256_blendv_epi8(otherwise, then, _mm256_cmpeq_epi32(a, b));
  }
  LIULI_INLINE I as_words(F v) { return _mm256_castps_si256(v); }
  LIULI_INLINE F as_f32(I v) { return _mm256_castsi256_ps(v); }
  /// The low 16 bits of every lane, an f16.
  LIULI_INLINE F half_of_word(I v) {
    const I low = band(v, words(0xffff)), packed = _mm256_packus_epi32(low, low);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
  }
  /// Bytes of 128 ± magnitude from 128 + magnitude: bits [first, first + 4) of byte P of each lane say which are negative.
  template <int P, int first>
  LIULI_INLINE I with_signs(I code, I signs) {
    const I spread = _mm256_shuffle_epi8(
        signs, _mm256_setr_epi32(0x01010101 * P, 0x04040404 + 0x01010101 * P, 0x08080808 + 0x01010101 * P,
                                 0x0C0C0C0C + 0x01010101 * P, 0x01010101 * P, 0x04040404 + 0x01010101 * P,
                                 0x08080808 + 0x01010101 * P, 0x0C0C0C0C + 0x01010101 * P));
    const I bits = words(0x08040201 << first), negative = _mm256_cmpeq_epi8(band(spread, bits), bits);
    return subtract_bytes(bxor(code, negative), negative);
  }
  /// Entry index[2 · lane] of a table of quads for every lane.
  LIULI_INLINE void gather(const uint32_t* table, const uint16_t* index, I (&quads)[1]) {
    const auto entry = [&](int lane) { return static_cast<int>(table[index[2 * lane]]); };
    quads[0] =
        _mm256_setr_epi32(entry(0), entry(1), entry(2), entry(3), entry(4), entry(5), entry(6), entry(7));
  }
  /// The same of a table of pairs of quads.
  LIULI_INLINE void gather(const uint64_t* table, const uint16_t* index, I (&quads)[2]) {
    const auto entry = [&](int lane) { return static_cast<int64_t>(table[index[2 * lane]]); };
    const F first = as_f32(_mm256_setr_epi64x(entry(0), entry(1), entry(4), entry(5))),
            second = as_f32(_mm256_setr_epi64x(entry(2), entry(3), entry(6), entry(7)));
    quads[0] = as_words(_mm256_shuffle_ps(first, second, 0x88));
    quads[1] = as_words(_mm256_shuffle_ps(first, second, 0xdd));
  }
  LIULI_INLINE I lookup(const uint8_t* table16, I index) {
    return _mm256_shuffle_epi8(
        _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table16))), index);
  }

  LIULI_INLINE F to_f32(I v) { return _mm256_cvtepi32_ps(v); }
  /// Byte J of every lane as f32.
  template <int J>
  LIULI_INLINE F unsigned_byte(I v) {
    if constexpr (J == 3)
      return to_f32(_mm256_srli_epi32(v, 24));
    else
      return to_f32(band(shift<8 * J>(v), words(255)));
  }
  template <int J>
  LIULI_INLINE F signed_byte(I v) {
    return to_f32(_mm256_srai_epi32(shift<8 * J - 24>(v), 24));
  }
  LIULI_INLINE F add(F a, F b) { return _mm256_add_ps(a, b); }
  LIULI_INLINE F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  LIULI_INLINE F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  LIULI_INLINE F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  LIULI_INLINE F div(F a, F b) { return _mm256_div_ps(a, b); }
  LIULI_INLINE F sqrt(F a) { return _mm256_sqrt_ps(a); }
  LIULI_INLINE F larger(F a, F b) { return _mm256_max_ps(a, b); }  ///< b where either is NaN
  /// max(a, |b|) for a ≥ 0, by their bits: NaN is the largest.
  LIULI_INLINE F larger_magnitude(F a, F b) {
    const I magnitude = _mm256_and_si256(_mm256_castps_si256(b), _mm256_set1_epi32(0x7fffffff));
    return _mm256_castsi256_ps(_mm256_max_epu32(_mm256_castps_si256(a), magnitude));
  }
  /// 0 where v < least, else v (also NaN).
  LIULI_INLINE F drop_below(F v, float least) {
    return _mm256_and_ps(v, _mm256_cmp_ps(v, set(least), _CMP_NLT_UQ));
  }
  /// Two columns, rounded to nearest even, as 16-bit integers side by side in every lane; 0 where they do not fit.
  LIULI_INLINE I pair_of_int16(F even, F odd) {
    return _mm256_blend_epi16(_mm256_cvtps_epi32(even), _mm256_slli_epi32(_mm256_cvtps_epi32(odd), 16), 0xaa);
  }

  /// sum + 128 times the four signed bytes of every lane; no pair of them leaves 16 bits.
  LIULI_INLINE I add_128_times_bytes(I sum, I v) {
    return add(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(bytes(128), v), _mm256_set1_epi16(1)));
  }

#ifdef LIULI_VNNI_NAME
  /// A dot product of unsigned codes and x16 activations: the high plane's sum and the low plane's.
  struct Sum {
    I high, low;
  };
  /// Of Σ (code − offset) · q, where negative_sum is −Σ q.
  LIULI_INLINE Sum start(int32_t negative_sum, int offset) { return {zero(), words(negative_sum * offset)}; }
  /// Four columns beginning at `column`, one granule of codes (no matter how large, or which of the sum's).
  template <int bits, int j, int n>
  LIULI_INLINE void dot(Sum& sum, I code, const ActivationChunk& act, int column) {
    sum.high = dot_bytes(sum.high, code, broadcast4(act.hi + column));
    sum.low = dot_bytes(sum.low, code, broadcast4(act.lo + column));
  }
  LIULI_INLINE I finish(const Sum& sum) { return add(sum.low, shift<-8>(sum.high)); }
#else
  /// A dot product of unsigned codes and x16 activations.
  struct Sum {
    I total;      // 32 bits
    I high, low;  // of the two planes: pairs' sums in 16 bits, not yet in total
  };
  /// Of Σ (code − offset) · q, where negative_sum is −Σ q.
  LIULI_INLINE Sum start(int32_t negative_sum, int offset) {
    return {words(negative_sum * offset), zero(), zero()};
  }
  /// Four columns beginning at `column`, quad j of the sum's n; codes are below 2^bits.
  template <int bits, int j, int n>
  LIULI_INLINE void dot(Sum& sum, I code, const ActivationChunk& act, int column) {
    if constexpr (bits <= 6)
      dot_planes<bits, j, n>(sum, code, act, column);
    else
      dot_words(sum, code, act, column);
  }
  LIULI_INLINE I finish(const Sum& sum) { return sum.total; }
#endif

  /// [8 rows][2] 16-bit floats: the even columns or the odd ones. (Both take the same two shuffles.)
  template <bool odd>
  LIULI_INLINE F half_of_pair(const void* p) {
    const I evens_first =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    const I sorted = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(load(p), evens_first), 0xd8);
    return _mm256_cvtph_ps(_mm256_extracti128_si256(sorted, odd));
  }
  template <bool odd>
  LIULI_INLINE F bf16_of_pair(const void* p) {
    const I v = load(p);
    return _mm256_castsi256_ps(odd ? band(v, words(static_cast<int>(0xffff0000))) : shift<-16>(v));
  }

  /// Two columns to bf16, round to nearest even, side by side in every lane.
  LIULI_INLINE I pair_of_bf16(F even, F odd) {
    return or_and(shift<16>(rounded(even)), rounded(odd), words(static_cast<int>(0xffff0000)));
  }

 private:
#ifndef LIULI_VNNI_NAME
  // Small codes times each plane: vpmaddubsw adds two products in 16 bits, and most of their sums fit there, too.
  template <int bits, int j, int n>
  LIULI_INLINE void dot_planes(Sum& sum, I code, const ActivationChunk& act, int column) {
    constexpr int largest = ((1 << bits) - 1) * 2 * 128, most = 32767 / largest;
    static_assert(most >= 1);
    const I high = _mm256_maddubs_epi16(code, broadcast4(act.hi + column)),
            low = _mm256_maddubs_epi16(code, broadcast4(act.lo + column));
    if constexpr (j % most == 0) {
      sum.high = high, sum.low = low;
    } else {
      sum.high = in_order(_mm256_add_epi16(sum.high, high));
      sum.low = in_order(_mm256_add_epi16(sum.low, low));
    }
    if constexpr (j % most == most - 1 || j == n - 1) {
      sum.total = add(sum.total, _mm256_madd_epi16(sum.high, _mm256_set1_epi16(256)));
      sum.total = in_order(add(sum.total, _mm256_madd_epi16(sum.low, _mm256_set1_epi16(1))));
    }
  }
  // Codes of eight bits, widened to 16: columns 0 and 2 of the four, then 1 and 3. (2 · 255 · 127 does not fit 16 bits;
  // 255 · 32512 · 32 < 2^31 fits the total.)
  LIULI_INLINE void dot_words(Sum& sum, I code, const ActivationChunk& act, int column) {
    const I even = band(code, words(0x00ff00ff)), odd = _mm256_srli_epi16(code, 8);
    sum.total = in_order(add(sum.total, _mm256_madd_epi16(even, broadcast4(act.q + column))));
    sum.total = in_order(add(sum.total, _mm256_madd_epi16(odd, broadcast4(act.q + column + 2))));
  }
  // Keeps GCC from turning a chain of additions into a tree whose leaves it then spills: Q4_0 21.7 -> 26.4 GiB/s in cache.
  LIULI_INLINE I in_order(I sum) {
    asm("" : "+x"(sum));
    return sum;
  }
#endif
  /// The four bytes at p in every lane.
  LIULI_INLINE I broadcast4(const void* p) {
    int32_t four;
    __builtin_memcpy(&four, p, 4);
    return words(four);
  }
  // The upper 16 bits are the bf16. A NaN keeps its payload and becomes quiet: adding could carry it into
  // infinity.
  LIULI_INLINE I rounded(F v) {
    const I u = _mm256_castps_si256(v);
    const I sum = add(add(u, words(0x7fff)), band(shift<16>(u), words(1)));
    const F nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
    const F quiet = _mm256_castsi256_ps(_mm256_or_si256(u, words(0x400000)));
    return _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(sum), quiet, nan));
  }
};

struct Vec : Twice<EightLanes> {
  static constexpr int kSums = 4;  ///< of sixteen lanes, that fit the registers beside their operands
};

}  // namespace
}  // namespace liuli::kernels
