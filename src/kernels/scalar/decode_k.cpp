// K-quants: super-blocks of 256 elements in groups of 16 or 32 whose scales are integers themselves.
// The product d · scale is formed first, then multiplied by the code: the published order, which fixes the
// last bit.
#include "kernels/scalar/decode_blocks.h"

namespace liuli::kernels {
namespace {

constexpr int kBlock = 256;

/// The six-bit scales and minima of Q4_K and Q5_K, eight each, packed in twelve bytes s:
///   g < 4:  scale = s[g] & 63,                              minimum = s[g+4] & 63
///   g ≥ 4:  scale = (s[g+4] & 15) | top 2 bits of s[g−4],   minimum = (s[g+4] >> 4) | top 2 bits of s[g]
struct SixBitScales {
  uint8_t scale[8], minimum[8];
  explicit SixBitScales(const uint8_t* s) {
    for (int g = 0; g < 4; g++) {
      scale[g] = s[g] & 63;
      minimum[g] = s[g + 4] & 63;
      scale[g + 4] = static_cast<uint8_t>((s[g + 8] & 15) | ((s[g] >> 6) << 4));
      minimum[g + 4] = static_cast<uint8_t>((s[g + 8] >> 4) | ((s[g + 4] >> 6) << 4));
    }
  }
};

/// Q3_K's sixteen signed scales in twelve bytes: low nibbles in the first eight, two high bits in the last
/// four.
inline void unpack_q3_k_scales(const uint8_t* s, int8_t* scales) {
  for (int g = 0; g < 16; g++) {
    const int low = g < 8 ? s[g] & 15 : s[g - 8] >> 4;
    const int high = (s[8 + g % 4] >> (2 * (g / 4))) & 3;
    scales[g] = static_cast<int8_t>((low | (high << 4)) - 32);
  }
}

}  // namespace

/// [16 scale bytes][64 code bytes][d f16][dmin f16], groups of 16
/// y = d · (scale & 15) · code − dmin · (scale >> 4)
void decode_q2_k(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= kBlock, row += 84, out += kBlock) {
    const float d = load_f16(row + 80), dmin = load_f16(row + 82);
    for (int g = 0; g < 16; g++) {
      // Group g: half g / 8 of the codes, bit pair (g / 2) % 4, byte range 16 · (g % 2).
      const uint8_t* q = row + 16 + 32 * (g / 8) + 16 * (g % 2);
      const int shift = 2 * (g / 2 % 4);
      const float scale = d * static_cast<float>(row[g] & 15),
                  minimum = dmin * static_cast<float>(row[g] >> 4);
      for (int i = 0; i < 16; i++)
        out[16 * g + i] = scale * static_cast<float>((q[i] >> shift) & 3) - minimum;
    }
  }
}

/// [32 bytes of third bits][64 code bytes][12 scale bytes][d f16], groups of 16
/// y = d · scale · (code − (third bit ? 0 : 4))
void decode_q3_k(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= kBlock, row += 110, out += kBlock) {
    const float d = load_f16(row + 108);
    int8_t scales[16];
    unpack_q3_k_scales(row + 96, scales);
    for (int g = 0; g < 16; g++) {
      const uint8_t* q = row + 32 + 32 * (g / 8) + 16 * (g % 2);
      const uint8_t* third = row + 16 * (g % 2);
      const int shift = 2 * (g / 2 % 4), bit = g / 2;
      const float scale = d * static_cast<float>(scales[g]);
      for (int i = 0; i < 16; i++) {
        const int code = ((q[i] >> shift) & 3) + 4 * ((third[i] >> bit) & 1) - 4;
        out[16 * g + i] = scale * static_cast<float>(code);
      }
    }
  }
}

/// [d f16][dmin f16][12 scale bytes][128 code bytes], groups of 32
/// y = d · scale · nibble − dmin · minimum
void decode_q4_k(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= kBlock, row += 144, out += kBlock) {
    const float d = load_f16(row), dmin = load_f16(row + 2);
    const SixBitScales s(row + 4);
    for (int g = 0; g < 8; g++) {
      const uint8_t* q = row + 16 + 32 * (g / 2);
      const int shift = 4 * (g % 2);
      const float scale = d * static_cast<float>(s.scale[g]),
                  minimum = dmin * static_cast<float>(s.minimum[g]);
      for (int i = 0; i < 32; i++)
        out[32 * g + i] = scale * static_cast<float>((q[i] >> shift) & 15) - minimum;
    }
  }
}

/// [d f16][dmin f16][12 scale bytes][32 bytes of fifth bits][128 code bytes], groups of 32: Q4_K with codes 0
/// … 31
void decode_q5_k(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= kBlock, row += 176, out += kBlock) {
    const float d = load_f16(row), dmin = load_f16(row + 2);
    const SixBitScales s(row + 4);
    const uint8_t* fifth = row + 16;
    for (int g = 0; g < 8; g++) {
      const uint8_t* q = row + 48 + 32 * (g / 2);
      const int shift = 4 * (g % 2);
      const float scale = d * static_cast<float>(s.scale[g]),
                  minimum = dmin * static_cast<float>(s.minimum[g]);
      for (int i = 0; i < 32; i++) {
        const int code = ((q[i] >> shift) & 15) + 16 * ((fifth[i] >> g) & 1);
        out[32 * g + i] = scale * static_cast<float>(code) - minimum;
      }
    }
  }
}

/// [128 low nibbles][64 high bit pairs][16 × i8 scales][d f16], groups of 16
/// y = d · scale · (code − 32)
void decode_q6_k(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= kBlock, row += 210, out += kBlock) {
    const float d = load_f16(row + 208);
    for (int g = 0; g < 16; g++) {
      // Eight groups share 64 low and 32 high bytes; within them quarter k = (g / 2) % 4 picks nibble and bit
      // pair.
      const int half = g / 8, k = g / 2 % 4, side = 16 * (g % 2);
      const uint8_t* low = row + 64 * half + 32 * (k % 2) + side;
      const uint8_t* high = row + 128 + 32 * half + side;
      const int low_shift = 4 * (k / 2), high_shift = 2 * k;
      const float scale = d * static_cast<float>(static_cast<int8_t>(row[192 + g]));
      for (int i = 0; i < 16; i++) {
        const int code = ((low[i] >> low_shift) & 15) + 16 * ((high[i] >> high_shift) & 3) - 32;
        out[16 * g + i] = scale * static_cast<float>(code);
      }
    }
  }
}

}  // namespace liuli::kernels
