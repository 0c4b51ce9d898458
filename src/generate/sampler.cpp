#include "generate/sampler.h"

#include <algorithm>
#include <cmath>
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
  if (settings_.temperature == 0) return likeliest(logits_);
  candidates_.clear();
  for (size_t i = 0; i < logits_.size(); i++)
    if (!std::isnan(logits_[i])) candidates_.push_back({logits_[i], static_cast<int>(i)});
  if (candidates_.empty()) return likeliest(logits_);
  keep_top_k();
  softmax_with_temperature();
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

void Sampler::keep_top_k() {
  const auto k = static_cast<size_t>(settings_.top_k);
  if (k > 0 && k < candidates_.size()) {
    std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<ptrdiff_t>(k), candidates_.end(),
                     kLikelier);
    candidates_.resize(k);
  }
}

// weights = exp((logit − max) / T); the order of the candidates is made definite first.
void Sampler::softmax_with_temperature() {
  if (settings_.top_p < 1 || settings_.top_k > 0)
    std::sort(candidates_.begin(), candidates_.end(), kLikelier);
  const float max =
      std::max_element(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
        return a.logit < b.logit;
      })->logit;
  weights_.resize(candidates_.size());
  for (size_t i = 0; i < candidates_.size(); i++) {
    const double distance =
        candidates_[i].logit == max ? 0.0 : static_cast<double>(candidates_[i].logit) - max;
    weights_[i] = std::exp(distance / settings_.temperature);
  }
}

// The smallest set of likeliest tokens whose probabilities reach top_p.
void Sampler::keep_top_p() {
  if (settings_.top_p >= 1) return;
  double total = 0, sum = 0;
  for (double w : weights_) total += w;
  size_t keep = 0;
  while (keep < weights_.size() && sum < settings_.top_p * total) sum += weights_[keep++];
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
