// Sixteen lanes of a panel in one 512-bit register: what granule_types.h and its kernels are written
// over. Private to the .cpp files here: everything has internal linkage, so that no AVX-512 code is linked
// for other machines.
#pragma once
#include <immintrin.h>

#include "kernels/kernels.h"

#define LIULI_INLINE __attribute__((always_inline)) static inline

namespace liuli::kernels {
namespace {

struct Vec {
  static constexpr int kLanes = 16;
  static constexpr int kSums = 16;  ///< that fit the registers beside their operands
  using I = __m512i;
  using F = __m512;

  LIULI_INLINE I load(const void* p) { return _mm512_loadu_si512(p); }
  LIULI_INLINE F load_f32(const float* p) { return _mm512_loadu_ps(p); }
  LIULI_INLINE F load_half(const void* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  }
  LIULI_INLINE I load_u16(const void* p) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  }
  LIULI_INLINE I load_u8(const void* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  }
  LIULI_INLINE void store(void* p, I v) { _mm512_storeu_si512(p, v); }
  LIULI_INLINE void store(float* p, F v) { _mm512_storeu_ps(p, v); }

  LIULI_INLINE I zero() { return _mm512_setzero_si512(); }
  LIULI_INLINE F zero_f32() { return _mm512_setzero_ps(); }
  LIULI_INLINE I bytes(int value) { return _mm512_set1_epi8(static_cast<char>(value)); }
  LIULI_INLINE I words(int value) { return _mm512_set1_epi32(value); }
  LIULI_INLINE F set(float value) { return _mm512_set1_ps(value); }

