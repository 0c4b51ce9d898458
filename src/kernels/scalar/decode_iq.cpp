// IQ1, IQ2, IQ3: eight (or four) elements at a time are a point of a fixed lattice, times a scale and signs.
//
// A point is sixteen bits of packed codes (iq_tables.h). Codes become magnitudes by arithmetic instead of a
// second table, so that the eight elements of a point are one vector. Signs come as a byte, one bit per
// element, set = negative; seven-bit sign codes leave out the eighth bit, which makes the number of set bits
// even. Multiplying by ±1 last, as published, equals giving the sign to the magnitude: rounding is symmetric.
#include "kernels/scalar/decode_blocks.h"
#include "kernels/scalar/iq_tables.h"
#include "kernels/scalar/lattice_points.h"

namespace liuli::kernels {
namespace {

constexpr int kBlock = 256;

inline int sign_of(unsigned signs, int i) { return 1 - 2 * static_cast<int>((signs >> i) & 1); }

/// Eight elements of IQ2: codes 0, 1, 2 are 8, 25, 43.
inline void point_iq2(uint16_t point, unsigned signs, float scale, float* __restrict out) {
  for (int i = 0; i < 8; i++) {
    const int code = (point >> (2 * i)) & 3;
    out[i] = scale * static_cast<float>((8 + 17 * code + (code >> 1)) * sign_of(signs, i));
  }
}

/// Four elements of IQ3_XXS: codes 0 … 7 are 4, 12, … 52, 62.
inline void point_iq3_xxs(uint16_t point, unsigned signs, float scale, float* __restrict out) {
  for (int i = 0; i < 4; i++) {
    const int code = (point >> (4 * i)) & 7;
    out[i] = scale * static_cast<float>((4 + 8 * code + 2 * ((code + 1) >> 3)) * sign_of(signs, i));
  }
}

/// Four elements of IQ3_S: codes 0 … 7 are 1, 3, … 15.
inline void point_iq3_s(uint16_t point, unsigned signs, float scale, float* __restrict out) {
  for (int i = 0; i < 4; i++) {
    const int code = (point >> (4 * i)) & 7;
    out[i] = scale * static_cast<float>((1 + 2 * code) * sign_of(signs, i));
  }
}

/// Eight elements of IQ1: codes 0, 1, 2 are −1, 0, 1, shifted by ±1/8.
inline void point_iq1(uint16_t point, float shift, float scale, float* __restrict out) {
  for (int i = 0; i < 8; i++) {
    const int code = (point >> (2 * i)) & 3;
    out[i] = scale * (static_cast<float>(code - 1) + shift);
  }
}

/// d · (1/2 + s) / 4, the scale of IQ2 for a four-bit s.
inline float scale_iq2(float d, unsigned s) { return d * (0.5f + static_cast<float>(s)) * 0.25f; }

}  // namespace

/// [d f16] and per 32 elements [4 point bytes][u32: four 7-bit sign codes, 4-bit scale on top]
void decode_iq2_xxs(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= kBlock, row += 66, out += kBlock) {
    const float d = load_f16(row);
    for (int g = 0; g < 8; g++) {
      const uint8_t* points = row + 2 + 8 * g;
      const uint32_t word = load<uint32_t>(points + 4);
      const float scale = scale_iq2(d, word >> 28);
      for (int l = 0; l < 4; l++)
        point_iq2(kIq2XxsGrid[points[l]], eight_signs(word >> (7 * l)), scale, out + 32 * g + 8 * l);
    }
  }
}

/// [d f16][32 × u16: 9-bit point, 7-bit sign code][8 bytes: 4-bit scales of 16 elements, low nibble first]
void decode_iq2_xs(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= kBlock, row += 74, out += kBlock) {
    const float d = load_f16(row);
    for (int p = 0; p < 32; p++) {
      const uint16_t word = load<uint16_t>(row + 2 + 2 * p);
      const float scale = scale_iq2(d, (row[66 + p / 4] >> (4 * (p / 2 % 2))) & 15);
      point_iq2(kIq2XsGrid[word & 511], eight_signs(word >> 9), scale, out + 8 * p);
    }
  }
}

