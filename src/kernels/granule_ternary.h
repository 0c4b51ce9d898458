// Ternary codes −1, 0, 1: two bits each (TQ2_0), or five to a byte as digits to base 3 (TQ1_0). As granule_types.h.
#pragma once
#include "kernels/granule_types.h"

namespace liuli::kernels {
namespace {

struct TQ20 {
  static constexpr DType kType = DType::tq2_0;
  static constexpr int kSub = 32, kBits = 2, kOffset = 0, kBytes = 1024;
  static constexpr bool kMinimum = false, kPaired = true, kFetchAhead = true;
  static constexpr int kColumns = kChunk;

  struct Scales {
    Vec::F d;
  };
  LIULI_INLINE Scales scales(const At& at) { return {at.paired_half()}; }
  template <int i>
  LIULI_INLINE Vec::F scale(const Scales& s, const At&) {
    return s.d;
  }
  template <int g, int j>
  LIULI_INLINE Vec::I code(const At& at) {
    return Vec::band(Vec::shift<2 * (g % 4)>(at.line(64 * (8 * (g / 4) + j))), Vec::bytes(3));
  }
};

// A byte holds ⌈v · 256 / 243⌉ of a five-digit number v: times 3^k modulo 256 moves digit k to the front, and times 3
// over 256 reads it. Codes are 64 · digit, which saves a shift; 64 comes off the scale again, exactly.
struct TQ10 {
  static constexpr DType kType = DType::tq1_0;
  static constexpr int kSub = 32, kBits = 2, kOffset = 6, kBytes = 832;
  static constexpr bool kMinimum = false, kPaired = true, kFetchAhead = true;
  static constexpr int kColumns = kChunk;

  static constexpr int code_shift(int) { return 6; }
  struct Scales {
    Vec::F d64;
  };
  LIULI_INLINE Scales scales(const At& at) { return {Vec::mul(at.paired_half(), Vec::set(0.015625f))}; }
  template <int i>
  LIULI_INLINE Vec::F scale(const Scales& s, const At&) {
    return s.d64;
  }
  static constexpr int power_of_3(int k) { return k == 0 ? 1 : 3 * power_of_3(k - 1); }
  // 160 columns from digits 0 … 4 of eight lines, 80 of the next four, 16 from digits 0 … 3 of the last.
  template <int g, int j>
  LIULI_INLINE Vec::I code(const At& at) {
    constexpr int quad = 8 * g + j, past = quad - 40;
    constexpr int line = quad < 40 ? j : past < 20 ? 8 + past % 4 : 12;
    constexpr int digit = quad < 40 ? g : past < 20 ? past / 4 : past - 20;
    return Vec::thirds64(Vec::multiply_bytes<power_of_3(digit)>(at.line(64 * line)));
  }
};

}  // namespace
}  // namespace liuli::kernels
