// FP4 (E2M1) codes: MXFP4 with a power of two per 32 columns, NVFP4 with an E4M3 scale per 16. As granule_types.h.
#pragma once
#include "kernels/granule_types.h"

namespace liuli::kernels {
namespace {

// Twice the values of E2M1, integers, plus 16: codes stay unsigned. The scales are halved to make up for it.
alignas(16) constexpr uint8_t kFp4DoubledPlus16[16] = {16, 17, 18, 19, 20, 22, 24, 28,
                                                       16, 15, 14, 13, 12, 10, 8,  4};

struct MXFP4 {
  static constexpr DType kType = DType::mxfp4;
  static constexpr int kSub = 32, kBits = 5, kOffset = 4, kUnit = 1088, kBytes = 2 * kUnit;
  static constexpr bool kMinimum = false, kPaired = false, kFetchAhead = false;
  static constexpr int kColumns = 32;

  struct Scales {};
  LIULI_INLINE Scales scales(const At&) { return {}; }
  // 2^(e − 128): the exponent e − 1 of an f32, or a subnormal for e < 2.
  template <int i>
  LIULI_INLINE Vec::F scale(const Scales&, const At& at) {
    const Vec::I e = at.byte(i / 4 * kUnit + 16 * (i % 4)),
                 normal = Vec::shift<-23>(Vec::add(e, Vec::words(-1)));
    const Vec::I subnormal = Vec::shift<-21>(Vec::add(e, Vec::words(1)));  // e = 0: 2^21, e = 1: 2^22
    return Vec::as_f32(Vec::if_less(e, Vec::words(2), subnormal, normal));
  }
  template <int g, int j>
  LIULI_INLINE Vec::I code(const At& at) {
    const Vec::I both = at.line(g / 4 * kUnit + 64 + 256 * (g % 4) + 64 * (j % 4));
    return Vec::lookup(kFp4DoubledPlus16, low_nibbles(Vec::shift < j < 4 ? 0 : 4 > (both)));
  }
};

struct NVFP4 {
  static constexpr DType kType = DType::nvfp4;
  static constexpr int kSub = 16, kBits = 5, kOffset = 4, kBytes = 2304;
  static constexpr bool kMinimum = false, kPaired = false, kFetchAhead = false;
  static constexpr int kColumns = 64;

  struct Scales {};
  LIULI_INLINE Scales scales(const At&) { return {}; }
  // Half of an unsigned E4M3 x (the top bit does not count; 0x7F is 0): (1 + m / 8) · 2^(e − 8), m · 2^−10 for e = 0.
  // The latter by subtracting the leading one again from (1 + m / 8) · 2^−7.
  template <int i>
  LIULI_INLINE Vec::F scale(const Scales&, const At& at) {
    const Vec::I byte = Vec::band(Vec::shift<8 * (i % 4)>(at.line(i / 4 * 576)), Vec::words(255));
    const Vec::I x = Vec::band(byte, Vec::words(127)), eight = Vec::words(8), none = Vec::zero();
    const Vec::I one = Vec::if_less(x, eight, Vec::words(0x3C000000), Vec::words(0x3B800000));  // 2^−7, 2^−8
    const Vec::I leading = Vec::if_less(x, eight, Vec::words(0x3C000000), none);
    const Vec::F value = Vec::sub(Vec::as_f32(Vec::add(Vec::shift<-20>(x), one)), Vec::as_f32(leading));
    const Vec::I keep = Vec::if_equal(byte, Vec::words(0x7F), none, Vec::words(-1));
    return Vec::as_f32(Vec::band(Vec::as_words(value), keep));
  }
  template <int g, int j>
  LIULI_INLINE Vec::I code(const At& at) {
    constexpr int sub = 2 * (g % 2) + j / 4, line = g / 2 * 576 + 64 + 64 * (2 * sub + j % 2);
    return Vec::lookup(kFp4DoubledPlus16, low_nibbles(Vec::shift < j % 4 < 2 ? 0 : 4 > (at.line(line))));
  }
};

}  // namespace
}  // namespace liuli::kernels
