// Attention over bf16 pages by NEON f32 FMA: the scalar level's bits.
#include <arm_neon.h>

#include "kernels/attention_codes.h"
#include "kernels/attention_f32_dots.h"
#include "kernels/isa_tables.h"

namespace liuli::kernels {
namespace {

// Sixteen floats in four 128-bit registers, with the operations attention is written in (ScalarLanes has their
// meaning).
struct NeonLanes {
  struct V {
    float32x4_t at[4];
  };
  template <class F>
  static inline __attribute__((always_inline)) V each(F f) {
    return {{f(0), f(1), f(2), f(3)}};
  }

  static V set1(float x) {
    return each([&](int) { return vdupq_n_f32(x); });
  }
  static V load(const float* p) {
    return each([&](int i) { return vld1q_f32(p + 4 * i); });
  }
  static void store(float* p, V v) {
    for (int i = 0; i < 4; i++) vst1q_f32(p + 4 * i, v.at[i]);
  }
  static float first(V v) { return vgetq_lane_f32(v.at[0], 0); }
  static V add(V a, V b) {
    return each([&](int i) { return vaddq_f32(a.at[i], b.at[i]); });
  }
  static V sub(V a, V b) {
    return each([&](int i) { return vsubq_f32(a.at[i], b.at[i]); });
  }
  static V mul(V a, V b) {
    return each([&](int i) { return vmulq_f32(a.at[i], b.at[i]); });
  }
  // As x86 and the scalar level: a > b ? a : b.
  static float32x4_t larger(float32x4_t a, float32x4_t b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
  static V max(V a, V b) {
    return each([&](int i) { return larger(a.at[i], b.at[i]); });
  }
  static V fma(V a, V b, V c) {
    return each([&](int i) { return vfmaq_f32(c.at[i], a.at[i], b.at[i]); });
  }
  static V floor(V a) {
    return each([&](int i) { return vrndmq_f32(a.at[i]); });
  }

  static V scale_by_power_of_two(V p, V whole) {
    return each([&](int i) {
      const int32x4_t exponent = vcvtq_s32_f32(larger(whole.at[i], vdupq_n_f32(-126.0f)));
      const int32x4_t bits = vshlq_n_s32(vaddq_s32(exponent, vdupq_n_s32(127)), 23);
      return vmulq_f32(p.at[i], vreinterpretq_f32_s32(bits));
    });
  }
  static V keep_range(V v, int begin, int end, float otherwise) {
    constexpr int32_t kLanes[4] = {0, 1, 2, 3};
    return each([&](int i) {
      const int32x4_t lane = vaddq_s32(vld1q_s32(kLanes), vdupq_n_s32(4 * i));
      const uint32x4_t inside =
          vandq_u32(vcgeq_s32(lane, vdupq_n_s32(begin)), vcltq_s32(lane, vdupq_n_s32(end)));
      return vbslq_f32(inside, v.at[i], vdupq_n_f32(otherwise));
    });
  }
  static V round_to_bf16(V v) {
    return each([&](int i) {
      const uint32x4_t u = vreinterpretq_u32_f32(v.at[i]);
      const uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
      const uint32x4_t up = vaddq_u32(vaddq_u32(u, vdupq_n_u32(0x7fff)), odd);
      return vreinterpretq_f32_u32(vandq_u32(up, vdupq_n_u32(0xffff0000)));
    });
  }
  static void widen_bf16(const uint16_t* line, V& even, V& odd) {
    for (int i = 0; i < 4; i++) {
      const uint32x4_t pairs = vreinterpretq_u32_u16(vld1q_u16(line + 8 * i));
      even.at[i] = vreinterpretq_f32_u32(vshlq_n_u32(pairs, 16));
      odd.at[i] = vreinterpretq_f32_u32(vandq_u32(pairs, vdupq_n_u32(0xffff0000)));
    }
  }

  static V widen_f16(const uint16_t* half_line) {
    return each([&](int i) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(half_line + 4 * i))); });
  }

