// Attention over 16-bit pages in plain loops of 16 lanes, f32 FMA.
#include <cmath>

#include "core/half.h"
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

}  // namespace liuli::kernels
