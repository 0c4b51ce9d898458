#include "ops/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/check.h"

namespace liuli {
namespace {

constexpr double kTwoPi = 2 * std::numbers::pi;

// Llama 3.1: long wavelengths are slowed by `factor`, short ones kept, a linear blend between.
double scale_llama3(const RopeConfig& r, double frequency) {
  const double wavelength = kTwoPi / frequency;
  if (wavelength < r.original_max_seq_len / r.high_freq_factor) return frequency;
  if (wavelength > r.original_max_seq_len / r.low_freq_factor) return frequency / r.factor;
  const double keep =
      (r.original_max_seq_len / wavelength - r.low_freq_factor) / (r.high_freq_factor - r.low_freq_factor);
  return (1 - keep) * frequency / r.factor + keep * frequency;
}

// YaRN: the same idea as a ramp over the pair's index.
double scale_yarn(const RopeConfig& r, double frequency, int i) {
  auto index = [&](double rotations) {
    return r.dim * std::log(r.original_max_seq_len / (kTwoPi * rotations)) / (2 * std::log(r.theta));
  };
  const double low = std::max(std::floor(index(r.beta_fast)), 0.0);
  double high = std::min(std::ceil(index(r.beta_slow)), r.dim - 1.0);
  if (low == high) high += 0.001;
  const double ramp = std::clamp((i - low) / (high - low), 0.0, 1.0);
  return frequency / r.factor * ramp + frequency * (1 - ramp);
}

}  // namespace

std::vector<double> rope_frequencies(const RopeConfig& r) {
  std::vector<double> frequencies(static_cast<size_t>(r.dim / 2));
  for (int i = 0; i < r.dim / 2; i++) {
    double& f = frequencies[static_cast<size_t>(i)];
    f = std::pow(r.theta, -2.0 * i / r.dim);
    switch (r.scaling) {
      case RopeScaling::none:
        break;
      case RopeScaling::linear:
        f /= r.factor;
        break;
      case RopeScaling::llama3:
        f = scale_llama3(r, f);
        break;
      case RopeScaling::yarn:
        f = scale_yarn(r, f, i);
        break;
      case RopeScaling::divisors:
        f /= static_cast<double>(r.divisors[static_cast<size_t>(i)]);
        break;
    }
  }
  return frequencies;
}

RopeAngles rope_angles(OpContext& c, const RopeConfig& config, const std::vector<double>& frequencies,
                       const int* positions, int64_t n_positions) {
  const auto half = static_cast<int64_t>(frequencies.size());
  float* cos = c.scratch.floats(n_positions * half);
  float* sin = c.scratch.floats(n_positions * half);
  float* angles = c.scratch.floats(n_positions * half);
  for_each_row(c, n_positions, [&](int64_t p) {
    for (int64_t i = 0; i < half; i++) {
      const double angle = positions[p] * frequencies[static_cast<size_t>(i)];
      angles[p * half + i] = static_cast<float>(angle);
      cos[p * half + i] = static_cast<float>(std::cos(angle) * config.attention_factor);
      sin[p * half + i] = static_cast<float>(std::sin(angle) * config.attention_factor);
    }
  });
  return {cos, sin, half, angles, config.attention_factor};
}

void rope_forward(OpContext& c, const RopeAngles& angles, Rows x, int64_t n_heads, int64_t head_dim,
                  int64_t first) {
  LIULI_CHECK(x.width == n_heads * head_dim && first + 2 * angles.half <= head_dim);
  for_each_row(c, x.n, [&](int64_t i) {
    for (int64_t head = 0; head < n_heads; head++)
      c.rows.rope(x.row(i) + head * head_dim + first, angles.cos + i * angles.half,
                  angles.sin + i * angles.half, angles.half);
  });
}

void rope_backward(OpContext& c, const RopeAngles& angles, Rows dx, int64_t n_heads, int64_t head_dim,
                   int64_t first) {
  const Arena::Scope scope(c.scratch);
  float* back = c.scratch.floats(dx.n * angles.half);
  for (int64_t i = 0; i < dx.n * angles.half; i++) back[i] = -angles.sin[i];
  rope_forward(c, {angles.cos, back, angles.half, nullptr}, dx, n_heads, head_dim, first);
}

}  // namespace liuli
