#include "generate/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "liuli/error.h"

namespace liuli {
namespace {

const std::vector<float> kLogits = {1.0f, 3.0f, 2.0f, 3.0f, -1.0f};

int sample_once(const SamplingSettings& settings, const std::vector<int>& history = {}) {
  return Sampler(settings).sample(kLogits, history);
}

TEST(Sampler, GreedyTakesTheFirstOfTheLargest) { EXPECT_EQ(sample_once({}), 1); }

TEST(Sampler, TheSameSeedGivesTheSameTokens) {
  SamplingSettings settings;
  settings.temperature = 1;
  settings.seed = 7;
  Sampler a(settings), b(settings);
  for (int i = 0; i < 100; i++) EXPECT_EQ(a.sample(kLogits, {}), b.sample(kLogits, {}));
}

TEST(Sampler, FrequenciesFollowTheSoftmax) {
  SamplingSettings settings;
  settings.temperature = 2;
  Sampler sampler(settings);
  std::map<int, int> counts;
  constexpr int kDraws = 40000;
  for (int i = 0; i < kDraws; i++) counts[sampler.sample(kLogits, {})]++;
  double total = 0;
  for (float l : kLogits) total += std::exp(static_cast<double>(l) / 2);
  for (size_t i = 0; i < kLogits.size(); i++) {
    const double p = std::exp(static_cast<double>(kLogits[i]) / 2) / total;
    EXPECT_NEAR(counts[static_cast<int>(i)], p * kDraws, 5 * std::sqrt(p * kDraws)) << "token " << i;
  }
}

TEST(Sampler, CutsKeepOnlyTheLikeliest) {
  SamplingSettings settings;
  settings.temperature = 1;
  auto seen = [&] {
    Sampler sampler(settings);
    std::map<int, int> counts;
    for (int i = 0; i < 2000; i++) counts[sampler.sample(kLogits, {})]++;
    std::vector<int> ids;
    for (const auto& [id, n] : counts) ids.push_back(id);
    return ids;
  };
  settings.top_k = 3;
  EXPECT_EQ(seen(), (std::vector<int>{1, 2, 3}));
  settings.top_k = 0;
  settings.top_p = 0.5f;  // the two largest have 0.41 each
  EXPECT_EQ(seen(), (std::vector<int>{1, 3}));
  settings.top_p = 1;
  settings.min_p = 0.3f;  // exp(2 − 3) = 0.37, exp(1 − 3) = 0.14
  EXPECT_EQ(seen(), (std::vector<int>{1, 2, 3}));
}

// A vocabulary whose likely tokens lie all over it.
std::vector<float> wide_logits() {
  std::vector<float> logits(50000);
  for (size_t i = 0; i < logits.size(); i++)
    logits[i] = -6 + 9 * std::sin(0.37f * static_cast<float>(i * i % 1009));
  return logits;
}

// What the cuts mean, by sorting everything: the ids kept.
std::vector<int> kept_by_sorting(const std::vector<float>& logits, const SamplingSettings& settings) {
  std::vector<std::pair<double, int>> weights;
  for (size_t i = 0; i < logits.size(); i++)
    weights.push_back(
        {-std::exp(static_cast<double>(logits[i]) / settings.temperature), static_cast<int>(i)});
  std::sort(weights.begin(), weights.end());
  if (settings.top_k > 0) weights.resize(static_cast<size_t>(settings.top_k));
  double total = 0, sum = 0;
  for (const auto& [w, id] : weights) total -= w;
  std::vector<int> ids;
  for (const auto& [w, id] : weights) {
    if (sum >= settings.top_p * total || w > settings.min_p * weights.front().first) break;
    sum -= w;
    ids.push_back(id);
  }
  return ids;
}

TEST(Sampler, CutsOfALargeVocabularyAreThoseOfSortingIt) {
  const std::vector<float> logits = wide_logits();
  SamplingSettings settings;
  settings.temperature = 0.9f;
  const auto expect_kept = [&](int top_k, float top_p, float min_p) {
    settings.top_k = top_k, settings.top_p = top_p, settings.min_p = min_p;
    const std::vector<int> kept = kept_by_sorting(logits, settings);
    std::map<int, int> counts;
    Sampler sampler(settings);
    constexpr int kDraws = 300;
    for (int i = 0; i < kDraws; i++) counts[sampler.sample(logits, {})]++;
    for (const auto& [id, n] : counts)
      EXPECT_NE(std::find(kept.begin(), kept.end(), id), kept.end()) << id << " of " << kept.size();
    if (kept.size() < 30) {
      EXPECT_EQ(counts.size(), kept.size());
    }
  };
  expect_kept(20, 1, 0);
  expect_kept(500, 0.02f, 0);
  expect_kept(0, 0.002f, 0);
  expect_kept(0, 0.5f, 0);
  expect_kept(0, 0.95f, 0.9f);
  expect_kept(0, 1, 0.8f);
}

TEST(Sampler, PenaltiesAndBiasesMoveLogits) {
  SamplingSettings settings;
  settings.repetition_penalty = 2;  // 3 → 1.5: token 3 wins over the seen token 1
  EXPECT_EQ(sample_once(settings, {1}), 3);
  settings = {};
  settings.presence_penalty = 1.5f;
  EXPECT_EQ(sample_once(settings, {1, 3}), 2);
  settings = {};
  settings.frequency_penalty = 0.6f;  // 3 − 1.2 < 2
  EXPECT_EQ(sample_once(settings, {1, 1, 3, 3}), 2);
  settings.penalty_window = 2;
  EXPECT_EQ(sample_once(settings, {1, 1, 3, 3}), 1);
  settings = {};
  settings.logit_bias = {{4, 10.0f}};
  EXPECT_EQ(sample_once(settings), 4);
}

TEST(Sampler, RefusesSettingsOutOfRange) {
  auto refused = [](auto change) {
    SamplingSettings settings;
    change(settings);
    EXPECT_THROW(sample_once(settings), Error);
  };
  refused([](SamplingSettings& s) { s.temperature = -1; });
  refused([](SamplingSettings& s) { s.temperature = NAN; });
  refused([](SamplingSettings& s) { s.top_p = 0; });
  refused([](SamplingSettings& s) { s.min_p = 2; });
  refused([](SamplingSettings& s) { s.repetition_penalty = 0; });
  refused([](SamplingSettings& s) { s.logit_bias = {{5, 1.0f}}; });
}

TEST(Sampler, NanLogitsAreNeverChosen) {
  SamplingSettings settings;
  settings.temperature = 1;
  Sampler sampler(settings);
  const std::vector<float> logits = {NAN, 0.0f, NAN};
  for (int i = 0; i < 50; i++) EXPECT_EQ(sampler.sample(logits, {}), 1);
}

TEST(LogProbabilities, AreThoseOfTheSoftmaxLargestFirst) {
  const TokenLogprobs logprobs = log_probabilities(kLogits, 2, 2);
  double total = 0;
  for (float l : kLogits) total += std::exp(static_cast<double>(l));
  EXPECT_NEAR(static_cast<double>(logprobs.chosen), 2 - std::log(total), 1e-6);
  ASSERT_EQ(logprobs.top.size(), 2u);
  EXPECT_EQ(logprobs.top[0].id, 1);
  EXPECT_EQ(logprobs.top[1].id, 3);
}

}  // namespace
}  // namespace liuli
