// Super-blocks of 256 whose groups have a signed scale only: Q3_K, Q6_K, IQ4_XS.
//
//   x̂ = d · S_g · q,   d f16, S_g a small signed integer, q from levels that reach further below 0 than above
//
// As in encode_k_affine.cpp: groups choose S_g among sixteen (eight around their best fit of either sign), d is
// solved by least squares, groups choose again; several starts.
#include <cmath>

#include "convert/encode_blocks.h"
#include "convert/encode_search.h"

namespace liuli::encode {
namespace {

constexpr int kBlock = 256, kMaxGroups = 16;
constexpr int kRounds = 2;  ///< of descent at most

struct Choice {
  float d = 0;
  float scale[kMaxGroups] = {};  ///< S_g
  double cost = kHopeless;
};

template <class Levels>
class SuperBlock {
 public:
  /// Scales are integers −scale_max … scale_max − 1.
  SuperBlock(const float* x, const float* w, int groups, const Levels& levels, const ScaleRange& range,
             float scale_max)
      : n_groups_(groups), levels_(levels), scale_max_(scale_max) {
    const int size = kBlock / groups;
    for (int g = 0; g < groups; g++) {
      groups_[g] = make_group(x + g * size, w + g * size, size);
      free_[g] = best_symmetric(groups_[g], levels, range);
    }
  }

  Choice search() const {
    float largest = 0;
    for (int g = 0; g < n_groups_; g++)
      if (const float s = free_[g].best().scale; std::fabs(s) > std::fabs(largest)) largest = s;
    Choice best;
    for (float f : {1.0f, 0.96f}) {
      for (float limit : {-scale_max_, scale_max_ - 1}) {
        const Choice choice = assign(largest / limit * f);
        if (choice.cost < best.cost) best = choice;
      }
    }
    return descend(best);
  }

  void codes(const Choice& choice, float* q) const {
    for (int g = 0; g < n_groups_; g++)
      nearest_levels(groups_[g], levels_, choice.d * choice.scale[g], 0, q + g * groups_[g].n);
  }

 private:
  void assign_group(int g, Choice& choice) const {
    const float inv = inverse(choice.d);
    const float around_positive = std::floor(free_[g].positive.scale * inv) - 3;
    const float around_negative = std::floor(free_[g].negative.scale * inv) - 3;
    float scales[kCandidates];
    Candidates c;
    for (int i = 0; i < kCandidates; i++) {
      const float s = (i < 8 ? around_positive : around_negative) + static_cast<float>(i % 8);
      scales[i] = std::clamp(s, -scale_max_, scale_max_ - 1);
      c.set(i, choice.d * scales[i], 0);
    }
    measure(groups_[g], levels_, c);
    int lane = 0;
    for (int i = 1; i < kCandidates; i++)
      if (c.cost[i] < c.cost[lane]) lane = i;
    choice.scale[g] = scales[lane];
    choice.cost += c.cost[lane];
  }

  Choice assign(float d) const {
    Choice choice;
    choice.d = round_to_f16(d);
    choice.cost = 0;
    for (int g = 0; g < n_groups_; g++) assign_group(g, choice);
    return choice;
  }

  /// min Σ w (x − d S q)².
  float solve(const Choice& choice) const {
    float q[kBlock];
    codes(choice, q);
    double aa = 0, ax = 0;
    for (int g = 0; g < n_groups_; g++) {
      const Group& group = groups_[g];
      float sum_qq = 0, sum_xq = 0;
      for (int i = 0; i < group.n; i++) {
        const float wq = group.w[i] * q[g * group.n + i];
        sum_qq += wq * q[g * group.n + i];
        sum_xq += wq * group.x[i];
      }
      const double s = choice.scale[g];
      aa += s * s * sum_qq;
      ax += s * sum_xq;
    }
    return aa > 0 ? static_cast<float>(ax / aa) : 0.0f;
  }

