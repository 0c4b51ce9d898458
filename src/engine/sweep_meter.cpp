#include "engine/sweep_meter.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "kernels/kernels.h"
#include "trace/sweep.h"

namespace liuli {
namespace {

double log_sum_exp(std::span<const float> logits) {
  return static_cast<double>(
      kernels::best_kernels().rows.log_sum_exp(logits.data(), static_cast<int64_t>(logits.size())));
}

}  // namespace

void SweepMeter::prepare(const Matrix& whole, ThreadPool& pool) {
  whole_ = &whole;
  if (metric_ != SweepMetric::logit && metric_ != SweepMetric::logit_difference) return;
  std::set<int> ids;
  for (const SweepPair& pair : pairs_) {
    ids.insert(pair.answer);
    if (metric_ == SweepMetric::logit_difference) ids.insert(pair.wrong);
  }
  ids_.assign(ids.begin(), ids.end());
  selected_ = select_rows(whole, ids_, pool);
}

void SweepMeter::set_clean(size_t pair, std::span<const float> logits) {
  if (metric_ != SweepMetric::kl) return;
  clean_.resize(std::max(clean_.size(), pair + 1));
  Prediction& clean = clean_[pair];
  clean.p.resize(logits.size());
  kernels::best_kernels().rows.softmax(logits.data(), static_cast<int64_t>(logits.size()), clean.p.data());
  for (const float p : clean.p)
    if (p > 0) clean.negative_entropy += static_cast<double>(p) * std::log(static_cast<double>(p));
}

double SweepMeter::logit(std::span<const float> logits, int id) const {
  auto at = static_cast<size_t>(id);
  if (logits.size() == ids_.size())
    at = static_cast<size_t>(std::lower_bound(ids_.begin(), ids_.end(), id) - ids_.begin());
  return static_cast<double>(logits[at]);
}

// KL(clean ‖ x) = Σ p (ln p − x) + lse(x)
double SweepMeter::divergence(const Prediction& clean, std::span<const float> logits) const {
  double sum = clean.negative_entropy + log_sum_exp(logits);
  for (size_t j = 0; j < logits.size(); j++)
    sum -= static_cast<double>(clean.p[j]) * static_cast<double>(logits[j]);
  return std::max(0.0, sum);
}

double SweepMeter::measure(size_t pair, std::span<const float> logits) const {
  const SweepPair& p = pairs_[pair];
  switch (metric_) {
    case SweepMetric::logit:
      return logit(logits, p.answer);
    case SweepMetric::logit_difference:
      return logit(logits, p.answer) - logit(logits, p.wrong);
    case SweepMetric::probability:
      return std::exp(logit(logits, p.answer) - log_sum_exp(logits));
    case SweepMetric::kl:
      break;
  }
  return divergence(clean_[pair], logits);
}

}  // namespace liuli
