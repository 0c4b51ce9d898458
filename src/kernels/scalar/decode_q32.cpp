// Blocks of 32 elements with one f16 scale d, and in the _1 types an f16 minimum m.
// Low nibbles are elements 0 … 15, high nibbles 16 … 31.
#include "kernels/scalar/decode_blocks.h"

namespace liuli::kernels {
namespace {

constexpr int kBlock = 32;

/// The fifth bits of a block, bit i of `high` moved to bit 4 of codes[i]. Eight at a time inside a 64-bit
/// word: the byte is copied to all eight, each copy keeps its own bit, and adding 0x7F turns "not zero" into
/// the top bit. (A shift by a per-lane count needs AVX2; this is five word operations on any machine.)
inline void spread_fifth_bits(uint32_t high, uint8_t* codes) {
  for (int group = 0; group < 4; group++) {
    uint64_t word = ((high >> (8 * group)) & 0xFFu) * 0x0101010101010101ull & 0x8040201008040201ull;
    word = ((word + 0x7F7F7F7F7F7F7F7Full) >> 3) & 0x1010101010101010ull;
    std::memcpy(codes + 8 * group, &word, 8);
  }
}

/// codes[i] = nibble i of 16 bytes, with the fifth bit from `high`.
inline void five_bit_codes(const uint8_t* __restrict nibbles, uint32_t high, uint8_t* __restrict codes) {
  spread_fifth_bits(high, codes);
  for (int i = 0; i < 16; i++) {
    codes[i] = static_cast<uint8_t>(codes[i] | (nibbles[i] & 15));
    codes[i + 16] = static_cast<uint8_t>(codes[i + 16] | (nibbles[i] >> 4));
  }
}

}  // namespace

/// [d f16][16 bytes]  y = d · (nibble − 8)
void decode_q4_0(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= kBlock, row += 18, out += kBlock) {
    const float d = load_f16(row);
    const uint8_t* q = row + 2;
    for (int i = 0; i < 16; i++) out[i] = d * static_cast<float>((q[i] & 15) - 8);
    for (int i = 0; i < 16; i++) out[i + 16] = d * static_cast<float>((q[i] >> 4) - 8);
  }
}

/// [d f16][m f16][16 bytes]  y = d · nibble + m
void decode_q4_1(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= kBlock, row += 20, out += kBlock) {
    const float d = load_f16(row), m = load_f16(row + 2);
    const uint8_t* q = row + 4;
    for (int i = 0; i < 16; i++) out[i] = d * static_cast<float>(q[i] & 15) + m;
    for (int i = 0; i < 16; i++) out[i + 16] = d * static_cast<float>(q[i] >> 4) + m;
  }
}

/// [d f16][fifth bits u32][16 bytes]  y = d · (code − 16)
void decode_q5_0(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= kBlock, row += 22, out += kBlock) {
    const float d = load_f16(row);
    uint8_t codes[kBlock];
    five_bit_codes(row + 6, load<uint32_t>(row + 2), codes);
    for (int i = 0; i < kBlock; i++) out[i] = d * static_cast<float>(codes[i] - 16);
  }
}

/// [d f16][m f16][fifth bits u32][16 bytes]  y = d · code + m
void decode_q5_1(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= kBlock, row += 24, out += kBlock) {
    const float d = load_f16(row), m = load_f16(row + 2);
    uint8_t codes[kBlock];
    five_bit_codes(row + 8, load<uint32_t>(row + 4), codes);
    for (int i = 0; i < kBlock; i++) out[i] = d * static_cast<float>(codes[i]) + m;
  }
}

/// [d f16][32 × i8]  y = d · q
void decode_q8_0(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= kBlock, row += 34, out += kBlock) {
    const float d = load_f16(row);
    const uint8_t* q = row + 2;
    for (int i = 0; i < kBlock; i++) out[i] = d * static_cast<float>(static_cast<int8_t>(q[i]));
  }
}

}  // namespace liuli::kernels
