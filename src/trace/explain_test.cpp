// Norms against long double arithmetic that is written in another way, their errors and their words.
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

NormInputs example(double eps) {
  NormInputs in;
  in.row = {-1.079, 0.004, 0.277, -0.717};
  in.gamma = {1.2, 0.8, 1.0, 1.1};
  in.beta = {0.1, -0.1, 0.05, 0.2};
  in.eps = eps;
  return in;
}

// Sums of x and x² instead of two passes; 64 bits of mantissa pay for the cancellation.
struct LongNorm {
  long double mean = 0, var = 0, sigma = 0;
  LongNorm(const NormInputs& in) {
    long double sum = 0, squares = 0;
    for (double x : in.row) sum += x, squares += static_cast<long double>(x) * x;
    const long double n = in.row.size();
    mean = in.kind == NormKind::rms ? 0 : sum / n;
    var = squares / n - mean * mean;
    if (in.mean) mean = *in.mean, var = *in.variance;
    sigma = sqrtl(var + in.eps);
  }
};

NormInputs random_norm(std::mt19937_64& rng) {
  std::normal_distribution<double> normal;
  const auto draw = [&](size_t n, double mean, double deviation) {
    Doubles values(n);
    for (double& x : values) x = mean + deviation * normal(rng);
    return values;
  };
  const NormKind kinds[] = {NormKind::layer, NormKind::rms, NormKind::batch};
  NormInputs in;
  in.kind = kinds[rng() % 3];
  const size_t n = 1 + rng() % 700, parameters = in.kind == NormKind::batch ? 1 : n;
  in.row = draw(n, normal(rng), std::exp(2 * normal(rng)));
  in.gamma = draw(parameters, 1, 0.3);
  if (in.kind != NormKind::rms) in.beta = draw(parameters, 0, 0.3);
  in.eps = std::pow(10.0, -1 - double(rng() % 9));
  if (in.kind == NormKind::batch && rng() % 2 == 0)
    in.mean = normal(rng), in.variance = std::exp(normal(rng));
  return in;
}

TEST(ExplainNorm, ThousandRandomRowsOfAllKindsAgreeWithLongDouble) {
  std::mt19937_64 rng(20240607);
  for (int trial = 0; trial < 1000; ++trial) {
    const NormInputs in = random_norm(rng);
    const LongNorm expected(in);
    const Explanation e = explain_norm(in, Language::en);
    const Doubles &x_hat = e.step("normalized")->values, &out = e.step("out")->values;
    const bool rms = in.kind == NormKind::rms;
    if (!rms) {
      // A mean near 0 is measured against the terms it is the mean of.
      const double scale =
          std::fabs(double(expected.mean)) + double(expected.sigma) / std::sqrt(in.row.size());
      EXPECT_NEAR(e.step("mean_var")->values[0], double(expected.mean), 1e-12 * scale);
    }
    const double var = rms ? e.step("mean_square")->values[0] : e.step("mean_var")->values[1];
    if (in.row.size() > 1 || rms) expect_relative(var, double(expected.var), 1e-12, "var");
    expect_relative(e.step("sigma")->values[0], double(expected.sigma), 1e-12, "sigma");
    ASSERT_EQ(out.size(), in.row.size());
    for (size_t i = 0; i < out.size(); ++i) {
      const long double want = (in.row[i] - expected.mean) / expected.sigma;
      const double gamma = worked::gamma_at(in, i), beta = worked::beta_at(in, i);
      // Differences and sums are measured against their operands: x − μ and γ x̂ + β may cancel.
      const double size = (std::fabs(in.row[i]) + std::fabs(double(expected.mean))) / double(expected.sigma);
      ASSERT_NEAR(x_hat[i], double(want), 1e-12 * size) << trial;
      ASSERT_NEAR(out[i], double(gamma * want + beta), 1e-12 * (std::fabs(gamma) * size + std::fabs(beta)))
          << trial;
    }
  }
}

