// Sixteen lanes of a panel in four 128-bit registers: what granule_types.h and its kernels are written over.
// Private to the .cpp files here; avx2/vector.h has the same operations.
#pragma once
#include <arm_neon.h>

#include "kernels/kernels.h"

#define LIULI_INLINE __attribute__((always_inline)) static inline

#include "kernels/twice.h"

namespace liuli::kernels {
namespace {

/// One register.
struct FourLanes {
  static constexpr int kLanes = 4;
  using I = uint32x4_t;
  using F = float32x4_t;

  LIULI_INLINE I load(const void* p) {
    return vreinterpretq_u32_u8(vld1q_u8(static_cast<const uint8_t*>(p)));
  }
  LIULI_INLINE F load_f32(const float* p) { return vld1q_f32(p); }
  LIULI_INLINE F load_half(const void* p) { return from_half(load_words16(p)); }
  LIULI_INLINE I load_u16(const void* p) { return vmovl_u16(load_words16(p)); }
  LIULI_INLINE I load_u8(const void* p) {
    uint32_t four;
    __builtin_memcpy(&four, p, 4);
    return vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(four))));
  }
  LIULI_INLINE void store(void* p, I v) { vst1q_u8(static_cast<uint8_t*>(p), vreinterpretq_u8_u32(v)); }
  LIULI_INLINE void store(float* p, F v) { vst1q_f32(p, v); }

  LIULI_INLINE I zero() { return words(0); }
  LIULI_INLINE F zero_f32() { return set(0.0f); }
  LIULI_INLINE I bytes(int value) { return vreinterpretq_u32_u8(vdupq_n_u8(static_cast<uint8_t>(value))); }
  LIULI_INLINE I words(int value) { return vdupq_n_u32(static_cast<uint32_t>(value)); }
  LIULI_INLINE F set(float value) { return vdupq_n_f32(value); }

  /// Every 32-bit lane to the right by S (to the left if negative).
  template <int S>
  LIULI_INLINE I shift(I v) {
    if constexpr (S > 0)
      return vshrq_n_u32(v, S);
    else if constexpr (S < 0)
      return vshlq_n_u32(v, -S);
    else
      return v;
  }
  LIULI_INLINE I band(I a, I b) { return vandq_u32(a, b); }
  LIULI_INLINE I or_and(I a, I b, I mask) { return vorrq_u32(a, vandq_u32(b, mask)); }
  LIULI_INLINE I subtract_bytes(I a, I b) { return from_bytes(vsubq_u8(as_bytes(a), as_bytes(b))); }
  LIULI_INLINE I add(I a, I b) { return vaddq_u32(a, b); }
  LIULI_INLINE I add_bytes(I a, I b) { return from_bytes(vaddq_u8(as_bytes(a), as_bytes(b))); }
  LIULI_INLINE I bor(I a, I b) { return vorrq_u32(a, b); }
  LIULI_INLINE I bxor(I a, I b) { return veorq_u32(a, b); }
  LIULI_INLINE bool any(I v) { return vmaxvq_u32(v) != 0; }
  /// Every 32-bit lane to the right by n.
  LIULI_INLINE I shift_by(I v, int n) { return vshlq_u32(v, vdupq_n_s32(-n)); }
  template <int S>
  LIULI_INLINE I signed_shift(I v) {
    return vreinterpretq_u32_s32(vshrq_n_s32(vreinterpretq_s32_u32(v), S));
  }
  /// The top bit of every 32-bit lane in all of its bits.
  LIULI_INLINE I top_bit(I v) { return signed_shift<31>(v); }
  /// Every byte times M, modulo 256.
  template <int M>
  LIULI_INLINE I multiply_bytes(I v) {
    if constexpr (M == 1) return v;
    return from_bytes(vmulq_u8(as_bytes(v), vdupq_n_u8(M)));
  }
  /// 64 · ⌊3 b / 256⌋ of every byte b: one from 86 on, two from 171 on.
  LIULI_INLINE I thirds64(I v) {
    const uint8x16_t b = as_bytes(v), one = vcgeq_u8(b, vdupq_n_u8(86)), two = vcgeq_u8(b, vdupq_n_u8(171));
    return from_bytes(vaddq_u8(vandq_u8(one, vdupq_n_u8(64)), vandq_u8(two, vdupq_n_u8(64))));
  }
  /// Where a < b (signed), then; else otherwise.
  LIULI_INLINE I if_less(I a, I b, I then, I otherwise) {
    return vbslq_u32(vcltq_s32(vreinterpretq_s32_u32(a), vreinterpretq_s32_u32(b)), then, otherwise);
  }
  LIULI_INLINE I if_equal(I a, I b, I then, I otherwise) {
    return vbslq_u32(vceqq_u32(a, b), then, otherwise);
  }
  LIULI_INLINE I as_words(F v) { return vreinterpretq_u32_f32(v); }
  LIULI_INLINE F as_f32(I v) { return vreinterpretq_f32_u32(v); }
  /// The low 16 bits of every lane, an f16.
  LIULI_INLINE F half_of_word(I v) { return from_half(vmovn_u32(v)); }
  /// Bytes of 128 ± magnitude from 128 + magnitude: bits [first, first + 4) of byte P of each lane say which are negative.
  template <int P, int first>
  LIULI_INLINE I with_signs(I code, I signs) {
    alignas(16) static constexpr uint8_t kSpread[16] = {
        P, P, P, P, P + 4, P + 4, P + 4, P + 4, P + 8, P + 8, P + 8, P + 8, P + 12, P + 12, P + 12, P + 12};
    const uint8x16_t bits = vreinterpretq_u8_u32(vdupq_n_u32(0x08040201u << first)),
                     negative = vtstq_u8(vqtbl1q_u8(as_bytes(signs), vld1q_u8(kSpread)), bits);
    return from_bytes(vsubq_u8(veorq_u8(as_bytes(code), negative), negative));
  }
  /// Entry index[2 · lane] of a table of quads for every lane.
  LIULI_INLINE void gather(const uint32_t* table, const uint16_t* index, I (&quads)[1]) {
    quads[0] = I{table[index[0]], table[index[2]], table[index[4]], table[index[6]]};
  }
  /// The same of a table of pairs of quads.
  LIULI_INLINE void gather(const uint64_t* table, const uint16_t* index, I (&quads)[2]) {
    const uint64x2_t first = {table[index[0]], table[index[2]]}, second = {table[index[4]], table[index[6]]};
    quads[0] = vuzp1q_u32(vreinterpretq_u32_u64(first), vreinterpretq_u32_u64(second));
    quads[1] = vuzp2q_u32(vreinterpretq_u32_u64(first), vreinterpretq_u32_u64(second));
  }
  LIULI_INLINE I lookup(const uint8_t* table16, I index) {
    return from_bytes(vqtbl1q_u8(vld1q_u8(table16), as_bytes(index)));
  }

  LIULI_INLINE F to_f32(I v) { return vcvtq_f32_s32(vreinterpretq_s32_u32(v)); }
  /// Byte J of every lane as f32.
  template <int J>
  LIULI_INLINE F unsigned_byte(I v) {
    if constexpr (J == 3)
      return to_f32(shift<24>(v));
    else
      return to_f32(band(shift<8 * J>(v), words(255)));
  }
  template <int J>
  LIULI_INLINE F signed_byte(I v) {
    return to_f32(signed_shift<24>(shift<8 * J - 24>(v)));
  }
  LIULI_INLINE F add(F a, F b) { return vaddq_f32(a, b); }
  LIULI_INLINE F sub(F a, F b) { return vsubq_f32(a, b); }
  LIULI_INLINE F mul(F a, F b) { return vmulq_f32(a, b); }
  LIULI_INLINE F fma(F a, F b, F c) { return vfmaq_f32(c, a, b); }
  LIULI_INLINE F div(F a, F b) { return vdivq_f32(a, b); }
  LIULI_INLINE F sqrt(F a) { return vsqrtq_f32(a); }
  LIULI_INLINE F larger(F a, F b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }  ///< b where either is NaN
  /// max(a, |b|) for a ≥ 0, by their bits: NaN is the largest.
  LIULI_INLINE F larger_magnitude(F a, F b) {
    return as_f32(vmaxq_u32(as_words(a), band(as_words(b), words(0x7fffffff))));
  }
  /// 0 where v < least, else v (also NaN).
  LIULI_INLINE F drop_below(F v, float least) {
    return as_f32(vbicq_u32(as_words(v), vcltq_f32(v, set(least))));
  }
  /// Two columns, rounded to nearest even, as 16-bit integers side by side in every lane; 0 where they do not fit.
  LIULI_INLINE I pair_of_int16(F even, F odd) { return vsliq_n_u32(nearest(even), nearest(odd), 16); }

  /// A dot product of unsigned codes and x16 activations in two planes. sdot wants signed bytes, so it multiplies
  /// code − 128, and the sum begins with what that leaves out.
  struct Sum {
    int32x4_t high, low;
  };
  /// Of Σ (code − offset) · q, where negative_sum is −Σ q.
  LIULI_INLINE Sum start(int32_t negative_sum, int offset) {
    return {vdupq_n_s32(0), vdupq_n_s32(negative_sum * (offset - 128))};
  }
  /// Four columns beginning at `column`, one granule of codes (no matter how large, or which of the sum's).
  template <int bits, int j, int n>
  LIULI_INLINE void dot(Sum& sum, I code, const ActivationChunk& act, int column) {
    const int8x16_t signed_code = vreinterpretq_s8_u8(veorq_u8(as_bytes(code), vdupq_n_u8(128)));
    sum.high = vdotq_s32(sum.high, signed_code, broadcast4(act.hi + column));
    sum.low = vdotq_s32(sum.low, signed_code, broadcast4(act.lo + column));
  }
  LIULI_INLINE I finish(const Sum& sum) {
    return vreinterpretq_u32_s32(vaddq_s32(sum.low, vshlq_n_s32(sum.high, 8)));
  }

  /// [4 rows][2] 16-bit floats: the even columns or the odd ones.
  template <bool odd>
  LIULI_INLINE F half_of_pair(const void* p) {
    return half_of_word(shift < odd ? 16 : 0 > (load(p)));
  }
  template <bool odd>
  LIULI_INLINE F bf16_of_pair(const void* p) {
    const I v = load(p);
    return as_f32(odd ? band(v, words(static_cast<int>(0xffff0000))) : shift<-16>(v));
  }

  /// Two columns to bf16, round to nearest even, side by side in every lane.
  LIULI_INLINE I pair_of_bf16(F even, F odd) {
    return or_and(shift<16>(rounded(even)), rounded(odd), words(static_cast<int>(0xffff0000)));
  }

 private:
  LIULI_INLINE uint8x16_t as_bytes(I v) { return vreinterpretq_u8_u32(v); }
  LIULI_INLINE I from_bytes(uint8x16_t v) { return vreinterpretq_u32_u8(v); }
  // To the nearest even integer; what is too large for 32 bits to 0 (in the lower 16 bits).
  LIULI_INLINE I nearest(F v) {
    const I n = vreinterpretq_u32_s32(vcvtnq_s32_f32(v));
    return vbicq_u32(n, vceqq_u32(n, vdupq_n_u32(0x7fffffff)));
  }
  LIULI_INLINE uint16x4_t load_words16(const void* p) {
    return vreinterpret_u16_u8(vld1_u8(static_cast<const uint8_t*>(p)));
  }
  LIULI_INLINE F from_half(uint16x4_t v) { return vcvt_f32_f16(vreinterpret_f16_u16(v)); }
  LIULI_INLINE int8x16_t broadcast4(const int8_t* p) {
    int32_t four;
    __builtin_memcpy(&four, p, 4);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
  }
  // The upper 16 bits are the bf16. A NaN keeps its payload and becomes quiet: adding could carry it into infinity.
  LIULI_INLINE I rounded(F v) {
    const I u = as_words(v), odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
    const I sum = vaddq_u32(vaddq_u32(u, vdupq_n_u32(0x7fff)), odd);
    return vbslq_u32(vceqq_f32(v, v), sum, vorrq_u32(u, vdupq_n_u32(0x400000)));
  }
};

struct Vec : Twice<Twice<FourLanes>> {
  static constexpr int kSums = 4;  ///< of sixteen lanes, that fit the registers beside their operands
};

}  // namespace
}  // namespace liuli::kernels
