// Random numbers with a sequence that is the same on every machine: sampling, initial weights, dropout,
// synthetic data.
#pragma once
#include <array>
#include <cstdint>

namespace liuli {

/// xoshiro256** 1.0 (Blackman & Vigna 2018, doi:10.1145/3460772), its 256-bit state filled by splitmix64 from
/// the seed, as its authors advise. next_u64, uniform and below are exact integer work, the same bits
/// everywhere; normal goes through libm and may differ in the last bit between C libraries. Small enough to
/// copy; not for secrets.
class Rng {
 public:
  using State = std::array<uint64_t, 4>;

  /// Streams of one seed are independent sequences: one per thread, layer or row, whatever the order they run
  /// in.
  explicit Rng(uint64_t seed, uint64_t stream = 0);

  uint64_t next_u64();
  /// Uniform in [0, 1): the upper 53 bits of one draw, times 2⁻⁵³.
  double uniform();
  /// Uniform in [0, n) without bias, n ≥ 1; draws again in the rare case that would favour small values.
  uint64_t below(uint64_t n);
  /// Standard normal by Box–Muller: √(−2 ln(1 − u₁)) cos(2π u₂). Always two draws, so that skipping is easy
  /// to count.
  double normal();

  /// All there is to know: a generator with this state continues the sequence (training checkpoints).
  /// from_state throws Error invalid_argument for the all-zero state.
  const State& state() const { return state_; }
  static Rng from_state(const State& state);

 private:
  Rng() = default;
  State state_{};
};

}  // namespace liuli
