#include "report/logit_diff.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace liuli {
namespace {

// ln Σ exp(x); NaN where a logit is none.
double log_sum_exp(std::span<const float> x) {
  const auto largest = static_cast<double>(*std::max_element(x.begin(), x.end()));
  double sum = 0;
  for (float v : x) sum += std::exp(static_cast<double>(v) - largest);
  return largest + std::log(sum);
}

// The likeliest tokens by insertion: nearly every logit fails the first comparison.
int top_tokens(std::span<const float> logits, double lse, std::array<TokenProbability, kTopTokens>& top) {
  int n = 0;
  for (size_t id = 0; id < logits.size(); id++) {
    const auto x = static_cast<double>(logits[id]);
    if (n == kTopTokens && !(x > top[kTopTokens - 1].probability)) continue;
    int at = n < kTopTokens ? n++ : kTopTokens - 1;
    for (; at > 0 && x > top[static_cast<size_t>(at) - 1].probability; at--)
      top[static_cast<size_t>(at)] = top[static_cast<size_t>(at) - 1];
    top[static_cast<size_t>(at)] = {static_cast<int>(id), x};
  }
  for (int i = 0; i < n; i++) {
    double& p = top[static_cast<size_t>(i)].probability;
    p = std::exp(p - lse);
  }
  return n;
}

// Rounding leaves sums of order 1e-16 on either side of zero; a divergence is never negative.
double divergence(std::span<const float> a, std::span<const float> b, double lse_a, double lse_b) {
  double kl = 0;
  for (size_t i = 0; i < b.size(); i++) {
    const double log_b = static_cast<double>(b[i]) - lse_b;
    const double p = std::exp(log_b);
    if (p > 0 || std::isnan(p)) kl += p * (log_b - (static_cast<double>(a[i]) - lse_a));
  }
  return std::isnan(kl) || std::isnan(lse_a) ? std::numeric_limits<double>::infinity() : std::max(0.0, kl);
}

int common_tokens(const LogitDiff& diff) {
  int common = 0;
  for (int i = 0; i < diff.n_top; i++)
    for (int j = 0; j < diff.n_top; j++)
      common += diff.top[static_cast<size_t>(i)].token == diff.reference_top[static_cast<size_t>(j)].token;
  return common;
}

// Between the two neighbours, as numpy.percentile; sorted is not empty.
double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const double fraction = at - static_cast<double>(below);
  if (fraction == 0) return sorted[below];  // also keeps 0 · ∞ out
  return sorted[below] + fraction * (sorted[below + 1] - sorted[below]);
}

}  // namespace

LogitDiff compare_logits(std::span<const float> a, std::span<const float> b, int next) noexcept {
  LogitDiff diff;
  const double lse_a = log_sum_exp(a), lse_b = log_sum_exp(b);
  diff.kl = divergence(a, b, lse_a, lse_b);
  diff.n_top = top_tokens(a, lse_a, diff.top);
  top_tokens(b, lse_b, diff.reference_top);
  if (next >= 0) {
    diff.nll = lse_a - static_cast<double>(a[static_cast<size_t>(next)]);
    diff.reference_nll = lse_b - static_cast<double>(b[static_cast<size_t>(next)]);
  }
  return diff;
}

void LogitTotals::add(int64_t position, int token, int next, const LogitDiff& diff) {
  kl_.push_back(diff.kl);
  same_top_ += diff.top[0].token == diff.reference_top[0].token;
  overlap_ += static_cast<double>(common_tokens(diff)) / diff.n_top;
  if (next >= 0) {
    predicted_++;
    nll_ += diff.nll;
    reference_nll_ += diff.reference_nll;
    difference_squares_ += (diff.nll - diff.reference_nll) * (diff.nll - diff.reference_nll);
  }
  keep_if_bad(position, token, next, diff);
}

void LogitTotals::keep_if_bad(int64_t position, int token, int next, const LogitDiff& diff) {
  if (diff.kl == 0 || keep_ == 0 || (worst_.size() == keep_ && diff.kl <= worst_.back().kl)) return;
  const PositionDiff kept{position,
                          token,
                          next,
                          diff.kl,
                          {diff.top.begin(), diff.top.begin() + diff.n_top},
                          {diff.reference_top.begin(), diff.reference_top.begin() + diff.n_top}};
  if (worst_.size() == keep_) worst_.pop_back();
  const auto smaller = std::find_if(worst_.begin(), worst_.end(),
                                    [&](const PositionDiff& other) { return other.kl < diff.kl; });
  worst_.insert(smaller, kept);
}

void LogitTotals::finish(DiffReport& report) {
  const auto n = static_cast<double>(kl_.size());
  double sum = 0;
  for (double kl : kl_) sum += kl;
  report.mean_kl = sum / n;
  std::vector<double> sorted = kl_;
  std::sort(sorted.begin(), sorted.end());
  report.median_kl = quantile(sorted, 0.5);
  report.p99_kl = quantile(sorted, 0.99);
  report.max_kl = sorted.back();
  report.top1_agreement = static_cast<double>(same_top_) / n;
  report.top5_overlap = overlap_ / n;
  report.predicted_tokens = predicted_;
  report.kl = std::move(kl_);
  report.worst = std::move(worst_);
  if (predicted_ == 0) return;
  const auto predicted = static_cast<double>(predicted_);
  report.perplexity = std::exp(nll_ / predicted);
  report.reference_perplexity = std::exp(reference_nll_ / predicted);
  report.nll_difference = (nll_ - reference_nll_) / predicted;
  const double variance = difference_squares_ / predicted - report.nll_difference * report.nll_difference;
  report.nll_difference_error = std::sqrt(std::max(0.0, variance) / predicted);
}

}  // namespace liuli
