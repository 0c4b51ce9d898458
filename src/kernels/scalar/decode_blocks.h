// Internal to the decoders: one function per stored type, and the loads they share.
//
// A decoder turns n elements (a multiple of the type's block) of file bytes into f32 by the published
// formula, in the published order of operations. The files are compiled with -ffp-contract=off: a fused
// multiply-add would change the last bit of the types with a minimum. Loops carry no branch per element, so
// that GCC turns them into vector code. Rows start anywhere: every load is a memcpy.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

#include "core/half.h"

namespace liuli::kernels {

using DecodeFunction = void (*)(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;

// plain types (decode_plain.cpp)
void decode_f32(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_f16(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_bf16(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_f64(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_i8(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_i16(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_i32(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_i64(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;

// blocks of 32 with one scale (decode_q32.cpp)
void decode_q4_0(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_q4_1(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_q5_0(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_q5_1(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_q8_0(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;

// eight-bit floats with a scale per 128 (decode_fp8.cpp)
void decode_f8_e4m3_b128(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;

// super-blocks of 256 (decode_k.cpp)
void decode_q2_k(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_q3_k(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_q4_k(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_q5_k(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_q6_k(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;

// four bits through a table of values, and ternary (decode_table.cpp)
void decode_iq4_nl(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_iq4_xs(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_mxfp4(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_nvfp4(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_tq1_0(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_tq2_0(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;

// lattice points (decode_iq.cpp)
void decode_iq1_s(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_iq1_m(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_iq2_xxs(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_iq2_xs(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_iq2_s(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_iq3_xxs(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;
void decode_iq3_s(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept;

template <class T>
inline T load(const uint8_t* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
inline float load_f16(const uint8_t* p) { return f16_to_f32(load<uint16_t>(p)); }

/// Half of 2^(e − 127), an E8M0 byte: 2^(e − 128) makes up for the doubled table. e < 2 needs a subnormal.
/// The OCP standard calls e = 255 NaN; the format's reference decoder does not, and neither does this.
inline float half_of_e8m0(uint8_t e) {
  const uint32_t bits = e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23;
  return std::bit_cast<float>(bits);
}

/// Half of an unsigned E4M3 byte (bias 7; the top bit is ignored): 0x7F, its NaN, counts as 0.
inline float half_of_e4m3(uint8_t x) {
  if (x == 0x7F) return 0.0f;
  const int exponent = (x >> 3) & 15, mantissa = x & 7;
  if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-10f;
  const float power = std::bit_cast<float>(static_cast<uint32_t>(exponent - 8 + 127) << 23);
  return (1.0f + static_cast<float>(mantissa) / 8.0f) * power;
}

/// Digit of a base-3 fraction: the byte holds ⌈v · 256 / 243⌉ of a five-digit number v, so that multiplying
/// by 3^k modulo 256 moves digit k to the front, and times 3 over 256 reads it. Result −1, 0, 1.
inline int trit(uint8_t byte, int power_of_3) {
  const auto front = static_cast<uint8_t>(byte * power_of_3);
  return ((front * 3) >> 8) - 1;
}

}  // namespace liuli::kernels
