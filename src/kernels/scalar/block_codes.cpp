#include "kernels/scalar/block_codes.h"

#include <cstring>

#include "core/half.h"
#include "kernels/scalar/decode_blocks.h"

namespace liuli::kernels {
namespace {

float half_at(const uint8_t* p) {
  uint16_t bits;
  std::memcpy(&bits, p, 2);
  return f16_to_f32(bits);
}

int nibble(const uint8_t* bytes, int i) { return (bytes[i % 16] >> 4 * (i / 16)) & 15; }

// The signed table of IQ4 plus 128, so that codes stay unsigned.
constexpr uint8_t kIq4Plus128[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};

// ---- blocks of 32 ---------------------------------------------------------------------------------------

struct Block32 {
  int bytes;
  bool has_minimum, has_high_bit, is_byte, is_table;
};

template <Block32 t>
void split_32(const uint8_t* block, int n, BlockCodes& out) noexcept {
  for (int b = 0; b < n / 32; b++, block += t.bytes) {
    out.scale[b] = half_at(block);
    out.minimum[b] = t.has_minimum ? half_at(block + 2) : 0.0f;
    const uint8_t* high = block + (t.has_minimum ? 4 : 2);
    const uint8_t* codes = high + (t.has_high_bit ? 4 : 0);
    for (int i = 0; i < 32; i++) {
      int code = t.is_byte ? codes[i] ^ 0x80 : nibble(codes, i);
      if (t.has_high_bit) code |= ((high[i / 8] >> i % 8) & 1) << 4;
      if (t.is_table) code = kIq4Plus128[code];
      out.code[32 * b + i] = static_cast<uint8_t>(code);
    }
  }
}

// ---- super-blocks of 256 --------------------------------------------------------------------------------

// The 6-bit scales and minima of Q4_K and Q5_K, packed into 12 bytes.
void scales_q4_k(const uint8_t* block, BlockCodes& out) {
  const float d = half_at(block), minus_dmin = -half_at(block + 2);
  const uint8_t* s = block + 4;
  for (int g = 0; g < 8; g++) {
    const int scale = g < 4 ? s[g] & 63 : (s[g + 4] & 15) | (s[g - 4] >> 6) << 4;
    const int minimum = g < 4 ? s[g + 4] & 63 : (s[g + 4] >> 4) | (s[g] >> 6) << 4;
    out.scale[g] = d * static_cast<float>(scale);
    out.minimum[g] = minus_dmin * static_cast<float>(minimum);
  }
}

void split_q4_k(const uint8_t* block, int, BlockCodes& out) noexcept {
  scales_q4_k(block, out);
  for (int i = 0; i < 256; i++) out.code[i] = (block[16 + 32 * (i / 64) + i % 32] >> 4 * (i / 32 % 2)) & 15;
}

void split_q5_k(const uint8_t* block, int, BlockCodes& out) noexcept {
  scales_q4_k(block, out);
  for (int i = 0; i < 256; i++) {
    const int low = (block[48 + 32 * (i / 64) + i % 32] >> 4 * (i / 32 % 2)) & 15;
    const int high = (block[16 + i % 32] >> (i / 32)) & 1;
    out.code[i] = static_cast<uint8_t>(low | high << 4);
  }
}

void split_q6_k(const uint8_t* block, int, BlockCodes& out) noexcept {
  const float d = half_at(block + 208);
  for (int s = 0; s < 16; s++) {
    out.scale[s] = d * static_cast<float>(static_cast<int8_t>(block[192 + s]));
    out.minimum[s] = 0.0f;
  }
  for (int i = 0; i < 256; i++) {
    const int n = i / 128, k = i % 128 / 32, l = i % 32;
    const int low = (block[64 * n + 32 * (k & 1) + l] >> 4 * (k / 2)) & 15;
    const int high = (block[128 + 32 * n + l] >> 2 * k) & 3;
    out.code[i] = static_cast<uint8_t>(low | high << 4);
  }
}

int two_bits(const uint8_t* bytes, int i) {
  return (bytes[32 * (i / 128) + i % 32] >> 2 * (i % 128 / 32)) & 3;
}

void split_q2_k(const uint8_t* block, int, BlockCodes& out) noexcept {
  const float d = half_at(block + 80), minus_dmin = -half_at(block + 82);
  for (int s = 0; s < 16; s++) {
    out.scale[s] = d * static_cast<float>(block[s] & 15);
    out.minimum[s] = minus_dmin * static_cast<float>(block[s] >> 4);
  }
  for (int i = 0; i < 256; i++) out.code[i] = static_cast<uint8_t>(two_bits(block + 16, i));
}

void split_q3_k(const uint8_t* block, int, BlockCodes& out) noexcept {
  const float d = half_at(block + 108);
  const uint8_t* scales = block + 96;
  for (int s = 0; s < 16; s++) {
    const int low = s < 8 ? scales[s] & 15 : scales[s - 8] >> 4;
    const int high = (scales[8 + s % 4] >> 2 * (s / 4)) & 3;
    out.scale[s] = d * static_cast<float>((low | high << 4) - 32);
    out.minimum[s] = 0.0f;
  }
  for (int i = 0; i < 256; i++) {
    const int high = (block[i % 32] >> (i / 32)) & 1;
    out.code[i] = static_cast<uint8_t>(two_bits(block + 32, i) | high << 2);
  }
}

void split_iq4_xs(const uint8_t* block, int, BlockCodes& out) noexcept {
  const float d = half_at(block);
  const int scales_high = block[2] | block[3] << 8;
  for (int g = 0; g < 8; g++) {
    const int low = (block[4 + g / 2] >> 4 * (g % 2)) & 15, high = (scales_high >> 2 * g) & 3;
    out.scale[g] = d * static_cast<float>((low | high << 4) - 32);
    out.minimum[g] = 0.0f;
    for (int i = 0; i < 32; i++) out.code[32 * g + i] = kIq4Plus128[nibble(block + 8 + 16 * g, i)];
  }
}

// ---- FP4 and ternary --------------------------------------------------------------------------------------

// Twice the values of E2M1 plus 16; the scales are halved.
constexpr uint8_t kFp4DoubledPlus16[16] = {16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4};

void split_mxfp4(const uint8_t* block, int n, BlockCodes& out) noexcept {
  for (int b = 0; b < n / 32; b++, block += 17) {
    out.scale[b] = half_of_e8m0(block[0]);
    out.minimum[b] = 0.0f;
    for (int i = 0; i < 32; i++) out.code[32 * b + i] = kFp4DoubledPlus16[nibble(block + 1, i)];
  }
}

void split_nvfp4(const uint8_t* block, int n, BlockCodes& out) noexcept {
  for (int s = 0; s < n / 16; s++) {
    const uint8_t* q = block + s / 4 * 36 + 4 + s % 4 * 8;
    out.scale[s] = half_of_e4m3(block[s / 4 * 36 + s % 4]);
    out.minimum[s] = 0.0f;
    for (int i = 0; i < 16; i++) out.code[16 * s + i] = kFp4DoubledPlus16[(q[i % 8] >> 4 * (i / 8)) & 15];
  }
}

void fill_scales(BlockCodes& out, float scale) {
  for (int g = 0; g < 8; g++) out.scale[g] = scale, out.minimum[g] = 0.0f;
}

void split_tq2_0(const uint8_t* block, int, BlockCodes& out) noexcept {
  fill_scales(out, half_at(block + 64));
  for (int i = 0; i < 256; i++) out.code[i] = static_cast<uint8_t>(two_bits(block, i));
}

void split_tq1_0(const uint8_t* block, int, BlockCodes& out) noexcept {
  fill_scales(out, half_at(block + 52));
  uint8_t* code = out.code;
  const auto digits = [&](int first, int n, int count) {
    for (int k = 0, power = 1; k < count; k++, power *= 3)
      for (int i = 0; i < n; i++) *code++ = static_cast<uint8_t>(trit(block[first + i], power) + 1);
  };
  digits(0, 32, 5);
  digits(32, 16, 5);
  digits(48, 4, 4);
}

struct Entry {
  DType type;
  BlockCodesType codes;
};
constexpr Entry kEntries[] = {
    {DType::q4_0, {32, 8, 0, 15, false, split_32<Block32{18, false, false, false, false}>}},
    {DType::q4_1, {32, 0, 0, 15, true, split_32<Block32{20, true, false, false, false}>}},
    {DType::q5_0, {32, 16, 0, 31, false, split_32<Block32{22, false, true, false, false}>}},
    {DType::q5_1, {32, 0, 0, 31, true, split_32<Block32{24, true, true, false, false}>}},
    {DType::q8_0, {32, 128, 0, 255, false, split_32<Block32{34, false, false, true, false}>}},
    {DType::iq4_nl, {32, 128, 1, 241, false, split_32<Block32{18, false, false, false, true}>}},
    {DType::q2_k, {16, 0, 0, 3, true, split_q2_k}},
    {DType::q3_k, {16, 4, 0, 7, false, split_q3_k}},
    {DType::q4_k, {32, 0, 0, 15, true, split_q4_k}},
    {DType::q5_k, {32, 0, 0, 31, true, split_q5_k}},
    {DType::q6_k, {16, 32, 0, 63, false, split_q6_k}},
    {DType::iq4_xs, {32, 128, 1, 241, false, split_iq4_xs}},
    {DType::mxfp4, {32, 16, 4, 28, false, split_mxfp4}},
    {DType::nvfp4, {16, 16, 4, 28, false, split_nvfp4}},
    {DType::tq1_0, {32, 1, 0, 2, false, split_tq1_0}},
    {DType::tq2_0, {32, 1, 0, 3, false, split_tq2_0}},
    {DType::iq1_s, {32, 16, 7, 25, false, split_iq1_s}},
    {DType::iq1_m, {16, 16, 7, 25, false, split_iq1_m}},
    {DType::iq2_xxs, {32, 128, 85, 171, false, split_iq2_xxs}},
    {DType::iq2_xs, {16, 128, 85, 171, false, split_iq2_xs}},
    {DType::iq2_s, {16, 128, 85, 171, false, split_iq2_s}},
    {DType::iq3_xxs, {32, 128, 66, 190, false, split_iq3_xxs}},
    {DType::iq3_s, {32, 128, 113, 143, false, split_iq3_s}},
};

}  // namespace

const BlockCodesType* block_codes_type(DType type) noexcept {
  for (const Entry& entry : kEntries)
    if (entry.type == type) return &entry.codes;
  return nullptr;
}

}  // namespace liuli::kernels
