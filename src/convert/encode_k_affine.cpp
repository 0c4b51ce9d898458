// Super-blocks of 256 whose groups have a scale and a minimum: Q2_K, Q4_K, Q5_K.
//
//   x̂ = d · sc_g · q − dmin · m_g,   d and dmin f16, sc_g and m_g small integers, q ≥ 0
//
// The groups' free fits say where d and dmin should lie. For a pair (d, dmin) each group picks the integers with
// the least error among the sixteen nearest its free fit; then d and dmin are solved by least squares for those
// integers and codes, and the groups choose again. Several starts, because the error has many small valleys.
#include <cmath>

#include "convert/encode_blocks.h"
#include "convert/encode_search.h"

namespace liuli::encode {
namespace {

constexpr int kBlock = 256, kMaxGroups = 16;
constexpr int kRounds = 3;  ///< of descent at most

struct Shape {
  int groups;
  float code_max, scale_max;  ///< largest code; largest sc and m
  int size() const { return kBlock / groups; }
};

struct Choice {
  float d = 0, dmin = 0;
  float scale[kMaxGroups] = {}, minimum[kMaxGroups] = {};  ///< sc_g and m_g
  double cost = kHopeless;
};

class SuperBlock {
 public:
  SuperBlock(const float* x, const float* w, const Shape& shape);
  Choice search() const;
  void codes(const Choice& choice, float* q) const;

 private:
  Choice assign(float d, float dmin) const;
  void assign_group(int g, Choice& choice) const;
  Choice descend(Choice best) const;
  void solve(const Choice& choice, float& d, float& dmin) const;