void expect_refused(const NormInputs& in, std::initializer_list<const char*> words) {
  try {
    explain_norm(in, Language::en);
    ADD_FAILURE() << "accepted; expected an error naming " << *words.begin();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    for (const char* word : words)
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

TEST(ExplainNorm, RefusesLengthsThatDisagreeNamingBoth) {
  NormInputs in = example(0);
  in.gamma.pop_back();
  expect_refused(in, {"gamma has 3", "row has 4"});
  in = example(0);
  in.beta.push_back(1);
  expect_refused(in, {"beta has 5", "row has 4"});
  in = example(0);
  in.labels = {"a"};
  expect_refused(in, {"labels has 1", "row has 4"});
  in = example(0);
  in.kind = NormKind::batch;
  expect_refused(in, {"gamma has 4", "one column has 1"});
  expect_refused(NormInputs{}, {"0 numbers"});
}

TEST(ExplainNorm, RefusesNumbersThatHaveNoNorm) {
  NormInputs in = example(-1e-5);
  expect_refused(in, {"eps is -1e-05", "0 or more"});
  in = example(0);
  in.row[2] = std::nan("");
  expect_refused(in, {"row[2] is nan", "finite"});
  in = example(0);
  in.beta[1] = std::numeric_limits<double>::infinity();
  expect_refused(in, {"beta[1] is inf"});
  in = example(0);
  in.row = {0.5, 0.5, 0.5, 0.5};
  expect_refused(in, {"sigma is 0"});
  in.row = {1e200, -1e200, 1e200, 0};
  expect_refused(in, {"overflow"});
  in = example(0);
  in.kind = NormKind::rms;
  expect_refused(in, {"RMSNorm has no beta", "4 numbers"});
  in = example(0);
  in.mean = 0.5;
  expect_refused(in, {"mean", "without a variance"});
  in.variance = 1;
  expect_refused(in, {"BatchNorm", "LayerNorm"});
  EXPECT_THROW(explain_norm(example(0), Language::en, 0), Error);
  EXPECT_THROW(explain_norm(example(0), Language::en, 18), Error);
}

TEST(ExplainNorm, SaysWhichNormItIsAndWhatItLacks) {
  NormInputs in = example(1e-5);
  in.model = "SmolLM2";
  in.kind = NormKind::rms;
  in.beta.clear();
  const Explanation rms = explain_norm(in, Language::en);
  EXPECT_NE(rms.notes[0].find("SmolLM2 uses RMSNorm, not LayerNorm"), std::string::npos);
  EXPECT_NE(rms.notes[0].find("no mean μ is subtracted and there is no shift β"), std::string::npos);
  EXPECT_EQ(rms.step("mean_var"), nullptr);
  EXPECT_EQ(rms.table("dimensions")->keys, (std::vector<std::string>{"x", "normalized", "gamma", "out"}));
  const Explanation chinese = explain_norm(in, Language::zh);
  EXPECT_NE(chinese.notes[0].find("不减均值 μ，没有平移 β"), std::string::npos);
  in.kind = NormKind::none;
  in.gamma.clear();
  EXPECT_EQ(explain_norm(in, Language::en).step("out")->values, in.row);
}

TEST(ExplainNorm, PrintsTheFormulaWithTheOperandsInPlace) {
  const Explanation e = explain_norm(example(0), Language::en);
  const std::string& mean_var = e.step("mean_var")->numbers;
  EXPECT_NE(mean_var.find("μ = (-1.079) + 0.004 + 0.277 + (-0.717)"), 0u);
  EXPECT_NE(mean_var.find("μ = ((-1.079) + 0.004 + 0.277 + (-0.717)) / 4 = -1.515 / 4 = -0.37875"),
            std::string::npos);
  EXPECT_EQ(e.step("sigma")->numbers, "σ ≈ √(0.295317 + 0) ≈ 0.543431");
  EXPECT_NE(e.step("out")->numbers.find("y₁ ≈ 0.8 × 0.704321 + (-0.1) ≈ 0.463457"), std::string::npos);
}

TEST(ExplainNorm, ReportsTheDistanceToWhatARunRecorded) {
  NormInputs in = example(0);
  in.observed = explain_norm(in, Language::en).step("out")->values;
  EXPECT_EQ(explain_norm(in, Language::en).notes.back(), "Equal to all 4 values recorded in the run.");
  in.observed[2] += 0.25;
  EXPECT_NE(explain_norm(in, Language::en).notes.back().find("0.25 (at 2)"), std::string::npos);
}

}  // namespace
}  // namespace liuli
