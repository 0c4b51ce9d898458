// Sixteen lanes of a panel in one 512-bit register: what granule_types.h and granule_kernels.h are written
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

  /// A dot product of unsigned codes and x16 activations: the high plane's sum and the low plane's.
  struct Sum {
    I high, low;
  };
  LIULI_INLINE Sum start(int32_t value) { return {zero(), _mm512_set1_epi32(value)}; }
  /// Four columns beginning at `column`, one granule of codes.
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
