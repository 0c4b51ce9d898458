// Two predictions of the same next token, and what many of them come to.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "liuli/diff.h"

namespace liuli {

constexpr int kTopTokens = 5;

/// One position's comparison, without allocation so that threads may fill many.
struct LogitDiff {
  double kl = 0;                                                ///< KL(b ‖ a) in nats
  double nll = 0, reference_nll = 0;                            ///< −ln p(next); 0 without a next token
  std::array<TokenProbability, kTopTokens> top, reference_top;  ///< likeliest first
  int n_top = 0;                                                ///< of each, fewer only in a tiny vocabulary
};

/// a, b: [vocab_size] logits; next: the token that follows, or −1. Ties go to the smaller token.
LogitDiff compare_logits(std::span<const float> a, std::span<const float> b, int next) noexcept;

/// Adds positions up, in order, and keeps the worst.
class LogitTotals {
 public:
  explicit LogitTotals(int worst) : keep_(static_cast<size_t>(worst)) {}
  void add(int64_t position, int token, int next, const LogitDiff& diff);
  /// Writes everything about predictions into the report.
  void finish(DiffReport& report);

 private:
  void keep_if_bad(int64_t position, int token, int next, const LogitDiff& diff);

  size_t keep_;
  std::vector<double> kl_;
  std::vector<PositionDiff> worst_;  // largest KL first
  int64_t same_top_ = 0, predicted_ = 0;
  double overlap_ = 0, nll_ = 0, reference_nll_ = 0, difference_squares_ = 0;
};

}  // namespace liuli
