// Sixteen candidate scales of one group, side by side: the inner loops of every search.
//
// A group is decoded as x̂ᵢ = s · qᵢ − m with codes qᵢ from a set of levels (m = 0 in the symmetric types).
// Candidates are lanes: an element is broadcast and every lane accumulates its own sums, in element order, so
// there is no reduction to reorder. Vectors of four floats exist on every machine Liuli is built for, which
// keeps the bytes of a file independent of the instruction set; about 1 cycle per element and candidate.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace liuli::encode {

using Lanes = float __attribute__((vector_size(16)));
constexpr int kCandidates = 16, kLaneWidth = 4;
constexpr float kHopeless = std::numeric_limits<float>::max();  ///< cost of a candidate without a meaning

inline Lanes all_lanes(float value) { return Lanes{value, value, value, value}; }
inline Lanes load_lanes(const float* p) { return Lanes{p[0], p[1], p[2], p[3]}; }
inline void store_lanes(Lanes v, float* p) {
  for (int i = 0; i < kLaneWidth; i++) p[i] = v[i];
}
inline Lanes clamp_lanes(Lanes v, float lo, float hi) {
  const Lanes low = all_lanes(lo), high = all_lanes(hi);
  v = v < low ? low : v;
  return v > high ? high : v;
}

/// Codes lo … hi that stand for themselves.
struct UniformLevels {
  float lo, hi;
  /// Adding 1.5 · 2²³ leaves no bits for a fraction: the addition itself rounds to nearest, ties to even.
  Lanes nearest(Lanes y) const {
    const Lanes magic = all_lanes(12582912.0f);
    return (clamp_lanes(y, lo, hi) + magic) - magic;
  }
};

/// IQ4's sixteen values, denser near zero.
constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/// The code nearest to y for each cell ⌊2y⌋ + 256: midpoints of the values are multiples of 1/2, so a whole cell
/// has one answer.
constexpr std::array<uint8_t, 512> kIq4Codes = [] {
  std::array<uint8_t, 512> codes{};
  for (int cell = 0; cell < 512; cell++) {
    int code = 0;
    while (code < 15 && kIq4Values[code] + kIq4Values[code + 1] <= cell - 256) code++;
    codes[static_cast<size_t>(cell)] = static_cast<uint8_t>(code);
  }
  return codes;
}();
constexpr std::array<float, 512> kIq4Nearest = [] {
  std::array<float, 512> values{};
  for (size_t cell = 0; cell < 512; cell++) values[cell] = kIq4Values[kIq4Codes[cell]];
  return values;
}();

struct Iq4Levels {
  Lanes nearest(Lanes y) const {
    using Cells = int32_t __attribute__((vector_size(16)));
    const Cells cell = __builtin_convertvector(clamp_lanes(y + y + all_lanes(256.0f), 0.0f, 511.0f), Cells);
    const auto value = [&](int lane) { return kIq4Nearest[static_cast<size_t>(cell[lane])]; };
    return Lanes{value(0), value(1), value(2), value(3)};
  }
  /// Of one of the values.
  static unsigned code(float value) { return kIq4Codes[static_cast<size_t>(2 * value + 256)]; }
};

/// Elements that share a scale, their weights, and the weighted sums no code changes.
struct Group {
  const float *x = nullptr, *w = nullptr;
  int n = 0;
  float sum_w = 0, sum_x = 0, sum_xx = 0;  ///< Σw, Σwx, Σwx²
  float min = 0, max = 0, peak = 0;        ///< of x; peak = max |x|
};
Group make_group(const float* x, const float* w, int n);

/// What the search knows about m.
enum class Minimum { none, not_negative, free };

/// A way to decode a group, and its error.
struct Fit {
  float scale = 0, minimum = 0, cost = kHopeless;
};

struct Candidates {
  float scale[kCandidates], minimum[kCandidates], cost[kCandidates];

  void set(int lane, float s, float m) {
    scale[lane] = s;
    minimum[lane] = m;
  }
  Fit best() const {
    int lane = 0;
    for (int i = 1; i < kCandidates; i++)
      if (cost[i] < cost[lane]) lane = i;
    return {scale[lane], minimum[lane], cost[lane]};
  }
};