  static V from_i8(const int8_t* codes) {
    const int8x16_t bytes = vld1q_s8(codes);
    const int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_s8(vget_high_s8(bytes));
    return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(low))),
             vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(high)))}};
  }
  static void twice(V v, V& low, V& high) {
    low = {{vzip1q_f32(v.at[0], v.at[0]), vzip2q_f32(v.at[0], v.at[0]), vzip1q_f32(v.at[1], v.at[1]),
            vzip2q_f32(v.at[1], v.at[1])}};
    high = {{vzip1q_f32(v.at[2], v.at[2]), vzip2q_f32(v.at[2], v.at[2]), vzip1q_f32(v.at[3], v.at[3]),
             vzip2q_f32(v.at[3], v.at[3])}};
  }
  static V pairs(const float* two) {
    const float32x2_t pair = vld1_f32(two);
    return each([&](int) { return vcombine_f32(pair, pair); });
  }
  static void store_bf16(uint16_t* line, V low, V high) {
    const V a = round_to_bf16(low), b = round_to_bf16(high);
    for (int i = 0; i < 4; i++) {
      vst1_u16(line + 4 * i, vshrn_n_u32(vreinterpretq_u32_f32(a.at[i]), 16));
      vst1_u16(line + 16 + 4 * i, vshrn_n_u32(vreinterpretq_u32_f32(b.at[i]), 16));
    }
  }

  struct Bytes {
    uint8x16_t at[4];
  };
  struct BytePairs {
    int16x8_t first[4], second[4];
  };
  struct Sums {
    int32x4_t at[4];
  };
  static Bytes load_bytes(const uint8_t* p) {
    return {{vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vld1q_u8(p + 48)}};
  }
  static Bytes low_nibbles(Bytes b) {
    for (uint8x16_t& part : b.at) part = vandq_u8(part, vdupq_n_u8(15));
    return b;
  }
  static Bytes high_nibbles(Bytes b) {
    for (uint8x16_t& part : b.at) part = vshrq_n_u8(part, 4);
    return b;
  }
  static Bytes nibbles(const uint8_t* p) {
    const uint8x16_t a = vld1q_u8(p), b = vld1q_u8(p + 16), low = vdupq_n_u8(15);
    return {{vandq_u8(a, low), vandq_u8(b, low), vshrq_n_u8(a, 4), vshrq_n_u8(b, 4)}};
  }
  static BytePairs byte_pairs(Bytes b) {
    BytePairs pairs;
    for (int i = 0; i < 4; i++) {
      const uint16x8_t both = vreinterpretq_u16_u8(b.at[i]);
      pairs.first[i] = vreinterpretq_s16_u16(vandq_u16(both, vdupq_n_u16(255)));
      pairs.second[i] = vreinterpretq_s16_u16(vshrq_n_u16(both, 8));
    }
    return pairs;
  }
  static Sums no_sums() {
    const int32x4_t zero = vdupq_n_s32(0);
    return {{zero, zero, zero, zero}};
  }
  static Sums dot(Sums sums, BytePairs pairs, const int16_t* four) {
    int32_t two[2];
    __builtin_memcpy(two, four, sizeof two);
    const int16x8_t a = vreinterpretq_s16_s32(vdupq_n_s32(two[0]));
    const int16x8_t b = vreinterpretq_s16_s32(vdupq_n_s32(two[1]));
    for (int i = 0; i < 4; i++) {
      int32x4_t low = vmull_s16(vget_low_s16(pairs.first[i]), vget_low_s16(a));
      int32x4_t high = vmull_high_s16(pairs.first[i], a);
      low = vmlal_s16(low, vget_low_s16(pairs.second[i]), vget_low_s16(b));
      high = vmlal_high_s16(high, pairs.second[i], b);
      sums.at[i] = vaddq_s32(sums.at[i], vpaddq_s32(low, high));
    }
    return sums;
  }
  static V less(Sums sums, int32_t offset) {
    return each([&](int i) { return vcvtq_f32_s32(vsubq_s32(sums.at[i], vdupq_n_s32(offset))); });
  }
  static V nearest(V v) {
    return each([&](int i) { return vrndnq_f32(v.at[i]); });
  }
  static void store_i16(int16_t* out, V v) {
    for (int i = 0; i < 4; i++) vst1_s16(out + 4 * i, vqmovn_s32(vcvtnq_s32_f32(v.at[i])));
  }

  // Halves folded onto each other: 8, 4, 2, 1 lanes apart.
  template <class F>
  static float fold(V v, F f) {
    const float32x4_t a = f(f(v.at[0], v.at[2]), f(v.at[1], v.at[3]));
    const float32x4_t b = f(a, vextq_f32(a, a, 2));
    return vgetq_lane_f32(f(b, vextq_f32(b, b, 1)), 0);
  }
  static float reduce_add(V v) {
    return fold(v, [](float32x4_t a, float32x4_t b) { return vaddq_f32(a, b); });
  }
  static float reduce_max(V v) { return fold(v, larger); }
};

}  // namespace

const AttentionKernels* attention_neon() noexcept {
  static constexpr AttentionKernels kernels = BlockedAttention<F32Dots<NeonLanes, Bf16Pages, 4, 1>>::table(
      "bf16 pages, f32 fused multiply-add, NEON");
  return &kernels;
}

const AttentionKernels* attention_f16_neon() noexcept {
  static constexpr AttentionKernels kernels =
      BlockedAttention<F32Dots<NeonLanes, F16Pages, 4, 1>>::table("f16 pages, f32 fused multiply-add, NEON");
  return &kernels;
}

CodeAttention attention_codes_neon() noexcept {
  using Dots = F32Dots<NeonLanes, Bf16Pages, 4, 1>;
  static constexpr AttentionKernels q8_0 =
      CodeAttentionOf<Dots, Q8Pages, CodeDots<NeonLanes, Codes8, 4, 1>>::table("Q8_0 pages, NEON");
  static constexpr AttentionKernels q4_0 =
      CodeAttentionOf<Dots, Q4Pages, CodeDots<NeonLanes, Codes4, 4, 1>>::table("Q4_0 pages, NEON");
  return {&q8_0, &q4_0};
}

}  // namespace liuli::kernels
