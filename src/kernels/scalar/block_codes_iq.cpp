// IQ1, IQ2, IQ3 as codes and scales: the points' codes (lattice_points.h) with signs or shifts, see decode_iq.cpp.
#include "kernels/scalar/block_codes.h"
#include "kernels/scalar/decode_blocks.h"
#include "kernels/scalar/lattice_points.h"

namespace liuli::kernels {
namespace {

// n columns of a point; a set sign turns 128 + m into 128 − m.
template <class Word>
void put_signed(Word point, unsigned signs, uint8_t* code) {
  for (int i = 0; i < static_cast<int>(sizeof point); i++) {
    const auto c = static_cast<int>((point >> (8 * i)) & 255);
    code[i] = static_cast<uint8_t>(((signs >> i) & 1) != 0 ? 256 - c : c);
  }
}

void put_shifted(uint64_t point, bool down, uint8_t* code) {
  for (int i = 0; i < 8; i++)
    code[i] = static_cast<uint8_t>(((point >> (8 * i)) & 255) + (down ? uint64_t{255} : uint64_t{1}));
}

int nibble_of(const uint8_t* bytes, int i) { return (bytes[i / 2] >> (4 * (i % 2))) & 15; }

void set_scale(BlockCodes& out, int sub, float scale) {
  out.scale[sub] = scale;
  out.minimum[sub] = 0.0f;
}

/// d · (1/2 + s) / 4, the scale of IQ2.
float scale_iq2(float d, int s) { return d * (0.5f + static_cast<float>(s)) * 0.25f; }

/// d · (2 s + 1), of eighths.
float scale_iq1(float d, unsigned s) { return d * static_cast<float>(2 * s + 1) * 0.125f; }

}  // namespace

void split_iq2_xxs(const uint8_t* block, int, BlockCodes& out) noexcept {
  for (int g = 0; g < 8; g++) {
    const uint8_t* points = block + 2 + 8 * g;
    const auto word = load<uint32_t>(points + 4);
    set_scale(out, g, scale_iq2(load_f16(block), static_cast<int>(word >> 28)));
    for (int p = 0; p < 4; p++)
      put_signed(kIq2XxsPoints.word[points[p]], eight_signs(word >> (7 * p)), out.code + 32 * g + 8 * p);
  }
}

void split_iq2_xs(const uint8_t* block, int, BlockCodes& out) noexcept {
  for (int s = 0; s < 16; s++) set_scale(out, s, scale_iq2(load_f16(block), nibble_of(block + 66, s)));
  for (int p = 0; p < 32; p++) {
    const auto word = load<uint16_t>(block + 2 + 2 * p);
    put_signed(kIq2XsPoints.word[word & 511], eight_signs(word >> 9), out.code + 8 * p);
  }
}

void split_iq2_s(const uint8_t* block, int, BlockCodes& out) noexcept {
  for (int s = 0; s < 16; s++) set_scale(out, s, scale_iq2(load_f16(block), nibble_of(block + 74, s)));
  for (int p = 0; p < 32; p++) {
    const int high = (block[66 + p / 4] >> (2 * (p % 4))) & 3;
    put_signed(kIq2SPoints.word[block[2 + p] | high << 8], block[34 + p], out.code + 8 * p);
  }
}

void split_iq3_xxs(const uint8_t* block, int, BlockCodes& out) noexcept {
  for (int g = 0; g < 8; g++) {
    const auto word = load<uint32_t>(block + 66 + 4 * g);
    set_scale(out, g, load_f16(block) * (0.5f + static_cast<float>(word >> 28)) * 0.5f);
    for (int p = 0; p < 8; p++)
      put_signed(kIq3XxsPoints.word[block[2 + 8 * g + p]],
                 eight_signs(word >> (7 * (p / 2))) >> (4 * (p % 2)), out.code + 32 * g + 4 * p);
  }
}

void split_iq3_s(const uint8_t* block, int, BlockCodes& out) noexcept {
  for (int g = 0; g < 8; g++)
    set_scale(out, g, load_f16(block) * static_cast<float>(1 + 2 * nibble_of(block + 106, g)));
  for (int p = 0; p < 64; p++) {
    const int ninth = (block[66 + p / 8] >> (p % 8)) & 1;
    put_signed(kIq3SPoints.word[block[2 + p] | ninth << 8], unsigned{block[74 + p / 2]} >> (4 * (p % 2)),
               out.code + 4 * p);
  }
}

void split_iq1_s(const uint8_t* block, int, BlockCodes& out) noexcept {
  for (int g = 0; g < 8; g++) {
    const unsigned word = load<uint16_t>(block + 34 + 2 * g);
    set_scale(out, g, scale_iq1(load_f16(block), (word >> 12) & 7));
    for (int p = 0; p < 4; p++)
      put_shifted(kIq1Points.word[block[2 + 4 * g + p] | ((word >> (3 * p)) & 7) << 8], (word & 0x8000u) != 0,
                  out.code + 32 * g + 8 * p);
  }
}

void split_iq1_m(const uint8_t* block, int, BlockCodes& out) noexcept {
  unsigned words[4], d_bits = 0;
  for (int k = 0; k < 4; k++) {
    words[k] = load<uint16_t>(block + 48 + 2 * k);
    d_bits |= (words[k] >> 12) << (4 * k);
  }
  const float d = f16_to_f32(static_cast<uint16_t>(d_bits));
  for (int s = 0; s < 16; s++) set_scale(out, s, scale_iq1(d, (words[s / 4] >> (3 * (s % 4))) & 7));
  for (int p = 0; p < 32; p++) {
    const auto high = static_cast<unsigned>(nibble_of(block + 32, p));
    put_shifted(kIq1Points.word[block[p] | (high & 7) << 8], (high & 8) != 0, out.code + 8 * p);
  }
}

}  // namespace liuli::kernels