/// 1 / scale; 0 for a scale so small that this would leave the range of f32 (no f16 is).
inline float inverse(float scale) { return std::fabs(scale) < 1e-37f ? 0.0f : 1.0f / scale; }
inline Lanes inverse_lanes(const float* s) {
  return Lanes{inverse(s[0]), inverse(s[1]), inverse(s[2]), inverse(s[3])};
}

/// cost = Σ w (x + m − s q)² with the nearest codes: the error a decoder will see.
template <class Levels>
void measure(const Group& g, const Levels& levels, Candidates& c) {
  for (int lane = 0; lane < kCandidates; lane += 2 * kLaneWidth) {
    Lanes s[2], m[2], inv[2], sum[2];
    for (int v = 0; v < 2; v++) {
      s[v] = load_lanes(c.scale + lane + v * kLaneWidth);
      m[v] = load_lanes(c.minimum + lane + v * kLaneWidth);
      inv[v] = inverse_lanes(c.scale + lane + v * kLaneWidth);
      sum[v] = all_lanes(0);
    }
    for (int i = 0; i < g.n; i++) {
      const Lanes x = all_lanes(g.x[i]), w = all_lanes(g.w[i]);
      for (int v = 0; v < 2; v++) {
        const Lanes shifted = x + m[v];
        const Lanes error = shifted - s[v] * levels.nearest(shifted * inv[v]);
        sum[v] += w * error * error;
      }
    }
    for (int v = 0; v < 2; v++) store_lanes(sum[v], c.cost + lane + v * kLaneWidth);
  }
}

/// Σwq, Σwq², Σwxq of a candidate's codes.
struct CodeSums {
  float q[kCandidates], qq[kCandidates], xq[kCandidates];
};

template <class Levels>
CodeSums code_sums(const Group& g, const Levels& levels, const Candidates& c) {
  CodeSums sums;
  for (int lane = 0; lane < kCandidates; lane += kLaneWidth) {
    const Lanes m = load_lanes(c.minimum + lane), inv = inverse_lanes(c.scale + lane);
    Lanes q_sum = all_lanes(0), qq_sum = all_lanes(0), xq_sum = all_lanes(0);
    for (int i = 0; i < g.n; i++) {
      const Lanes x = all_lanes(g.x[i]);
      const Lanes q = levels.nearest((x + m) * inv), wq = q * all_lanes(g.w[i]);
      q_sum += wq;
      qq_sum += wq * q;
      xq_sum += wq * x;
    }
    store_lanes(q_sum, sums.q + lane);
    store_lanes(qq_sum, sums.qq + lane);
    store_lanes(xq_sum, sums.xq + lane);
  }
  return sums;
}

/// Least squares for fixed codes. Symmetric: s = Σwxq / Σwq². With m: the 2 × 2 normal equations; if their m is
/// negative where it must not be, m = 0.
inline Fit least_squares(const Group& g, float q, float qq, float xq, Minimum kind) {
  if (!(qq > 0)) return {};
  const Fit symmetric{xq / qq, 0, g.sum_xx - xq * (xq / qq)};
  if (kind == Minimum::none) return symmetric;
  const float determinant = g.sum_w * qq - q * q;
  if (!(determinant > 1e-6f * g.sum_w * qq)) return symmetric;
  const float scale = (g.sum_w * xq - g.sum_x * q) / determinant;
  const float minimum = (q * xq - qq * g.sum_x) / determinant;
  if (kind == Minimum::not_negative && minimum < 0) return symmetric;
  return {scale, minimum, g.sum_xx - scale * xq + minimum * g.sum_x};
}

/// Replaces every candidate by the least-squares fit to the codes it implies; cost is that fit's error.
template <class Levels>
void refit(const Group& g, const Levels& levels, Minimum kind, Candidates& c) {
  const CodeSums sums = code_sums(g, levels, c);
  for (int i = 0; i < kCandidates; i++) {
    const Fit fit = least_squares(g, sums.q[i], sums.qq[i], sums.xq[i], kind);
    c.set(i, fit.scale, fit.minimum);
    c.cost[i] = fit.cost;
  }
}

/// The levels nearest to each element: q[n], n a multiple of 4.
template <class Levels>
void nearest_levels(const Group& g, const Levels& levels, float scale, float minimum, float* q) {
  const Lanes m = all_lanes(minimum), inv = all_lanes(inverse(scale));
  for (int i = 0; i < g.n; i += kLaneWidth)
    store_lanes(levels.nearest((load_lanes(g.x + i) + m) * inv), q + i);
}

}  // namespace liuli::encode