/// [d f16][32 low point bytes][32 sign bytes][8 bytes: two high bits per point][8 scale bytes as IQ2_XS]
void decode_iq2_s(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= kBlock, row += 82, out += kBlock) {
    const float d = load_f16(row);
    for (int p = 0; p < 32; p++) {
      const int high = (row[66 + p / 4] >> (2 * (p % 4))) & 3;
      const float scale = scale_iq2(d, (row[74 + p / 4] >> (4 * (p / 2 % 2))) & 15);
      point_iq2(kIq2SGrid[row[2 + p] | (high << 8)], row[34 + p], scale, out + 8 * p);
    }
  }
}

/// [d f16][64 point bytes][8 × u32: four 7-bit sign codes, 4-bit scale on top]
void decode_iq3_xxs(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= kBlock, row += 98, out += kBlock) {
    const float d = load_f16(row);
    for (int g = 0; g < 8; g++) {
      const uint32_t word = load<uint32_t>(row + 66 + 4 * g);
      const float scale = d * (0.5f + static_cast<float>(word >> 28)) * 0.5f;
      for (int l = 0; l < 8; l++) {
        const unsigned signs = eight_signs(word >> (7 * (l / 2))) >> (4 * (l % 2));
        point_iq3_xxs(kIq3XxsGrid[row[2 + 8 * g + l]], signs, scale, out + 32 * g + 4 * l);
      }
    }
  }
}

/// [d f16][64 low point bytes][8 bytes of ninth bits][32 sign bytes][4 bytes: 4-bit scales of 32 elements]
void decode_iq3_s(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= kBlock, row += 110, out += kBlock) {
    const float d = load_f16(row);
    for (int p = 0; p < 64; p++) {
      const int ninth = (row[66 + p / 8] >> (p % 8)) & 1;
      const int s = (row[106 + p / 16] >> (4 * (p / 8 % 2))) & 15;
      const unsigned signs = static_cast<unsigned>(row[74 + p / 2]) >> (4 * (p % 2));
      point_iq3_s(kIq3SGrid[row[2 + p] | (ninth << 8)], signs, d * static_cast<float>(1 + 2 * s),
                  out + 4 * p);
    }
  }
}

/// [d f16][32 low point bytes][8 × u16: three high bits for each of four points, 3-bit scale, sign of the
/// shift]
void decode_iq1_s(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= kBlock, row += 50, out += kBlock) {
    const float d = load_f16(row);
    for (int g = 0; g < 8; g++) {
      const unsigned word = load<uint16_t>(row + 34 + 2 * g);
      const float scale = d * static_cast<float>(2 * ((word >> 12) & 7) + 1);
      const float shift = (word & 0x8000u) != 0 ? -0.125f : 0.125f;
      for (int l = 0; l < 4; l++) {
        const unsigned high = (word >> (3 * l)) & 7;
        point_iq1(kIq1SGrid[row[2 + 4 * g + l] | (high << 8)], shift, scale, out + 32 * g + 8 * l);
      }
    }
  }
}

/// [32 low point bytes][16 bytes: per point three high bits and the sign of its shift][4 × u16]
/// Each u16: four 3-bit scales of 16 elements, and on top one nibble of the f16 d.
void decode_iq1_m(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= kBlock, row += 56, out += kBlock) {
    unsigned words[4], d_bits = 0;
    for (int k = 0; k < 4; k++) {
      words[k] = load<uint16_t>(row + 48 + 2 * k);
      d_bits |= (words[k] >> 12) << (4 * k);
    }
    const float d = f16_to_f32(static_cast<uint16_t>(d_bits));
    for (int p = 0; p < 32; p++) {
      const unsigned high = row[32 + p / 2] >> (4 * (p % 2));
      const unsigned s = (words[p / 8] >> (3 * (p / 2 % 4))) & 7;
      const float shift = (high & 8) != 0 ? -0.125f : 0.125f;
      point_iq1(kIq1SGrid[row[p] | ((high & 7) << 8)], shift, d * static_cast<float>(2 * s + 1), out + 8 * p);
    }
  }
}

}  // namespace liuli::kernels
