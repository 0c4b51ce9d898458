// Blocks of 32 with an f16 scale, and in the _1 types an f16 minimum: Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 IQ4_NL.
#include "convert/encode_blocks.h"
#include "convert/encode_search.h"

namespace liuli::encode {
namespace {

constexpr int kBlock = 32;

/// Scale and codes of a symmetric block: the best scale of either sign, then the best of the sixteen f16 values
/// around it, judged by the error a decoder will see.
template <class Levels>
float symmetric_block(const float* x, const float* w, const Levels& levels, const ScaleRange& range,
                      float* q) {
  const Group g = make_group(x, w, kBlock);
  const Fit fit = best_symmetric(g, levels, range).best();
  Candidates c;
  for (int i = 0; i < kCandidates; i++) c.set(i, f16_neighbour(fit.scale, i - kCandidates / 2), 0);
  measure(g, levels, c);
  const float scale = c.best().scale;
  nearest_levels(g, levels, scale, 0, q);
  return scale;
}

/// Likewise with a minimum: 4 × 4 f16 values around the best pair. x̂ = scale · q − minimum.
Fit affine_block(const float* x, const float* w, const UniformLevels& levels, float* q) {
  const Group g = make_group(x, w, kBlock);
  const Fit fit = best_affine(g, levels, Minimum::free);
  Candidates c;
  for (int i = 0; i < kCandidates; i++)
    c.set(i, f16_neighbour(fit.scale, i % 4 - 2), f16_neighbour(fit.minimum, i / 4 - 2));
  measure(g, levels, c);
  const Fit best = c.best();
  nearest_levels(g, levels, best.scale, best.minimum, q);
  return best;
}

/// 16 bytes of nibbles, elements 0 … 15 low; the fifth bits come back.
uint32_t pack_nibbles(const float* q, float offset, uint8_t* out) {
  uint32_t fifth = 0;
  for (int i = 0; i < 16; i++) {
    const auto low = static_cast<unsigned>(q[i] + offset), high = static_cast<unsigned>(q[i + 16] + offset);
    out[i] = static_cast<uint8_t>((low & 15) | (high << 4));
    fifth |= (low >> 4) << i | (high >> 4) << (i + 16);
  }
  return fifth;
}

}  // namespace

void encode_q4_0(const float* x, const float* w, uint8_t* out) {
  float q[kBlock];
  store_u16(out, scale_to_f16(symmetric_block(x, w, UniformLevels{-8, 7}, scale_range(8, 8), q)));
  pack_nibbles(q, 8, out + 2);
}

void encode_q4_1(const float* x, const float* w, uint8_t* out) {
  float q[kBlock];
  const Fit fit = affine_block(x, w, UniformLevels{0, 15}, q);
  store_u16(out, scale_to_f16(fit.scale));
  store_u16(out + 2, scale_to_f16(-fit.minimum));
  pack_nibbles(q, 0, out + 4);
}

void encode_q5_0(const float* x, const float* w, uint8_t* out) {
  float q[kBlock];
  store_u16(out, scale_to_f16(symmetric_block(x, w, UniformLevels{-16, 15}, scale_range(16, 16), q)));
  store_u32(out + 2, pack_nibbles(q, 16, out + 6));
}

void encode_q5_1(const float* x, const float* w, uint8_t* out) {
  float q[kBlock];
  const Fit fit = affine_block(x, w, UniformLevels{0, 31}, q);
  store_u16(out, scale_to_f16(fit.scale));
  store_u16(out + 2, scale_to_f16(-fit.minimum));
  store_u32(out + 4, pack_nibbles(q, 0, out + 8));
}

/// Codes stop at ±127: −128 is legal, but integer kernels elsewhere take |q|, which does not fit i8 then.
void encode_q8_0(const float* x, const float* w, uint8_t* out) {
  float q[kBlock];
  store_u16(out, scale_to_f16(symmetric_block(x, w, UniformLevels{-127, 127}, scale_range(127, 127), q)));
  for (int i = 0; i < kBlock; i++) out[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(q[i]));
}

void encode_iq4_nl(const float* x, const float* w, uint8_t* out) {
  float q[kBlock];
  store_u16(out, scale_to_f16(symmetric_block(x, w, Iq4Levels{}, scale_range(127, 8), q)));
  for (int i = 0; i < 16; i++)
    out[2 + i] = static_cast<uint8_t>(Iq4Levels::code(q[i]) | (Iq4Levels::code(q[i + 16]) << 4));
}

}  // namespace liuli::encode
