#include "ops/router.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace liuli {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

struct Fixture {
  ThreadPool pool{2};
  Arena arena;
  OpContext c{
      kernels::best_kernels(), kernels::best_kernels().rows, kernels::best_kernels().attention, pool, arena,
      ProductClass::f32};

  Rows row(const std::vector<float>& values) {
    Rows x = make_rows(arena, 1, static_cast<int64_t>(values.size()));
    std::copy(values.begin(), values.end(), x.data);
    return x;
  }
  Routing run(const ExpertConfig& shape, const std::vector<float>& logits, const float* bias = nullptr) {
    return route(shape, bias, row(logits));
  }
  Routing route(const ExpertConfig& shape, const float* bias, Rows logits) {
    Routing r = make_routing(c, shape, bias != nullptr, logits.n);
    score_experts(c, shape, logits, r);
    if (bias != nullptr) bias_scores(c, bias, r);
    if (shape.n_groups > 1) score_groups(c, shape, r), keep_groups(c, shape, r);
    choose_experts(c, shape, r);
    weigh_experts(c, shape, r);
    return r;
  }
};

ExpertConfig experts(int64_t n, int64_t active, ExpertConfig::Score score = ExpertConfig::Score::softmax) {
  ExpertConfig shape;
  shape.n_experts = n;
  shape.n_experts_active = active;
  shape.score = score;
  return shape;
}

std::vector<int> ids(const Routing& r) { return {r.expert_ids, r.expert_ids + r.expert_weights.width}; }

float logit(double p) { return static_cast<float>(std::log(p / (1 - p))); }

TEST(Router, SoftmaxScoresOfTheChosenAreRenormalised) {
  Fixture f;
  // e^logit = 1, 4, 2, 3: scores are tenths.
  const std::vector<float> logits = {0.0f, std::log(4.0f), std::log(2.0f), std::log(3.0f)};
  const Routing r = f.run(experts(4, 2), logits);
  EXPECT_EQ(ids(r), (std::vector{1, 3}));
  EXPECT_NEAR(r.scores.data[0], 0.1, 1e-6);
  EXPECT_NEAR(r.scores.data[1], 0.4, 1e-6);
  EXPECT_NEAR(r.expert_weights.data[0], 4.0 / 7, 1e-6);
  EXPECT_NEAR(r.expert_weights.data[1], 3.0 / 7, 1e-6);

  ExpertConfig plain = experts(4, 2);
  plain.renormalise = false;
  plain.weight_scale = 2.5;
  const Routing scaled = f.run(plain, logits);
  EXPECT_NEAR(scaled.expert_weights.data[0], 1.0, 1e-6);
  EXPECT_NEAR(scaled.expert_weights.data[1], 0.75, 1e-6);
}

TEST(Router, ATieGoesToTheLowestIndex) {
  Fixture f;
  EXPECT_EQ(ids(f.run(experts(6, 3), {1, 1, 1, 1, 1, 1})), (std::vector{0, 1, 2}));
  EXPECT_EQ(ids(f.run(experts(6, 3), {1, 2, 1, 2, 1, 1})), (std::vector{0, 1, 3}));
  EXPECT_EQ(ids(f.run(experts(6, 2), {0, 1, 2, 2, 2, 1})), (std::vector{2, 3}));
}

TEST(Router, TheBiasChangesTheChoiceButNotTheWeights) {
  Fixture f;
  const std::vector<float> logits = {logit(0.8), logit(0.6), logit(0.2), logit(0.4)};
  const float bias[] = {-0.5f, 0.0f, 0.5f, 0.0f};  // 0.3, 0.6, 0.7, 0.4
  const Routing r = f.run(experts(4, 2, ExpertConfig::Score::sigmoid), logits, bias);
  EXPECT_EQ(ids(r), (std::vector{1, 2}));
  EXPECT_NEAR(r.biased.data[2], 0.7, 1e-6);
  EXPECT_NEAR(r.expert_weights.data[0], 0.75, 1e-6);
  EXPECT_NEAR(r.expert_weights.data[1], 0.25, 1e-6);
}