  Choice descend(Choice best) const {
    for (int round = 0; round < kRounds; round++) {
      const Choice next = assign(solve(best));
      if (!(next.cost < best.cost)) break;
      best = next;
    }
    return best;
  }

  int n_groups_;
  Levels levels_;
  float scale_max_;
  Group groups_[kMaxGroups];
  SignedFits free_[kMaxGroups];
};

/// Q3_K's sixteen scales, each plus 32, in twelve bytes: low nibbles in the first eight, two high bits in the rest.
void pack_q3_k_scales(const float* scales, uint8_t* out) {
  std::memset(out, 0, 12);
  for (int g = 0; g < 16; g++) {
    const auto s = static_cast<unsigned>(scales[g] + 32);
    out[g % 8] = static_cast<uint8_t>(out[g % 8] | (s & 15) << (g < 8 ? 0 : 4));
    out[8 + g % 4] = static_cast<uint8_t>(out[8 + g % 4] | (s >> 4) << (2 * (g / 4)));
  }
}

}  // namespace

void encode_q3_k(const float* x, const float* w, uint8_t* out) {
  const SuperBlock block(x, w, 16, UniformLevels{-4, 3}, scale_range(4, 4), 32);
  const Choice choice = block.search();
  float q[kBlock];
  block.codes(choice, q);
  std::memset(out, 0, 96);
  for (int i = 0; i < kBlock; i++) {
    const auto code = static_cast<unsigned>(q[i] + 4);
    const int half = i / 128, k = i % 128 / 32, l = i % 32;
    out[32 + 32 * half + l] = static_cast<uint8_t>(out[32 + 32 * half + l] | (code & 3) << (2 * k));
    out[l] = static_cast<uint8_t>(out[l] | (code >> 2) << (4 * half + k));
  }
  pack_q3_k_scales(choice.scale, out + 96);
  store_u16(out + 108, scale_to_f16(choice.d));
}

void encode_q6_k(const float* x, const float* w, uint8_t* out) {
  const SuperBlock block(x, w, 16, UniformLevels{-32, 31}, scale_range(32, 32), 128);
  const Choice choice = block.search();
  float q[kBlock];
  block.codes(choice, q);
  std::memset(out, 0, 192);
  for (int i = 0; i < kBlock; i++) {
    const auto code = static_cast<unsigned>(q[i] + 32);
    const int half = i / 128, k = i % 128 / 32, l = i % 32;
    uint8_t& low = out[64 * half + 32 * (k % 2) + l];
    uint8_t& high = out[128 + 32 * half + l];
    low = static_cast<uint8_t>(low | (code & 15) << (4 * (k / 2)));
    high = static_cast<uint8_t>(high | (code >> 4) << (2 * k));
  }
  for (int g = 0; g < 16; g++) out[192 + g] = static_cast<uint8_t>(static_cast<int8_t>(choice.scale[g]));
  store_u16(out + 208, scale_to_f16(choice.d));
}

void encode_iq4_xs(const float* x, const float* w, uint8_t* out) {
  const SuperBlock block(x, w, 8, Iq4Levels{}, scale_range(127, 8), 32);
  const Choice choice = block.search();
  float q[kBlock];
  block.codes(choice, q);
  std::memset(out, 0, 8);
  store_u16(out, scale_to_f16(choice.d));
  unsigned high = 0;
  for (int g = 0; g < 8; g++) {
    const auto s = static_cast<unsigned>(choice.scale[g] + 32);
    out[4 + g / 2] = static_cast<uint8_t>(out[4 + g / 2] | (s & 15) << (4 * (g % 2)));
    high |= (s >> 4) << (2 * g);
    for (int i = 0; i < 16; i++)
      out[8 + 16 * g + i] =
          static_cast<uint8_t>(Iq4Levels::code(q[32 * g + i]) | (Iq4Levels::code(q[32 * g + 16 + i]) << 4));
  }
  store_u16(out + 2, static_cast<uint16_t>(high));
}

}  // namespace liuli::encode
