// Attention over 16-bit pages in plain loops of 16 lanes, f32 FMA.
#include <cmath>

#include "core/half.h"
#include "kernels/attention_codes.h"
#include "kernels/attention_f32_dots.h"
#include "kernels/isa_tables.h"

namespace liuli::kernels {
namespace {

// Sixteen floats and the operations attention is written in; the vector levels have the same, by the same
// names.
struct ScalarLanes {
  struct V {
    float at[16];
  };
  template <class F>
  static V each(F f) {
    V v;
    for (int i = 0; i < 16; i++) v.at[i] = f(i);
    return v;
  }
  static uint32_t bits(float x) {
    uint32_t u;
    __builtin_memcpy(&u, &x, sizeof u);
    return u;
  }
  static float value(uint32_t u) {
    float x;
    __builtin_memcpy(&x, &u, sizeof x);
    return x;
  }

  static V set1(float x) {
    return each([&](int) { return x; });
  }
  static V load(const float* p) {
    return each([&](int i) { return p[i]; });
  }
  static void store(float* p, const V& v) {
    for (int i = 0; i < 16; i++) p[i] = v.at[i];
  }
  static float first(const V& v) { return v.at[0]; }
  static V add(const V& a, const V& b) {
    return each([&](int i) { return a.at[i] + b.at[i]; });
  }
  static V sub(const V& a, const V& b) {
    return each([&](int i) { return a.at[i] - b.at[i]; });
  }
  static V mul(const V& a, const V& b) {
    return each([&](int i) { return a.at[i] * b.at[i]; });
  }
  static V max(const V& a, const V& b) {
    return each([&](int i) { return a.at[i] > b.at[i] ? a.at[i] : b.at[i]; });
  }
  static V fma(const V& a, const V& b, const V& c) {
    return each([&](int i) { return std::fma(a.at[i], b.at[i], c.at[i]); });
  }
  static V floor(const V& a) {
    return each([&](int i) { return std::floor(a.at[i]); });
  }

  /// p · 2^whole; below the normal range the power stays at 2^-126, which no sum notices.
  static V scale_by_power_of_two(const V& p, const V& whole) {
    return each([&](int i) {
      const int exponent = whole.at[i] > -126.0f ? static_cast<int>(whole.at[i]) : -126;
      return p.at[i] * value(static_cast<uint32_t>(exponent + 127) << 23);
    });
  }
  /// Lanes [begin, end) of v, `otherwise` elsewhere.
  static V keep_range(const V& v, int begin, int end, float otherwise) {
    return each([&](int i) { return begin <= i && i < end ? v.at[i] : otherwise; });
  }
  static V round_to_bf16(const V& v) {
    return each([&](int i) {
      const uint32_t u = bits(v.at[i]);
      return value((u + 0x7fff + (u >> 16 & 1)) & 0xffff0000);
    });
  }
  /// A line of 16 pairs of bf16: the first and the second of each pair.
  static void widen_bf16(const uint16_t* line, V& even, V& odd) {
    even = each([&](int i) { return value(static_cast<uint32_t>(line[2 * i]) << 16); });
    odd = each([&](int i) { return value(static_cast<uint32_t>(line[2 * i + 1]) << 16); });
  }

  /// Sixteen f16.
  static V widen_f16(const uint16_t* half_line) {
    return each([&](int i) { return f16_to_f32(half_line[i]); });
  }

  /// Sixteen codes.
  static V from_i8(const int8_t* codes) {
    return each([&](int i) { return static_cast<float>(codes[i]); });
  }
  /// Every lane twice: 0 0 1 1 … 7 7 and 8 8 … 15 15.
  static void twice(const V& v, V& low, V& high) {
    low = each([&](int i) { return v.at[i / 2]; });
    high = each([&](int i) { return v.at[8 + i / 2]; });
  }
  /// Two floats in turn.
  static V pairs(const float* two) {
    return each([&](int i) { return two[i % 2]; });
  }
  /// A line of 32 bf16: low's lanes, then high's, rounded to nearest even.
  static void store_bf16(uint16_t* line, const V& low, const V& high) {
    for (int i = 0; i < 16; i++) {
      line[i] = f32_to_bf16(low.at[i]);
      line[16 + i] = f32_to_bf16(high.at[i]);
    }
  }