TEST(Router, OnlyTheBestGroupsCompete) {
  Fixture f;
  ExpertConfig shape = experts(9, 3, ExpertConfig::Score::sigmoid);
  shape.n_groups = 3;
  shape.n_groups_kept = 2;
  shape.group_best = 2;
  // Group sums of two: 0.9 + 0.1, 0.6 + 0.5, 0.55 + 0.5: the largest score of all stands in a group that loses.
  const std::vector<float> logits = {logit(0.9), logit(0.1), logit(0.05), logit(0.6), logit(0.5),
                                     logit(0.1), logit(0.3), logit(0.55), logit(0.5)};
  const Routing r = f.run(shape, logits);
  EXPECT_NEAR(r.group_scores.data[0], 1.0, 1e-6);
  EXPECT_NEAR(r.group_scores.data[1], 1.1, 1e-6);
  EXPECT_NEAR(r.group_scores.data[2], 1.05, 1e-6);
  EXPECT_EQ(std::vector(r.groups_kept.data, r.groups_kept.data + 3), (std::vector{0.0f, 1.0f, 1.0f}));
  EXPECT_EQ(ids(r), (std::vector{3, 4, 7}));  // 0.5 twice: expert 4 before 8

  shape.group_best = 1;  // DeepSeek-V2: the group's maximum
  EXPECT_EQ(ids(f.run(shape, logits)), (std::vector{0, 3, 4}));
}

TEST(Router, ExpertsOfOtherGroupsLoseEvenToNegativeScores) {
  Fixture f;
  ExpertConfig shape = experts(4, 2, ExpertConfig::Score::sigmoid);
  shape.n_groups = 2;
  shape.n_groups_kept = 1;
  const float bias[] = {-1.0f, -9.0f, -3.0f, -8.0f};
  // Biased sums: −1 − 9 + 1 = −9 and −3 − 8 + 1 = −10; the kept group holds the smallest value of all.
  const Routing r = f.run(shape, {0, 0, 0, 0}, bias);
  EXPECT_EQ(ids(r), (std::vector{0, 1}));
  EXPECT_NEAR(r.expert_weights.data[0], 0.5, 1e-6);
}

TEST(Router, MinusInfinityAndNanLoseToNumbersAndStayWithinBounds) {
  Fixture f;
  EXPECT_EQ(ids(f.run(experts(4, 2), {-kInf, 1, -kInf, 0})), (std::vector{1, 3}));
  EXPECT_EQ(ids(f.run(experts(4, 3), {-kInf, 1, -kInf, 0})), (std::vector{0, 1, 3}));
  const auto sigmoid = ExpertConfig::Score::sigmoid;
  EXPECT_EQ(ids(f.run(experts(4, 2, sigmoid), {kNan, -5, kNan, -6})), (std::vector{1, 3}));
  EXPECT_EQ(ids(f.run(experts(4, 2, sigmoid), {kNan, kNan, kNan, kNan})), (std::vector{0, 1}));
}

TEST(Router, ARowDoesNotDependOnTheOthers) {
  Fixture f;
  ExpertConfig shape = experts(32, 4);
  shape.n_groups = 4;
  shape.n_groups_kept = 2;
  Rows logits = make_rows(f.arena, 21, 32);
  unsigned seed = 7;
  for (int64_t i = 0; i < logits.n; i++)
    for (int64_t e = 0; e < 32; e++) {
      seed = seed * 1664525u + 1013904223u;
      logits.row(i)[e] = static_cast<float>(seed >> 8) / 4e6f;
    }
  const Routing all = f.route(shape, nullptr, logits);
  for (int64_t i = 0; i < logits.n; i++) {
    const Routing one = f.route(shape, nullptr, logits.slice(i, 1));
    for (int64_t j = 0; j < 4; j++) {
      ASSERT_EQ(one.expert_ids[j], all.expert_ids[i * 4 + j]);
      ASSERT_EQ(one.expert_weights.data[j], all.expert_weights.row(i)[j]);
    }
  }
}

}  // namespace
}  // namespace liuli
