// Eight lanes of a panel in two 128-bit registers: what granule_types.h and its kernels are written over.
// Private to the .cpp files here; avx2/vector.h has the same operations.
#pragma once
#include <arm_neon.h>

#include "kernels/kernels.h"

#define LIULI_INLINE __attribute__((always_inline)) static inline

namespace liuli::kernels {
namespace {

struct Vec {
  static constexpr int kLanes = 8;
  struct I {
    uint32x4_t low, high;
  };
  struct F {
    float32x4_t low, high;
  };

  LIULI_INLINE I load(const void* p) {
    const auto* bytes = static_cast<const uint8_t*>(p);
    return {vreinterpretq_u32_u8(vld1q_u8(bytes)), vreinterpretq_u32_u8(vld1q_u8(bytes + 16))};
  }
  LIULI_INLINE F load_f32(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
  LIULI_INLINE F load_half(const void* p) { return from_half(load_words16(p)); }
  LIULI_INLINE I load_u16(const void* p) {
    const uint16x8_t v = load_words16(p);
    return {vmovl_u16(vget_low_u16(v)), vmovl_high_u16(v)};
  }
  LIULI_INLINE I load_u8(const void* p) {
    const uint16x8_t v = vmovl_u8(vld1_u8(static_cast<const uint8_t*>(p)));
    return {vmovl_u16(vget_low_u16(v)), vmovl_high_u16(v)};
  }
  LIULI_INLINE void store(void* p, I v) {
    auto* bytes = static_cast<uint8_t*>(p);
    vst1q_u8(bytes, vreinterpretq_u8_u32(v.low));
    vst1q_u8(bytes + 16, vreinterpretq_u8_u32(v.high));
  }
  LIULI_INLINE void store(float* p, F v) {
    vst1q_f32(p, v.low);
    vst1q_f32(p + 4, v.high);
  }

  LIULI_INLINE I zero() { return words(0); }
  LIULI_INLINE F zero_f32() { return set(0.0f); }
  LIULI_INLINE I bytes(int value) {
    const uint32x4_t v = vreinterpretq_u32_u8(vdupq_n_u8(static_cast<uint8_t>(value)));
    return {v, v};
  }
  LIULI_INLINE I words(int value) {
    const uint32x4_t v = vdupq_n_u32(static_cast<uint32_t>(value));
    return {v, v};
  }
  LIULI_INLINE F set(float value) { return {vdupq_n_f32(value), vdupq_n_f32(value)}; }

  /// Every 32-bit lane to the right by S (to the left if negative).
  template <int S>
  LIULI_INLINE I shift(I v) {
    if constexpr (S > 0)
      return {vshrq_n_u32(v.low, S), vshrq_n_u32(v.high, S)};
    else if constexpr (S < 0)
      return {vshlq_n_u32(v.low, -S), vshlq_n_u32(v.high, -S)};
    else
      return v;
  }
  LIULI_INLINE I band(I a, I b) { return {vandq_u32(a.low, b.low), vandq_u32(a.high, b.high)}; }
  LIULI_INLINE I or_and(I a, I b, I mask) {
    return {vorrq_u32(a.low, vandq_u32(b.low, mask.low)), vorrq_u32(a.high, vandq_u32(b.high, mask.high))};
  }
  LIULI_INLINE I subtract_bytes(I a, I b) {
    return {by_bytes(vsubq_u8, a.low, b.low), by_bytes(vsubq_u8, a.high, b.high)};
  }
  LIULI_INLINE I add(I a, I b) { return {vaddq_u32(a.low, b.low), vaddq_u32(a.high, b.high)}; }
  LIULI_INLINE I add_bytes(I a, I b) {
    return {by_bytes(vaddq_u8, a.low, b.low), by_bytes(vaddq_u8, a.high, b.high)};
  }
  LIULI_INLINE I bor(I a, I b) { return {vorrq_u32(a.low, b.low), vorrq_u32(a.high, b.high)}; }
  LIULI_INLINE I bxor(I a, I b) { return {veorq_u32(a.low, b.low), veorq_u32(a.high, b.high)}; }
  LIULI_INLINE bool any(I v) { return vmaxvq_u32(vorrq_u32(v.low, v.high)) != 0; }
  /// Every 32-bit lane to the right by n.
  LIULI_INLINE I shift_by(I v, int n) {
    const int32x4_t by = vdupq_n_s32(-n);
    return {vshlq_u32(v.low, by), vshlq_u32(v.high, by)};
  }
  template <int S>
  LIULI_INLINE I signed_shift(I v) {
    return {vreinterpretq_u32_s32(vshrq_n_s32(vreinterpretq_s32_u32(v.low), S)),
            vreinterpretq_u32_s32(vshrq_n_s32(vreinterpretq_s32_u32(v.high), S))};
  }
  /// The top bit of every 32-bit lane in all of its bits.
  LIULI_INLINE I top_bit(I v) { return signed_shift<31>(v); }
  /// Every byte times M, modulo 256.
  template <int M>
  LIULI_INLINE I multiply_bytes(I v) {
    if constexpr (M == 1) return v;
    const uint32x4_t m = bytes(M).low;
    return {by_bytes(vmulq_u8, v.low, m), by_bytes(vmulq_u8, v.high, m)};
  }
  /// 64 · ⌊3 b / 256⌋ of every byte b: one from 86 on, two from 171 on.
  LIULI_INLINE I thirds64(I v) {
    const auto of = [](uint8x16_t b, uint8x16_t) {
      const uint8x16_t one = vcgeq_u8(b, vdupq_n_u8(86)), two = vcgeq_u8(b, vdupq_n_u8(171));
      return vaddq_u8(vandq_u8(one, vdupq_n_u8(64)), vandq_u8(two, vdupq_n_u8(64)));
    };
    return {by_bytes(of, v.low, v.low), by_bytes(of, v.high, v.high)};
  }
  /// Where a < b (signed), then; else otherwise.
  LIULI_INLINE I if_less(I a, I b, I then, I otherwise) {
    const auto less = [](uint32x4_t x, uint32x4_t y) {
      return vcltq_s32(vreinterpretq_s32_u32(x), vreinterpretq_s32_u32(y));
    };
    return {vbslq_u32(less(a.low, b.low), then.low, otherwise.low),
            vbslq_u32(less(a.high, b.high), then.high, otherwise.high)};
  }
  LIULI_INLINE I if_equal(I a, I b, I then, I otherwise) {
    return {vbslq_u32(vceqq_u32(a.low, b.low), then.low, otherwise.low),
            vbslq_u32(vceqq_u32(a.high, b.high), then.high, otherwise.high)};
  }
  LIULI_INLINE I as_words(F v) { return {vreinterpretq_u32_f32(v.low), vreinterpretq_u32_f32(v.high)}; }
  LIULI_INLINE F as_f32(I v) { return {vreinterpretq_f32_u32(v.low), vreinterpretq_f32_u32(v.high)}; }
  /// The low 16 bits of every lane, an f16.
  LIULI_INLINE F half_of_word(I v) { return from_half(vcombine_u16(vmovn_u32(v.low), vmovn_u32(v.high))); }
  /// Bytes of 128 ± magnitude from 128 + magnitude: bits [first, first + 4) of byte P of each lane say which are negative.
  template <int P, int first>
  LIULI_INLINE I with_signs(I code, I signs) {
    const auto of = [](uint8x16_t c, uint8x16_t s) {
      alignas(16) static constexpr uint8_t kSpread[16] = {
          P, P, P, P, P + 4, P + 4, P + 4, P + 4, P + 8, P + 8, P + 8, P + 8, P + 12, P + 12, P + 12, P + 12};
      const uint8x16_t bits = vreinterpretq_u8_u32(vdupq_n_u32(0x08040201u << first));
      const uint8x16_t negative = vtstq_u8(vqtbl1q_u8(s, vld1q_u8(kSpread)), bits);
      return vsubq_u8(veorq_u8(c, negative), negative);
    };
    return {by_bytes(of, code.low, signs.low), by_bytes(of, code.high, signs.high)};
  }
  static constexpr bool kLooksUpWords = false;  ///< no permutation of words by words
  LIULI_INLINE I lookup(const uint8_t* table16, I index) {
    const uint8x16_t table = vld1q_u8(table16);
    return {vreinterpretq_u32_u8(vqtbl1q_u8(table, vreinterpretq_u8_u32(index.low))),
            vreinterpretq_u32_u8(vqtbl1q_u8(table, vreinterpretq_u8_u32(index.high)))};
  }

  LIULI_INLINE F to_f32(I v) {
    return {vcvtq_f32_s32(vreinterpretq_s32_u32(v.low)), vcvtq_f32_s32(vreinterpretq_s32_u32(v.high))};
  }
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
    const I top = shift<8 * J - 24>(v);
    return {vcvtq_f32_s32(vshrq_n_s32(vreinterpretq_s32_u32(top.low), 24)),
            vcvtq_f32_s32(vshrq_n_s32(vreinterpretq_s32_u32(top.high), 24))};
  }
  LIULI_INLINE F add(F a, F b) { return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)}; }
  LIULI_INLINE F sub(F a, F b) { return {vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)}; }
  LIULI_INLINE F mul(F a, F b) { return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)}; }
  LIULI_INLINE F fma(F a, F b, F c) {
    return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
  }

  LIULI_INLINE F div(F a, F b) { return {vdivq_f32(a.low, b.low), vdivq_f32(a.high, b.high)}; }
  LIULI_INLINE F sqrt(F a) { return {vsqrtq_f32(a.low), vsqrtq_f32(a.high)}; }
  /// b where either is NaN.
  LIULI_INLINE F larger(F a, F b) {
    return {vbslq_f32(vcgtq_f32(a.low, b.low), a.low, b.low),
            vbslq_f32(vcgtq_f32(a.high, b.high), a.high, b.high)};
  }
  /// max(a, |b|) for a ≥ 0, by their bits: NaN is the largest.
  LIULI_INLINE F larger_magnitude(F a, F b) {
    const I x = as_words(a), y = band(as_words(b), words(0x7fffffff));
    return as_f32({vmaxq_u32(x.low, y.low), vmaxq_u32(x.high, y.high)});
  }
  /// 0 where v < least, else v (also NaN).
  LIULI_INLINE F drop_below(F v, float least) {
    const float32x4_t bound = vdupq_n_f32(least);
    const I x = as_words(v);
    return as_f32({vbicq_u32(x.low, vcltq_f32(v.low, bound)), vbicq_u32(x.high, vcltq_f32(v.high, bound))});
  }
  /// Two columns, rounded to nearest even, as 16-bit integers side by side in every lane; 0 where they do not fit.
  LIULI_INLINE I pair_of_int16(F even, F odd) {
    return {vsliq_n_u32(nearest(even.low), nearest(odd.low), 16),
            vsliq_n_u32(nearest(even.high), nearest(odd.high), 16)};
  }

  /// A dot product of unsigned codes and x16 activations in two planes. sdot wants signed bytes, so it multiplies
  /// code − 128, and the sum begins with what that leaves out.
  struct Sum {
    int32x4_t high_plane[2], low_plane[2];
  };
  /// Of Σ (code − offset) · q, where negative_sum is −Σ q.
  LIULI_INLINE Sum start(int32_t negative_sum, int offset) {
    const int32x4_t value = vdupq_n_s32(negative_sum * (offset - 128)), none = vdupq_n_s32(0);
    return {{none, none}, {value, value}};
  }
  /// Four columns beginning at `column`, one granule of codes.
  LIULI_INLINE void dot(Sum& sum, I code, const ActivationChunk& act, int column) {
    const int8x16_t high = broadcast4(act.hi + column), low = broadcast4(act.lo + column);
    const uint32x4_t halves[2] = {code.low, code.high};
    for (int i = 0; i < 2; i++) {
      const int8x16_t signed_code =
          vreinterpretq_s8_u8(veorq_u8(vreinterpretq_u8_u32(halves[i]), vdupq_n_u8(128)));
      sum.high_plane[i] = vdotq_s32(sum.high_plane[i], signed_code, high);
      sum.low_plane[i] = vdotq_s32(sum.low_plane[i], signed_code, low);
    }
  }
  LIULI_INLINE I finish(const Sum& sum) { return {joined(sum, 0), joined(sum, 1)}; }

  /// [8 rows][2] 16-bit floats: the even columns or the odd ones.
  template <bool odd>
  LIULI_INLINE F half_of_pair(const void* p) {
    const auto* words = static_cast<const uint8_t*>(p);
    const uint16x8_t a = load_words16(words), b = load_words16(words + 16);
    return from_half(odd ? vuzp2q_u16(a, b) : vuzp1q_u16(a, b));
  }
  template <bool odd>
  LIULI_INLINE F bf16_of_pair(const void* p) {
    const I v = load(p);
    return as_f32(odd ? band(v, words(static_cast<int>(0xffff0000))) : shift<-16>(v));
  }

  /// Two columns to bf16, round to nearest even, side by side in every lane.
  LIULI_INLINE I pair_of_bf16(F even, F odd) {
    const I e = rounded(even), o = rounded(odd);
    return or_and(shift<16>(e), o, words(static_cast<int>(0xffff0000)));
  }

 private:
  template <class Op>
  LIULI_INLINE uint32x4_t by_bytes(Op op, uint32x4_t a, uint32x4_t b) {
    return vreinterpretq_u32_u8(op(vreinterpretq_u8_u32(a), vreinterpretq_u8_u32(b)));
  }
  // To the nearest even integer; what is too large for 32 bits to 0 (in the lower 16 bits).
  LIULI_INLINE uint32x4_t nearest(float32x4_t v) {
    const uint32x4_t n = vreinterpretq_u32_s32(vcvtnq_s32_f32(v));
    return vbicq_u32(n, vceqq_u32(n, vdupq_n_u32(0x7fffffff)));
  }
  LIULI_INLINE uint16x8_t load_words16(const void* p) {
    return vreinterpretq_u16_u8(vld1q_u8(static_cast<const uint8_t*>(p)));
  }
  LIULI_INLINE F from_half(uint16x8_t v) {
    const float16x8_t half = vreinterpretq_f16_u16(v);
    return {vcvt_f32_f16(vget_low_f16(half)), vcvt_high_f32_f16(half)};
  }
  LIULI_INLINE int8x16_t broadcast4(const int8_t* p) {
    int32_t four;
    __builtin_memcpy(&four, p, 4);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
  }
  LIULI_INLINE uint32x4_t joined(const Sum& sum, int half) {
    return vreinterpretq_u32_s32(vaddq_s32(sum.low_plane[half], vshlq_n_s32(sum.high_plane[half], 8)));
  }
  // The upper 16 bits are the bf16. A NaN keeps its payload and becomes quiet: adding could carry it into infinity.
  LIULI_INLINE uint32x4_t rounded(float32x4_t v) {
    const uint32x4_t u = vreinterpretq_u32_f32(v), odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
    const uint32x4_t sum = vaddq_u32(vaddq_u32(u, vdupq_n_u32(0x7fff)), odd);
    return vbslq_u32(vceqq_f32(v, v), sum, vorrq_u32(u, vdupq_n_u32(0x400000)));
  }
  LIULI_INLINE I rounded(F v) { return {rounded(v.low), rounded(v.high)}; }
};

}  // namespace
}  // namespace liuli::kernels
