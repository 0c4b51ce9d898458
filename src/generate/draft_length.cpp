#include "generate/draft_length.h"

#include <algorithm>
#include <utility>

namespace liuli {
namespace {

constexpr double kPriorWeight = 2;   // the prior counts like so many guesses
constexpr double kKept = 0.9;        // of a record, when another draft is added to it
constexpr double kFading = 0.98;     // of a record, when no draft was worth its time
constexpr double kRowShare = 0.2;    // of a pass: a row more, before one was measured
constexpr double kSmoothing = 0.25;  // weight of the newest time
constexpr double kSlowest =
    1.0;  // of a pass: a row more never costs more than a pass; the rest is other load

// The running mean of times; the first one counts whole.
void smooth(double& mean, double seconds) {
  mean = mean <= 0 ? seconds : mean + kSmoothing * (seconds - mean);
}

}  // namespace

double DraftLength::probability(const Record& record) const {
  return (record.right + kPriorWeight * prior_) / (record.tried + kPriorWeight);
}

int DraftLength::choose(int trust) {
  if (base_ <= 0) return 0;
  Record& record = records_[static_cast<size_t>(trust)];
  const double p = probability(record);
  const double step = (row_ < 0 ? kRowShare * base_ : row_) + std::max(0.0, guess_);
  double tokens = 1, chance = 1, best_rate = 1 / base_;
  int best = 0;
  for (int n = 1; n <= longest_; n++) {
    chance *= p;
    tokens += chance;
    const double rate = tokens / (base_ + n * step);
    if (rate > best_rate) best_rate = rate, best = n;
  }
  if (best == 0) record = {record.right * kFading, record.tried * kFading};
  return best;
}

void DraftLength::saw_guesses(int trust, int drafted, int accepted) {
  if (drafted == 0) return;
  Record& record = records_[static_cast<size_t>(trust)];
  record.right = record.right * kKept + accepted;
  record.tried =
      record.tried * kKept + std::min(drafted, accepted + 1);  // those after a wrong one say nothing
}

void DraftLength::saw_pass(int rows, double seconds) {
  if (!std::exchange(warm_, true)) return;
  if (rows == 1) return smooth(base_, seconds);
  if (base_ <= 0) return;
  base_ =
      std::min(base_, seconds);  // fewer rows are never slower: something else was, when base was measured
  const double share = (seconds - base_) / (rows - 1);
  smooth(row_, std::clamp(share, base_ * 0.01, base_ * kSlowest));
}

void DraftLength::saw_drafting(int drafted, double seconds) {
  if (drafted > 0) smooth(guess_, seconds / drafted);
}

}  // namespace liuli