  /// 64 bytes, and as 16-bit pairs: of each four bytes the first and third, the second and fourth.
  struct Bytes {
    uint8_t at[64];
  };
  struct BytePairs {
    int16_t first[32], second[32];
  };
  struct Sums {
    int32_t at[16];
  };
  static Bytes load_bytes(const uint8_t* p) {
    Bytes b;
    __builtin_memcpy(b.at, p, sizeof b.at);
    return b;
  }
  static Bytes low_nibbles(Bytes b) {
    for (uint8_t& byte : b.at) byte &= 15;
    return b;
  }
  static Bytes high_nibbles(Bytes b) {
    for (uint8_t& byte : b.at) byte = static_cast<uint8_t>(byte >> 4);
    return b;
  }
  /// The low nibbles of 32 bytes, then the high ones.
  static Bytes nibbles(const uint8_t* p) {
    Bytes b;
    for (int i = 0; i < 32; i++) {
      b.at[i] = p[i] & 15;
      b.at[32 + i] = static_cast<uint8_t>(p[i] >> 4);
    }
    return b;
  }
  static BytePairs byte_pairs(const Bytes& b) {
    BytePairs pairs;
    for (int i = 0; i < 32; i++) {
      pairs.first[i] = b.at[2 * i];
      pairs.second[i] = b.at[2 * i + 1];
    }
    return pairs;
  }
  static Sums no_sums() { return {}; }
  /// Adds to each lane its four bytes times four integers.
  static Sums dot(Sums sums, const BytePairs& pairs, const int16_t* four) {
    for (int i = 0; i < 16; i++)
      sums.at[i] += pairs.first[2 * i] * four[0] + pairs.first[2 * i + 1] * four[1] +
                    pairs.second[2 * i] * four[2] + pairs.second[2 * i + 1] * four[3];
    return sums;
  }
  /// The sums less `offset`, as floats.
  static V less(const Sums& sums, int32_t offset) {
    return each([&](int i) { return static_cast<float>(sums.at[i] - offset); });
  }
  /// Rounded to nearest even.
  static V nearest(const V& v) {
    return each([&](int i) { return std::nearbyint(v.at[i]); });
  }
  /// The same as integers of 16 bits.
  static void store_i16(int16_t* out, const V& v) {
    for (int i = 0; i < 16; i++) {
      const float whole = std::nearbyint(v.at[i]);
      out[i] = whole > -32768.0f && whole < 32768.0f ? static_cast<int16_t>(whole) : int16_t{-32768};
    }
  }

  /// Halves are folded onto each other, as the vector levels do: 8, 4, 2, 1 apart.
  template <class F>
  static float fold(V v, F f) {
    for (int half = 8; half > 0; half /= 2) {
      for (int i = 0; i < half; i++) v.at[i] = f(v.at[i], v.at[i + half]);
    }
    return v.at[0];
  }
  static float reduce_add(const V& v) {
    return fold(v, [](float a, float b) { return a + b; });
  }
  static float reduce_max(const V& v) {
    return fold(v, [](float a, float b) { return a > b ? a : b; });
  }
};

}  // namespace

const AttentionKernels* attention_scalar() noexcept {
  static constexpr AttentionKernels kernels = BlockedAttention<F32Dots<ScalarLanes, Bf16Pages, 4, 1>>::table(
      "bf16 pages, f32 fused multiply-add, scalar");
  return &kernels;
}

const AttentionKernels* attention_f16_scalar() noexcept {
  static constexpr AttentionKernels kernels = BlockedAttention<F32Dots<ScalarLanes, F16Pages, 4, 1>>::table(
      "f16 pages, f32 fused multiply-add, scalar");
  return &kernels;
}

CodeAttention attention_codes_scalar() noexcept {
  using Dots = F32Dots<ScalarLanes, Bf16Pages, 4, 1>;
  static constexpr AttentionKernels q8_0 =
      CodeAttentionOf<Dots, Q8Pages, CodeDots<ScalarLanes, Codes8, 4, 1>>::table("Q8_0 pages, scalar");
  static constexpr AttentionKernels q4_0 =
      CodeAttentionOf<Dots, Q4Pages, CodeDots<ScalarLanes, Codes4, 4, 1>>::table("Q4_0 pages, scalar");
  return {&q8_0, &q4_0};
}

}  // namespace liuli::kernels
