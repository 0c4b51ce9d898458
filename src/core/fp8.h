// Eight-bit floats.
#pragma once
#include <bit>
#include <cstdint>

namespace liuli {

/// OCP E4M3 (s eeee mmm, bias 7): ±(1 + m/8)·2^(e − 7), or ±m·2^(−9) where e = 0. No infinities: e = m = all ones is
/// NaN, and 448 the largest value. Exact.
constexpr float e4m3_to_f32(uint8_t code) {
  const uint32_t sign = uint32_t{code & 0x80u} << 24, e = (code >> 3) & 15u, m = code & 7u;
  if (e == 15 && m == 7) return std::bit_cast<float>(sign | 0x7FC00000u);
  if (e == 0) {
    const float magnitude = static_cast<float>(m) * 0x1p-9f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (e - 7 + 127) << 23 | m << 20);
}

}  // namespace liuli
