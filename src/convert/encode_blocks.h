// One block or super-block at a time: x[block], w[block] (all positive) to the type's bytes. Layouts are those of the
// decoders in kernels/scalar/decode_*.cpp.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

#include "convert/encode_lanes.h"
#include "core/half.h"

namespace liuli::encode {

using BlockEncoder = void (*)(const float* x, const float* w, uint8_t* out);

void encode_q4_0(const float* x, const float* w, uint8_t* out);
void encode_q4_1(const float* x, const float* w, uint8_t* out);
void encode_q5_0(const float* x, const float* w, uint8_t* out);
void encode_q5_1(const float* x, const float* w, uint8_t* out);
void encode_q8_0(const float* x, const float* w, uint8_t* out);
void encode_iq4_nl(const float* x, const float* w, uint8_t* out);

void encode_q2_k(const float* x, const float* w, uint8_t* out);
void encode_q4_k(const float* x, const float* w, uint8_t* out);
void encode_q5_k(const float* x, const float* w, uint8_t* out);

void encode_q3_k(const float* x, const float* w, uint8_t* out);
void encode_q6_k(const float* x, const float* w, uint8_t* out);
void encode_iq4_xs(const float* x, const float* w, uint8_t* out);

/// The nearest finite f16: a scale that is too large saturates.
inline uint16_t scale_to_f16(float value) {
  constexpr float kLargest = 65504;
  return f32_to_f16(std::clamp(value, -kLargest, kLargest));
}
inline float round_to_f16(float value) { return f16_to_f32(scale_to_f16(value)); }

/// The f16 `steps` places further from zero (nearer for negative steps); stops at zero and at the largest.
inline float f16_neighbour(float value, int steps) {
  const uint16_t bits = scale_to_f16(value);
  const int magnitude = std::clamp((bits & 0x7FFF) + steps, 0, 0x7BFF);
  return f16_to_f32(static_cast<uint16_t>((bits & 0x8000) | magnitude));
}

inline void store_u16(uint8_t* out, uint16_t value) { std::memcpy(out, &value, sizeof value); }
inline void store_u32(uint8_t* out, uint32_t value) { std::memcpy(out, &value, sizeof value); }

}  // namespace liuli::encode
