// Four-bit codes that stand for values of a table, and ternary codes.
#include "kernels/scalar/decode_blocks.h"

namespace liuli::kernels {
namespace {

/// IQ4's sixteen levels: denser near zero, where weights are.
constexpr float kIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
/// fp4 (E2M1), doubled so that they are integers.
constexpr float kFp4Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// `half` low nibbles, then as many high ones, through the table.
inline void nibbles_through(const float* table, const uint8_t* __restrict q, int half, float scale,
                            float* __restrict out) {
  for (int i = 0; i < half; i++) {
    out[i] = scale * table[q[i] & 15];
    out[i + half] = scale * table[q[i] >> 4];
  }
}

/// Writes digit 0 of n bytes, then digit 1 of them, … (`digits` ≤ 5).
inline void trits_of(const uint8_t* __restrict q, int n, int digits, float d, float* __restrict out) {
  for (int k = 0, power = 1; k < digits; k++, power *= 3)
    for (int i = 0; i < n; i++) out[k * n + i] = d * static_cast<float>(trit(q[i], power));
}

}  // namespace

/// [d f16][16 bytes]  y = d · table[nibble]
void decode_iq4_nl(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= 32, row += 18, out += 32) nibbles_through(kIq4, row + 2, 16, load_f16(row), out);
}

/// [d f16][high bits of scales u16][4 low nibble bytes][128 bytes], groups of 32
/// y = d · (scale − 32) · table[nibble]
void decode_iq4_xs(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= 256, row += 136, out += 256) {
    const float d = load_f16(row);
    const uint16_t high = load<uint16_t>(row + 2);
    for (int g = 0; g < 8; g++) {
      const int scale = ((row[4 + g / 2] >> (4 * (g % 2))) & 15) | (((high >> (2 * g)) & 3) << 4);
      nibbles_through(kIq4, row + 8 + 16 * g, 16, d * static_cast<float>(scale - 32), out + 32 * g);
    }
  }
}

/// [e E8M0][16 bytes]  y = 2^(e − 127) · fp4
void decode_mxfp4(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= 32, row += 17, out += 32)
    nibbles_through(kFp4Doubled, row + 1, 16, half_of_e8m0(row[0]), out);
}

/// [4 scales E4M3][32 bytes], sub-blocks of 16 in 8 bytes  y = scale · fp4
void decode_nvfp4(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= 64, row += 36, out += 64)
    for (int s = 0; s < 4; s++)
      nibbles_through(kFp4Doubled, row + 4 + 8 * s, 8, half_of_e4m3(row[s]), out + 16 * s);
}

/// [48 bytes of 5 digits][4 bytes of 4 digits][d f16]  y = d · digit; 32 bytes, then 16, then 4, digit by
/// digit
void decode_tq1_0(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= 256, row += 54, out += 256) {
    const float d = load_f16(row + 52);
    trits_of(row, 32, 5, d, out);
    trits_of(row + 32, 16, 5, d, out + 160);
    trits_of(row + 48, 4, 4, d, out + 240);
  }
}

/// [64 bytes of bit pairs][d f16]  y = d · (pair − 1)
void decode_tq2_0(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= 256, row += 66, out += 256) {
    const float d = load_f16(row + 64);
    for (int g = 0; g < 8; g++) {
      const uint8_t* q = row + 32 * (g / 4);
      const int shift = 2 * (g % 4);
      for (int i = 0; i < 32; i++) out[32 * g + i] = d * static_cast<float>(((q[i] >> shift) & 3) - 1);
    }
  }
}

}  // namespace liuli::kernels
