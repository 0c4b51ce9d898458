#include "generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include "core/check.h"
#include "kernels/kernels.h"
#include "liuli/error.h"

namespace liuli {
namespace {

void require(bool ok, const char* name, double value, const char* expected) {
  if (!ok || !std::isfinite(value))
    throw Error(ErrorCode::invalid_argument, fmt::format("{} is {}, expected {}", name, value, expected));
}

// Larger logit first; equal logits by id, so that the order never depends on the algorithm.
constexpr auto kLikelier = [](const auto& a, const auto& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
};

int likeliest(std::span<const float> logits) {
  return static_cast<int>(
      kernels::best_kernels().rows.argmax(logits.data(), static_cast<int64_t>(logits.size())));
}

bool penalises(const SamplingSettings& s) {
  return s.repetition_penalty != 1 || s.presence_penalty != 0 || s.frequency_penalty != 0;
}

}  // namespace

Sampler::Sampler(const SamplingSettings& settings) : settings_(settings), rng_(settings.seed) {
  require(settings.temperature >= 0, "temperature", settings.temperature, "0 or more");
  require(settings.top_k >= 0, "top_k", settings.top_k, "0 (off) or more");
  require(settings.top_p > 0 && settings.top_p <= 1, "top_p", settings.top_p, "more than 0, at most 1");
  require(settings.min_p >= 0 && settings.min_p <= 1, "min_p", settings.min_p, "0 … 1");
  require(settings.repetition_penalty > 0, "repetition_penalty", settings.repetition_penalty, "more than 0");
  require(true, "presence_penalty", settings.presence_penalty, "a finite number");
  require(true, "frequency_penalty", settings.frequency_penalty, "a finite number");
  require(settings.penalty_window >= -1, "penalty_window", settings.penalty_window, "-1 (all) or more");
}

int Sampler::sample(std::span<const float> logits, std::span<const int> history) {
  LIULI_CHECK(!logits.empty());
  if (settings_.temperature == 0 && !adjusts()) return likeliest(logits);  // nothing to copy
  logits_.assign(logits.begin(), logits.end());
  apply_biases_and_penalties(history);
  const int best = likeliest(logits_);
  if (settings_.temperature == 0 || !std::isfinite(logits_[static_cast<size_t>(best)])) return best;
  if (settings_.top_k > 0 && static_cast<size_t>(settings_.top_k) < logits_.size()) {
    keep_top_k();
    weigh_candidates();
    keep_top_p();
    keep_min_p();
    return draw();
  }
  weigh_all(logits_[static_cast<size_t>(best)]);
  if (settings_.top_p >= 1 && settings_.min_p <= 0) return draw_from_all();
  keep_likely();
  keep_top_p();
  keep_min_p();
  return draw();
}

bool Sampler::adjusts() const { return !settings_.logit_bias.empty() || penalises(settings_); }

void Sampler::apply_biases_and_penalties(std::span<const int> history) {
  const auto n = static_cast<int>(logits_.size());
  for (const auto& [id, bias] : settings_.logit_bias) {
    if (id < 0 || id >= n)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("logit bias for token {}, the vocabulary has {}", id, n));
    logits_[static_cast<size_t>(id)] += bias;
  }
  if (!penalises(settings_)) return;
  const size_t window =
      settings_.penalty_window < 0 ? history.size() : static_cast<size_t>(settings_.penalty_window);
  std::unordered_map<int, int> counts;
  for (int id : history.last(std::min(window, history.size()))) counts[id]++;
  for (const auto& [id, count] : counts) {
    if (id < 0 || id >= n) continue;
    float& logit = logits_[static_cast<size_t>(id)];
    logit = logit > 0 ? logit / settings_.repetition_penalty : logit * settings_.repetition_penalty;
    logit -= settings_.presence_penalty + static_cast<float>(count) * settings_.frequency_penalty;
  }
}

// A heap of k whose top is the least likely of them: nearly every token is compared with the top and passes by.
void Sampler::keep_top_k() {
  const auto k = static_cast<size_t>(settings_.top_k);
  candidates_.clear();
  for (size_t i = 0; i < logits_.size(); i++) {
    const Candidate candidate{logits_[i], static_cast<int>(i)};
    if (std::isnan(candidate.logit)) continue;
    if (candidates_.size() < k) {
      candidates_.push_back(candidate);
      std::push_heap(candidates_.begin(), candidates_.end(), kLikelier);
    } else if (kLikelier(candidate, candidates_.front())) {
      std::pop_heap(candidates_.begin(), candidates_.end(), kLikelier);
      candidates_.back() = candidate;
      std::push_heap(candidates_.begin(), candidates_.end(), kLikelier);
    }
  }
  std::sort_heap(candidates_.begin(), candidates_.end(), kLikelier);
}