  Shape shape_;
  UniformLevels levels_;
  Group groups_[kMaxGroups];
  Fit free_[kMaxGroups];
  float mean_code_[kMaxGroups];  ///< how much a group's minimum should move when its scale does
};

SuperBlock::SuperBlock(const float* x, const float* w, const Shape& shape)
    : shape_(shape), levels_{0, shape.code_max} {
  float q[kBlock];
  for (int g = 0; g < shape.groups; g++) {
    const int begin = g * shape.size();
    groups_[g] = make_group(x + begin, w + begin, shape.size());
    free_[g] = best_affine(groups_[g], levels_, Minimum::not_negative);
    nearest_levels(groups_[g], levels_, free_[g].scale, free_[g].minimum, q);
    float sum = 0;
    for (int i = 0; i < shape.size(); i++) sum += groups_[g].w[i] * q[i];
    mean_code_[g] = sum / groups_[g].sum_w;
  }
}

/// Four scales around the free fit's; for each, four minima around the one that keeps the group's mean.
void SuperBlock::assign_group(int g, Choice& choice) const {
  const Fit& fit = free_[g];
  const float first_scale = std::floor(fit.scale * inverse(choice.d)) - 1;
  float scales[kCandidates], minima[kCandidates];
  Candidates c;
  for (int i = 0; i < kCandidates; i++) {
    scales[i] = std::clamp(first_scale + static_cast<float>(i / 4), 0.0f, shape_.scale_max);
    const float scale = choice.d * scales[i];
    const float target = fit.minimum + (scale - fit.scale) * mean_code_[g];
    const float m = std::floor(target * inverse(choice.dmin)) - 1 + static_cast<float>(i % 4);
    minima[i] = std::clamp(m, 0.0f, shape_.scale_max);
    c.set(i, scale, choice.dmin * minima[i]);
  }
  measure(groups_[g], levels_, c);
  int lane = 0;
  for (int i = 1; i < kCandidates; i++)
    if (c.cost[i] < c.cost[lane]) lane = i;
  choice.scale[g] = scales[lane];
  choice.minimum[g] = minima[lane];
  choice.cost += c.cost[lane];
}

Choice SuperBlock::assign(float d, float dmin) const {
  Choice choice;
  choice.d = round_to_f16(d);
  choice.dmin = round_to_f16(dmin);
  choice.cost = 0;
  for (int g = 0; g < shape_.groups; g++) assign_group(g, choice);
  return choice;
}

void SuperBlock::codes(const Choice& choice, float* q) const {
  for (int g = 0; g < shape_.groups; g++)
    nearest_levels(groups_[g], levels_, choice.d * choice.scale[g], choice.dmin * choice.minimum[g],
                   q + g * shape_.size());
}

/// min Σ w (x − d a + dmin m)² with a = sc · q: two unknowns.
void SuperBlock::solve(const Choice& choice, float& d, float& dmin) const {
  float q[kBlock];
  codes(choice, q);
  double aa = 0, am = 0, mm = 0, ax = 0, mx = 0;
  for (int g = 0; g < shape_.groups; g++) {
    const Group& group = groups_[g];
    float sum_q = 0, sum_qq = 0, sum_xq = 0;
    for (int i = 0; i < group.n; i++) {
      const float code = q[g * group.n + i], wq = group.w[i] * code;
      sum_q += wq;
      sum_qq += wq * code;
      sum_xq += wq * group.x[i];
    }
    const double s = choice.scale[g], m = choice.minimum[g];
    aa += s * s * sum_qq;
    am += s * m * sum_q;
    mm += m * m * group.sum_w;
    ax += s * sum_xq;
    mx += m * group.sum_x;
  }
  const double determinant = aa * mm - am * am;
  if (determinant > 1e-9 * aa * mm) {
    d = static_cast<float>((ax * mm - am * mx) / determinant);
    dmin = static_cast<float>((am * ax - aa * mx) / determinant);
  }
  if (!(determinant > 1e-9 * aa * mm) || dmin < 0) {
    d = aa > 0 ? static_cast<float>(ax / aa) : 0;
    dmin = 0;
  }
}

/// The pair is solved for the groups' choice, they choose again, and so on while that helps.
Choice SuperBlock::descend(Choice best) const {
  for (int round = 0; round < kRounds; round++) {
    float d = 0, dmin = 0;
    solve(best, d, dmin);
    const Choice next = assign(d, dmin);
    if (!(next.cost < best.cost)) break;
    best = next;
  }
  return best;
}

/// Starts are judged before they descend: descending from all of them takes several times as long and leaves the first
/// three digits of the error as they are.
Choice SuperBlock::search() const {
  float scale = 0, minimum = 0;
  for (int g = 0; g < shape_.groups; g++) {
    scale = std::max(scale, free_[g].scale);
    minimum = std::max(minimum, free_[g].minimum);
  }
  const float d = scale / shape_.scale_max, dmin = minimum / shape_.scale_max;
  Choice best;
  const auto try_start = [&](float scale_factor, float minimum_factor) {
    const Choice choice = assign(d * scale_factor, dmin * minimum_factor);
    if (choice.cost < best.cost) best = choice;
  };
  if (shape_.scale_max > 15) {
    for (float f : {1.0f, 0.97f}) try_start(f, 1.0f);
  } else {
    // Four-bit scales are coarse: the largest group's share of the error decides less than how the others fall.
    for (float f : {1.0f, 0.92f, 0.84f, 0.75f}) try_start(f, 1.0f);
    const float factor = d > 0 ? best.d / d : 1.0f;
    for (float f : {0.92f, 0.84f, 0.75f}) try_start(factor, f);
  }
  return descend(best);
}

/// Twelve bytes of six-bit scales and minima (see SixBitScales in kernels/scalar/decode_k.cpp).
void pack_six_bits(const Choice& choice, uint8_t* out) {
  for (int g = 0; g < 4; g++) {
    const auto scale = static_cast<unsigned>(choice.scale[g]),
               minimum = static_cast<unsigned>(choice.minimum[g]);
    const auto scale4 = static_cast<unsigned>(choice.scale[g + 4]);
    const auto minimum4 = static_cast<unsigned>(choice.minimum[g + 4]);
    out[g] = static_cast<uint8_t>(scale | (scale4 >> 4) << 6);
    out[g + 4] = static_cast<uint8_t>(minimum | (minimum4 >> 4) << 6);
    out[g + 8] = static_cast<uint8_t>((scale4 & 15) | (minimum4 & 15) << 4);
  }
}

/// Codes of groups of 32: low nibbles, and the fifth bits where the type has them.
void pack_pairs_of_groups(const float* q, uint8_t* nibbles, uint8_t* fifth) {
  for (int g = 0; g < 8; g++) {
    for (int i = 0; i < 32; i++) {
      const auto code = static_cast<unsigned>(q[32 * g + i]);
      uint8_t& byte = nibbles[32 * (g / 2) + i];
      byte = static_cast<uint8_t>(g % 2 == 0 ? code & 15 : byte | (code & 15) << 4);
      if (fifth != nullptr) fifth[i] = static_cast<uint8_t>((g == 0 ? 0 : fifth[i]) | (code >> 4) << g);
    }
  }
}

Choice encode_groups_of_32(const float* x, const float* w, float code_max, uint8_t* out, float* q) {
  const SuperBlock block(x, w, Shape{8, code_max, 63});
  const Choice choice = block.search();
  block.codes(choice, q);
  store_u16(out, scale_to_f16(choice.d));
  store_u16(out + 2, scale_to_f16(choice.dmin));
  pack_six_bits(choice, out + 4);
  return choice;
}

}  // namespace

void encode_q4_k(const float* x, const float* w, uint8_t* out) {
  float q[kBlock];
  encode_groups_of_32(x, w, 15, out, q);
  pack_pairs_of_groups(q, out + 16, nullptr);
}

void encode_q5_k(const float* x, const float* w, uint8_t* out) {
  float q[kBlock];
  encode_groups_of_32(x, w, 31, out, q);
  pack_pairs_of_groups(q, out + 48, out + 16);
}

void encode_q2_k(const float* x, const float* w, uint8_t* out) {
  const SuperBlock block(x, w, Shape{16, 3, 15});
  const Choice choice = block.search();
  float q[kBlock];
  block.codes(choice, q);
  for (int g = 0; g < 16; g++)
    out[g] = static_cast<uint8_t>(static_cast<unsigned>(choice.scale[g]) |
                                  static_cast<unsigned>(choice.minimum[g]) << 4);
  // Byte 32 · half + l holds elements l, l + 32, l + 64, l + 96 of its half, two bits each.
  for (int i = 0; i < 64; i++) {
    const float* first = q + 128 * (i / 32) + i % 32;
    unsigned byte = 0;
    for (int k = 0; k < 4; k++) byte |= static_cast<unsigned>(first[32 * k]) << (2 * k);
    out[16 + i] = static_cast<uint8_t>(byte);
  }
  store_u16(out + 80, scale_to_f16(choice.d));
  store_u16(out + 82, scale_to_f16(choice.dmin));
}

}  // namespace liuli::encode