  /// Every 32-bit lane to the right by S (to the left if negative).
  template <int S>
  LIULI_INLINE I shift(I v) {
    if constexpr (S > 0)
      return _mm512_srli_epi32(v, S);
    else if constexpr (S < 0)
      return _mm512_slli_epi32(v, -S);
    else
      return v;
  }
  LIULI_INLINE I band(I a, I b) { return _mm512_and_si512(a, b); }
  LIULI_INLINE I or_and(I a, I b, I mask) {
    return _mm512_ternarylogic_epi32(a, b, mask, 0xF8);
  }  // a | (b & mask)
  LIULI_INLINE I subtract_bytes(I a, I b) { return _mm512_sub_epi8(a, b); }
  LIULI_INLINE I add(I a, I b) { return _mm512_add_epi32(a, b); }
  LIULI_INLINE I add_bytes(I a, I b) { return _mm512_add_epi8(a, b); }
  LIULI_INLINE I bor(I a, I b) { return _mm512_or_si512(a, b); }
  LIULI_INLINE I bxor(I a, I b) { return _mm512_xor_si512(a, b); }
  LIULI_INLINE bool any(I v) { return _mm512_test_epi32_mask(v, v) != 0; }
  /// Every 32-bit lane to the right by n.
  LIULI_INLINE I shift_by(I v, int n) { return _mm512_srl_epi32(v, _mm_cvtsi32_si128(n)); }
  template <int S>
  LIULI_INLINE I signed_shift(I v) {
    return _mm512_srai_epi32(v, S);
  }
  /// The top bit of every 32-bit lane in all of its bits.
  LIULI_INLINE I top_bit(I v) { return _mm512_srai_epi32(v, 31); }
  /// Every byte times M, modulo 256.
  template <int M>
  LIULI_INLINE I multiply_bytes(I v) {
    if constexpr (M == 1) return v;
    if constexpr (M == 3) return add_bytes(v, add_bytes(v, v));
    const I m = _mm512_set1_epi16(M), odd = _mm512_set1_epi16(static_cast<short>(0xff00));
    return _mm512_ternarylogic_epi32(_mm512_mullo_epi16(band(v, odd), m), _mm512_mullo_epi16(v, m), odd,
                                     0xF4);
  }
  /// 64 · ⌊3 b / 256⌋ of every byte b: rounding averages of b − 1 (but 0 of 0) and nothing give ⌈3 b / 4⌉.
  LIULI_INLINE I thirds64(I v) {
    const I b = _mm512_subs_epu8(v, bytes(1));
    return band(_mm512_avg_epu8(b, _mm512_avg_epu8(b, zero())), bytes(0xC0));
  }
  /// Where a < b (signed), then; else otherwise.
  LIULI_INLINE I if_less(I a, I b, I then, I otherwise) {
    return _mm512_mask_blend_epi32(_mm512_cmplt_epi32_mask(a, b), otherwise, then);
  }
  LIULI_INLINE I if_equal(I a, I b, I then, I otherwise) {
    return _mm512_mask_blend_epi32(_mm512_cmpeq_epi32_mask(a, b), otherwise, then);
  }
  LIULI_INLINE I as_words(F v) { return _mm512_castps_si512(v); }
  LIULI_INLINE F as_f32(I v) { return _mm512_castsi512_ps(v); }
  /// The low 16 bits of every lane, an f16.
  LIULI_INLINE F half_of_word(I v) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v)); }
  /// Bytes of 128 ± magnitude from 128 + magnitude: bits [first, first + 4) of byte P of each lane say which are negative.
  template <int P, int first>
  LIULI_INLINE I with_signs(I code, I signs) {
    const I spread =
        _mm512_shuffle_epi8(signs, _mm512_set4_epi32(0x0C0C0C0C + 0x01010101 * P, 0x08080808 + 0x01010101 * P,
                                                     0x04040404 + 0x01010101 * P, 0x01010101 * P));
    const __mmask64 negative = _mm512_test_epi8_mask(spread, words(0x08040201 << first));
    return _mm512_mask_sub_epi8(code, negative, zero(), code);
  }
  /// Entry idx of a table of n words for every 16-bit lane; bits from log2(n) on do not count. One vpermi2w holds 64.
  static constexpr bool kLooksUpWords = true;
  template <int n>
  LIULI_INLINE I lookup_words(const uint16_t* table, I idx) {
    if constexpr (n == 64) {
      return _mm512_permutex2var_epi16(load(table), idx, load(table + 32));
    } else {
      const __mmask32 upper = _mm512_test_epi16_mask(idx, _mm512_set1_epi16(n / 2));
      return _mm512_mask_blend_epi16(upper, lookup_words<n / 2>(table, idx),
                                     lookup_words<n / 2>(table + n / 2, idx));
    }
  }
  /// The four nibbles of 16-bit word `half` of every 32-bit lane, a byte each.
  template <int half>
  LIULI_INLINE I nibbles_of_word(I v) {
    const I spread = _mm512_shuffle_epi8(
        v, _mm512_set4_epi32(0x0D0D0C0C + 0x02020202 * half, 0x09090808 + 0x02020202 * half,
                             0x05050404 + 0x02020202 * half, 0x01010000 + 0x02020202 * half));
    return or_and(band(spread, words(0x000f000f)), shift<4>(spread), words(0x0f000f00));
  }
  LIULI_INLINE I lookup(const uint8_t* table16, I index) {
    return _mm512_shuffle_epi8(
        _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table16))), index);
  }

  LIULI_INLINE F to_f32(I v) { return _mm512_cvtepi32_ps(v); }
  /// Byte J of every lane as f32.
  template <int J>
  LIULI_INLINE F unsigned_byte(I v) {
    if constexpr (J == 3) return to_f32(_mm512_srli_epi32(v, 24));
    const I pick = _mm512_set4_epi32(12 + J, 8 + J, 4 + J, J);
    return to_f32(_mm512_maskz_shuffle_epi8(0x1111111111111111ull, v, pick));
  }
  template <int J>
  LIULI_INLINE F signed_byte(I v) {
    return to_f32(_mm512_srai_epi32(shift<8 * J - 24>(v), 24));
  }
  LIULI_INLINE F add(F a, F b) { return _mm512_add_ps(a, b); }
  LIULI_INLINE F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  LIULI_INLINE F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  LIULI_INLINE F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  LIULI_INLINE F div(F a, F b) { return _mm512_div_ps(a, b); }
  LIULI_INLINE F sqrt(F a) { return _mm512_sqrt_ps(a); }
  LIULI_INLINE F larger(F a, F b) { return _mm512_max_ps(a, b); }  ///< b where either is NaN
  /// max(a, |b|) for a ≥ 0, by their bits: NaN is the largest.
  LIULI_INLINE F larger_magnitude(F a, F b) {
    const I magnitude = _mm512_and_si512(_mm512_castps_si512(b), _mm512_set1_epi32(0x7fffffff));
    return _mm512_castsi512_ps(_mm512_max_epu32(_mm512_castps_si512(a), magnitude));
  }
  /// 0 where v < least, else v (also NaN).
  LIULI_INLINE F drop_below(F v, float least) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, set(least), _CMP_NLT_UQ), v);
  }
  /// Two columns, rounded to nearest even, as 16-bit integers side by side in every lane; 0 where they do not fit.
  LIULI_INLINE I pair_of_int16(F even, F odd) {
    return _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_cvtps_epi32(even),
                                   _mm512_slli_epi32(_mm512_cvtps_epi32(odd), 16));
  }

  /// sum + 128 times the four signed bytes of every lane.
  LIULI_INLINE I add_128_times_bytes(I sum, I v) { return _mm512_dpbusd_epi32(sum, bytes(128), v); }

  /// A dot product of unsigned codes and x16 activations: the high plane's sum and the low plane's.
  struct Sum {
    I high, low;
  };
  /// Of Σ (code − offset) · q, where negative_sum is −Σ q.
  LIULI_INLINE Sum start(int32_t negative_sum, int offset) {
    return {zero(), _mm512_set1_epi32(negative_sum * offset)};
  }
  /// Four columns beginning at `column`, one granule of codes (no matter how large, or which of the sum's).
  template <int bits, int j, int n>
  LIULI_INLINE void dot(Sum& sum, I code, const ActivationChunk& act, int column) {
    sum.high = _mm512_dpbusd_epi32(sum.high, code, broadcast4(act.hi + column));
    sum.low = _mm512_dpbusd_epi32(sum.low, code, broadcast4(act.lo + column));
  }
  LIULI_INLINE I finish(const Sum& sum) { return _mm512_add_epi32(sum.low, _mm512_slli_epi32(sum.high, 8)); }

  /// [16 rows][2] 16-bit floats: the even columns or the odd ones.
  template <bool odd>
  LIULI_INLINE F half_of_pair(const void* p) {
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(shift < odd ? 16 : 0 > (load(p))));
  }
  template <bool odd>
  LIULI_INLINE F bf16_of_pair(const void* p) {
    const I v = load(p);
    return _mm512_castsi512_ps(odd ? band(v, words(static_cast<int>(0xffff0000))) : shift<-16>(v));
  }

  /// Two columns to bf16, round to nearest even, side by side in every lane.
  LIULI_INLINE I pair_of_bf16(F even, F odd) {
    return or_and(shift<16>(rounded(even)), rounded(odd), words(static_cast<int>(0xffff0000)));
  }

 private:
  LIULI_INLINE I broadcast4(const int8_t* p) {
    int32_t four;
    __builtin_memcpy(&four, p, 4);
    return _mm512_set1_epi32(four);
  }
  // The upper 16 bits are the bf16. A NaN keeps its payload and becomes quiet: adding could carry it into
  // infinity.
  LIULI_INLINE I rounded(F v) {
    const I u = _mm512_castps_si512(v);
    const I even = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    const I sum = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), even);
    return _mm512_mask_or_epi32(sum, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), u, _mm512_set1_epi32(0x400000));
  }
};

}  // namespace
}  // namespace liuli::kernels
