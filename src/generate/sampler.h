// From logits to the next token.
#pragma once
#include <span>
#include <vector>

#include "core/rng.h"
#include "liuli/generation.h"

namespace liuli {

/// Draws tokens by the settings; its random numbers depend on the seed and the number of draws alone.
class Sampler {
 public:
  /// Errors: invalid_argument, naming the setting out of range.
  explicit Sampler(const SamplingSettings& settings);

  /// The next token. logits: of the ids that exist (padding rows cut off); history: the tokens so far, for
  /// the penalties.
  int sample(std::span<const float> logits, std::span<const int> history);
  /// Goes on with the random numbers that `other` would draw next.
  void follow(const Sampler& other) { rng_ = other.rng_; }

 private:
  struct Candidate {
    float logit;  ///< or its probability
    int id;
  };
  static constexpr size_t kBlock = 256;  ///< tokens of one partial sum
  bool adjusts() const;                  ///< whether biases or penalties can move a logit
  void apply_biases_and_penalties(std::span<const int> history);
  void keep_top_k();
  void weigh_candidates();
  void weigh_all(float max);
  int draw_from_all();
  void keep_likely();
  void keep_top_p();
  void keep_min_p();
  int draw();

  SamplingSettings settings_;
  Rng rng_;
  std::vector<float> logits_;          ///< the adjusted copy
  std::vector<float> probabilities_;   ///< of the whole vocabulary
  std::vector<double> block_sums_;     ///< of them
  double total_ = 0;                   ///< sum of the probabilities, or of the weights before top_p
  std::vector<Candidate> candidates_;  ///< what cuts left, largest first
  std::vector<double> weights_;        ///< unnormalised probabilities of the candidates
};

/// Log-probability of `id`, and the `n` likeliest tokens, of the untouched distribution.
struct TokenLogprobs {
  float chosen;
  std::vector<TokenLogprob> top;
};
TokenLogprobs log_probabilities(std::span<const float> logits, int id, int n);

}  // namespace liuli
