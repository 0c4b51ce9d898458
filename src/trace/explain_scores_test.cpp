// Attention scores against a softmax computed directly; residual additions; the explosion and its overflow.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "liuli/error.h"
#include "liuli/explain.h"
#include "trace/explain_arithmetic.h"

namespace liuli {
namespace {

using Doubles = std::vector<double>;

void expect_relative(double got, double expected, double tolerance, const std::string& what) {
  EXPECT_LE(std::fabs(got - expected), tolerance * std::fabs(expected))
      << what << ": " << got << " " << expected;
}

ScoreInputs random_scores(std::mt19937_64& rng, size_t n, size_t head_dim) {
  std::normal_distribution<double> normal;
  ScoreInputs in;
  in.q.resize(head_dim);
  for (double& x : in.q) x = normal(rng);
  in.keys.assign(n, Doubles(head_dim));
  for (Doubles& key : in.keys) {
    for (double& x : key) x = normal(rng);
  }
  return in;
}

// exp and normalise directly, without subtracting the maximum.
std::vector<long double> direct_pattern(const ScoreInputs& in) {
  std::vector<long double> p;
  long double total = 0;
  for (size_t j = 0; j < in.keys.size(); ++j) {
    long double s = 0;
    for (size_t i = in.q.size(); i-- > 0;) s += static_cast<long double>(in.q[i]) * in.keys[j][i];
    s *= in.scale.value_or(1 / std::sqrt(double(in.q.size())));
    if (in.soft_cap > 0) s = in.soft_cap * tanhl(s / in.soft_cap);
    const int64_t position = static_cast<int64_t>(j), query = in.query_position.value_or(1 << 30);
    bool visible = position <= query && (in.window == 0 || position > query - in.window);
    if (!in.visible.empty()) visible = in.visible[j];
    p.push_back(visible ? expl(s) : 0);
    total += p.back();
  }
  for (long double& x : p) x /= total;
  return p;
}

TEST(ExplainScores, AgreesWithDirectComputationForEveryMask) {
  std::mt19937_64 rng(5);
  for (int trial = 0; trial < 200; ++trial) {
    const size_t n = 1 + rng() % 40;
    ScoreInputs in = random_scores(rng, n, 1 + rng() % 64);
    if (trial % 2 == 0) in.query_position = rng() % n;
    if (trial % 4 == 0) in.window = 1 + rng() % 8;
    if (trial % 3 == 0) in.soft_cap = 2;
    if (trial % 5 == 0) in.scale = 0.3;
    if (trial % 7 == 0) {
      in.visible.assign(n, false);
      in.visible[rng() % n] = true;
    }
    const Explanation e = explain_scores(in, Language::en);
    const auto expected = direct_pattern(in);
    const Doubles &pattern = e.step("pattern")->values, &masked = e.step("attn_scores")->values;
    double sum = 0;
    for (size_t j = 0; j < n; ++j) {
      sum += pattern[j];
      EXPECT_EQ(std::isinf(masked[j]), expected[j] == 0);
      if (expected[j] == 0) {
        EXPECT_EQ(pattern[j], 0.0);
      }
      expect_relative(pattern[j], double(expected[j]), 1e-12, "pattern");
    }
    EXPECT_NEAR(sum, 1, 1e-14);
  }
}

TEST(ExplainScores, ShowsTheLargestProductsFirstWithPartialSums) {
  ScoreInputs in;
  in.q = {1, 2, 3, 0.5};
  in.keys = {{1, 1, 1, 1}, {-1, 2, -3, 4}};
  in.focus = 1;
  in.labels = {"今天", "西安"};
  const Explanation e = explain_scores(in, Language::en);
  EXPECT_EQ(e.step("scores_raw")->values, (Doubles{6.5, -4}));
  EXPECT_EQ(e.step("scores")->values, (Doubles{3.25, -2}));
  EXPECT_EQ(e.step("scores_raw")->numbers, "s₁ = 3 × (-3) + 2 × 2 + 0.5 × 4 + 1 × (-1) = -4");
  const WorkedTable& products = *e.table("products");
  ASSERT_EQ(products.rows.size(), 4u);
  const double partial[] = {-9, -5, -3, -4};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(products.rows[i].values[3], partial[i]);
  EXPECT_EQ(e.table("keys")->rows[1].label, "西安");
}

TEST(ExplainScores, RefusesWhatHasNoSoftmax) {
  const auto message = [](const ScoreInputs& in) -> std::string {
    try {
      explain_scores(in, Language::en);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  ScoreInputs in;
  in.q = {1, 2};
  EXPECT_NE(message(in).find("0 keys"), std::string::npos);
  in.keys = {{1, 2}, {3}};
  EXPECT_NE(message(in).find("key 1 has 1 numbers, but q has 2"), std::string::npos);
  in.keys[1] = {3, 4};
  in.query_position = 2;
  EXPECT_NE(message(in).find("position 2, but the keys are 0 … 1"), std::string::npos);
  in.query_position.reset();
  in.visible = {false, false};
  EXPECT_NE(message(in).find("hides all 2 keys"), std::string::npos);
  in.visible.clear();
  in.window = 3;
  EXPECT_NE(message(in).find("window of 3"), std::string::npos);
  in.window = 0;
  in.soft_cap = -1;
  EXPECT_NE(message(in).find("soft cap is -1"), std::string::npos);
  in.soft_cap = 0;
  in.focus = 9;
  EXPECT_NE(message(in).find("key 9"), std::string::npos);
}

TEST(ExplainResidual, AddsAndMeasuresBothRowsAndTheirAngle) {
  ResidualInputs in;
  in.x = {3, 4, 0};
  in.added = {0, 5, 12};
  const Explanation e = explain_residual(in, Language::en);
  EXPECT_EQ(e.step("sum")->values, (Doubles{3, 9, 12}));
  EXPECT_EQ(e.step("norms")->values, (Doubles{5, 13, std::sqrt(9.0 + 81 + 144)}));
  EXPECT_DOUBLE_EQ(e.step("cosine")->values[0], 20.0 / 65);
  EXPECT_NE(e.step("sum")->numbers.find("y₁ = 4 + 5 = 9"), std::string::npos);
  in.added = {0, 0, 0};
  EXPECT_EQ(explain_residual(in, Language::en).step("cosine"), nullptr);
  in.added = {1};
  EXPECT_THROW(explain_residual(in, Language::en), Error);
  in.added = {1, 2, std::nan("")};
  EXPECT_THROW(explain_residual(in, Language::en), Error);
}

TEST(ExplainExplosion, FindsTheOverflowOfEachFormat) {
  const Explanation e = explain_explosion({}, Language::en);
  const WorkedTable& table = *e.table("overflow");
  ASSERT_EQ(table.rows.size(), 3u);
  // From 2·1.5ⁿ − 1 > 65504 and > 3.4e38; float arithmetic itself is asked for the last one.
  EXPECT_EQ(table.rows[0].values[0], 65504);
  EXPECT_EQ(table.rows[0].values[1], std::ceil(std::log((65504 + 1) / 2.0) / std::log(1.5)));
  int step = 0;
  for (volatile float x = 1; std::isfinite(x); ++step) x = 1.5f * x + 0.5f;
  EXPECT_EQ(table.rows[2].values[1], step);
  EXPECT_NEAR(table.rows[1].values[1], step, 1);
  EXPECT_LT(table.rows[1].values[0], table.rows[2].values[0]);
}

TEST(ExplainExplosion, KnowsLanesThatDoNotOverflow) {
  const Explanation settles = explain_explosion({0.5, 1, 10, 20}, Language::en);
  EXPECT_TRUE(std::isnan(settles.table("overflow")->rows[2].values[1]));
  EXPECT_NE(settles.table("overflow")->rows[2].remark.find("fixed point"), std::string::npos);
  const Explanation linear = explain_explosion({1, 2, 0, 7}, Language::en);
  EXPECT_EQ(linear.step("closed_form")->values[0], 14);
  EXPECT_EQ(linear.step("iterate")->values.back(), 14);
  EXPECT_THROW(explain_explosion({1.5, 0.5, 1, 0}, Language::en), Error);
  EXPECT_THROW(explain_explosion({std::nan(""), 0.5, 1, 3}, Language::en), Error);
}

TEST(ExplainExplosion, ClosedFormAgreesWithIteration) {
  for (const ExplosionInputs& in : {ExplosionInputs{-0.9, 2, 3, 50}, {1.01, -0.2, 5, 300}, {2, 0, 1, 100}}) {
    const Explanation e = explain_explosion(in, Language::zh);
    expect_relative(e.step("closed_form")->values[0], e.step("iterate")->values.back(), 1e-12, "closed form");
  }
}

}  // namespace
}  // namespace liuli