// weights = exp((logit − max) / T) of candidates, largest first.
void Sampler::weigh_candidates() {
  const double max = candidates_.front().logit;
  weights_.resize(candidates_.size());
  total_ = 0;
  for (size_t i = 0; i < candidates_.size(); i++) {
    weights_[i] = std::exp((static_cast<double>(candidates_[i].logit) - max) / settings_.temperature);
    total_ += weights_[i];
  }
}

// probabilities_ = softmax(logits / T) of the whole vocabulary, and their sums by block (about 1 together).
void Sampler::weigh_all(float max) {
  for (float& logit : logits_) {
    logit = (logit - max) / settings_.temperature;
    if (std::isnan(logit)) logit = -std::numeric_limits<float>::infinity();  // never chosen
  }
  const size_t n = logits_.size();
  probabilities_.resize(n);
  kernels::best_kernels().rows.softmax(logits_.data(), static_cast<int64_t>(n), probabilities_.data());
  block_sums_.assign((n + kBlock - 1) / kBlock, 0.0);
  total_ = 0;
  for (size_t block = 0; block < block_sums_.size(); block++) {
    for (size_t i = block * kBlock; i < std::min(n, (block + 1) * kBlock); i++)
      block_sums_[block] += static_cast<double>(probabilities_[i]);
    total_ += block_sums_[block];
  }
}

int Sampler::draw_from_all() {
  double left = rng_.uniform() * total_;
  size_t block = 0;
  while (block + 1 < block_sums_.size() && left >= block_sums_[block]) left -= block_sums_[block++];
  size_t last = block * kBlock;
  for (size_t i = last; i < std::min(logits_.size(), (block + 1) * kBlock); i++) {
    if (probabilities_[i] <= 0) continue;
    last = i;
    if ((left -= static_cast<double>(probabilities_[i])) < 0) break;
  }
  return static_cast<int>(last);
}

// Tokens that top_p or min_p could keep, largest first for top_p. Of n tokens, those below (1 − top_p) / n reach less than 1 − top_p
// together, so the others reach top_p without them: a few hundred are left to sort, not a vocabulary. (Half of that bound,
// for the sums' rounding.)
void Sampler::keep_likely() {
  const auto n = static_cast<double>(probabilities_.size());
  const double most = *std::max_element(probabilities_.begin(), probabilities_.end());
  const double floor = settings_.top_p < 1 ? 0.5 * (1 - static_cast<double>(settings_.top_p)) * total_ / n
                                           : static_cast<double>(settings_.min_p) * most;
  candidates_.clear();
  for (size_t i = 0; i < probabilities_.size(); i++)
    if (static_cast<double>(probabilities_[i]) >= floor)
      candidates_.push_back({probabilities_[i], static_cast<int>(i)});
  if (settings_.top_p < 1) std::sort(candidates_.begin(), candidates_.end(), kLikelier);
  weights_.clear();
  for (const Candidate& candidate : candidates_) weights_.push_back(candidate.logit);
}

// The smallest set of likeliest tokens whose probabilities reach top_p.
void Sampler::keep_top_p() {
  if (settings_.top_p >= 1) return;
  double sum = 0;
  size_t keep = 0;
  while (keep < weights_.size() && sum < settings_.top_p * total_) sum += weights_[keep++];
  candidates_.resize(std::max<size_t>(keep, 1));
  weights_.resize(candidates_.size());
}

void Sampler::keep_min_p() {
  if (settings_.min_p <= 0) return;
  const double floor = settings_.min_p * *std::max_element(weights_.begin(), weights_.end());
  size_t kept = 0;
  for (size_t i = 0; i < weights_.size(); i++)
    if (weights_[i] >= floor) {
      weights_[kept] = weights_[i];
      candidates_[kept++] = candidates_[i];
    }
  weights_.resize(kept);
  candidates_.resize(kept);
}

int Sampler::draw() {
  double total = 0;
  for (double w : weights_) total += w;
  double left = rng_.uniform() * total;
  for (size_t i = 0; i < weights_.size(); i++)
    if ((left -= weights_[i]) < 0) return candidates_[i].id;
  return candidates_.back().id;
}

TokenLogprobs log_probabilities(std::span<const float> logits, int id, int n) {
  const float lse =
      kernels::best_kernels().rows.log_sum_exp(logits.data(), static_cast<int64_t>(logits.size()));
  TokenLogprobs result{logits[static_cast<size_t>(id)] - lse, {}};
  if (n <= 0) return result;
  std::vector<int> order(logits.size());
  for (size_t i = 0; i < order.size(); i++) order[i] = static_cast<int>(i);
  const auto keep = static_cast<ptrdiff_t>(std::min<size_t>(static_cast<size_t>(n), order.size()));
  std::partial_sort(order.begin(), order.begin() + keep, order.end(), [&](int a, int b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  });
  for (ptrdiff_t i = 0; i < keep; i++)
    result.top.push_back(
        {order[static_cast<size_t>(i)], logits[static_cast<size_t>(order[static_cast<size_t>(i)])] - lse});
  return result;
}

}  // namespace liuli
