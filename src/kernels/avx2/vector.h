// Eight lanes of a panel in one 256-bit register: what granule_types.h and its kernels are written over.
// Private to the .cpp files here: everything has internal linkage, so that no AVX2 code is linked for other
// machines.
#pragma once
#include <immintrin.h>

#include "kernels/kernels.h"

#define LIULI_INLINE __attribute__((always_inline)) static inline

namespace liuli::kernels {
namespace {

struct Vec {
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

  /// A dot product of unsigned codes and x16 activations. 255 · 32512 · 32 < 2^31: it cannot overflow.
  /// (vpmaddubsw would saturate: 2 · 255 · 127 > 2^15.)
  using Sum = I;
  LIULI_INLINE Sum start(int32_t value) { return words(value); }
  /// Four columns beginning at `column`, one granule of codes: columns 0 and 2 of it, then 1 and 3.
  LIULI_INLINE void dot(Sum& sum, I code, const ActivationChunk& act, int column) {
    const I even = band(code, words(0x00ff00ff)), odd = _mm256_srli_epi16(code, 8);
    sum = add(sum, _mm256_madd_epi16(even, broadcast2(act.q + column)));
    sum = add(sum, _mm256_madd_epi16(odd, broadcast2(act.q + column + 2)));
  }
  LIULI_INLINE I finish(const Sum& sum) { return sum; }

  /// [8 rows][2] 16-bit floats: the even columns or the odd ones.
  template <bool odd>
  LIULI_INLINE F half_of_pair(const void* p) {
    const I v = shift < odd ? 16 : 0 > (load(p)), low = odd ? v : band(v, words(0xffff));
    const I packed = _mm256_packus_epi32(low, low);  // within each half
    return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
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
  LIULI_INLINE I broadcast2(const int16_t* p) {
    int32_t two;
    __builtin_memcpy(&two, p, 4);
    return words(two);
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

}  // namespace
}  // namespace liuli::kernels
