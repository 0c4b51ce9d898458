// Optimisers and schedules against sequences computed by hand in double, and by PyTorch's own.
#include "train/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/transformer.h"
#include "train/muon.h"
#include "train/schedule.h"

namespace liuli {
namespace {

constexpr double kGradients[] = {0.1, -0.2, 0.3, 0.05, -0.4};

// One weight of a model follows the sequence of gradients from 1.
std::vector<double> follow(const OptimizerSettings& settings) {
  ModelConfig config;
  config.family = "llama";
  config.vocab_size = 1;
  config.d_model = config.head_dim = 2;
  config.n_heads = config.n_kv_heads = 1;
  config.tied_embeddings = true;
  config.ropes = {RopeConfig{}};
  Parameters parameters(config);
  ThreadPool pool(2);
  Optimizer optimizer(parameters, settings);
  Parameter& p = *parameters.find("model.embed_tokens.weight");
  p.value[0] = 1;
  std::vector<double> values;
  for (const double g : kGradients) {
    parameters.clear_gradients();
    p.gradient[0] = static_cast<float>(g);
    optimizer.step(pool, 0.01);
    values.push_back(static_cast<double>(p.value[0]));
  }
  return values;
}

void expect_sequence(const std::vector<double>& found, const std::vector<double>& expected) {
  for (size_t i = 0; i < expected.size(); i++) EXPECT_NEAR(found[i], expected[i], 3e-7) << "step " << i;
}

TEST(Optimizer, FollowsAdamW) {
  OptimizerSettings s;
  expect_sequence(follow(s),
                  {0.989000001000, 0.991644740276, 0.987269022964, 0.982731340981, 0.983615128673});
}

TEST(Optimizer, FollowsPlainAdam) {
  OptimizerSettings s;
  s.kind = OptimizerKind::adam;
  s.beta2 = 0.999;
  s.weight_decay = 0;
  expect_sequence(follow(s),
                  {0.990000001000, 0.993661036039, 0.990228625395, 0.986671547097, 0.988578763978});
}

TEST(Optimizer, FollowsSgdWithMomentum) {
  OptimizerSettings s;
  s.kind = OptimizerKind::sgd;
  s.weight_decay = 0;
  // b = 0.1, −0.11, 0.201, 0.2309, −0.19219; θ −= 0.01 b
  expect_sequence(follow(s), {0.999, 1.0001, 0.99809, 0.995781, 0.9977029});
}

// Singular values of a 2 × 2 matrix from its Frobenius norm and determinant.
TEST(Muon, MakesSingularValuesAlike) {
  for (const bool tall : {false, true}) {
    float g[6] = {3, 0.5f, -1, 0.2f, 0.1f, 0.4f};
    const int64_t rows = tall ? 3 : 2, columns = tall ? 2 : 3;
    Arena scratch;
    ThreadPool pool(2);
    const auto& best = kernels::best_kernels();
    OpContext c{best, best.rows, attention_kernels(ProductClass::f32), pool, scratch, ProductClass::f32};
    orthogonalise(c, g, rows, columns);
    const int64_t along = tall ? 1 : columns, across = tall ? columns : 1;
    double gram[2][2] = {};
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 2; j++)
        for (int k = 0; k < 3; k++)
          gram[i][j] +=
              static_cast<double>(g[i * along + k * across]) * static_cast<double>(g[j * along + k * across]);
    const double trace = gram[0][0] + gram[1][1];
    const double det = gram[0][0] * gram[1][1] - gram[0][1] * gram[1][0];
    const double root = std::sqrt(std::max(0.0, trace * trace / 4 - det));
    EXPECT_LT(std::sqrt(trace / 2 + root), 1.3);
    EXPECT_GT(std::sqrt(trace / 2 - root), 0.6);
  }
}

TEST(Schedule, WarmsUpAndFallsAlongACosine) {
  Schedule s;
  s.peak = 6e-4;
  s.warm_up = 700;
  s.steps = 18865;
  EXPECT_NEAR(s.rate(0), 8.571428571e-07, 1e-15);
  EXPECT_NEAR(s.rate(349), 3e-4, 1e-12);
  EXPECT_NEAR(s.rate(699), 6e-4, 1e-12);
  EXPECT_NEAR(s.rate(9782), 3.300233479e-04, 1e-12);
  EXPECT_NEAR(s.rate(18864), 6.000000404e-05, 1e-13);
  EXPECT_NEAR(s.rate(20000), 6e-5, 1e-13);
}

TEST(Schedule, OfThe2017PaperPeaksAtTheEndOfItsWarmUp) {
  Schedule s;
  s.kind = ScheduleKind::noam;
  s.warm_up = 4000;
  s.peak = 6.987712430e-04;  // 512^−½ · 4000^−½
  EXPECT_NEAR(s.rate(0), 1.746928107e-07, 1e-15);
  EXPECT_NEAR(s.rate(99), 1.746928107e-05, 1e-13);
  EXPECT_NEAR(s.rate(3999), 6.987712430e-04, 1e-12);
  EXPECT_NEAR(s.rate(7999), 4.941058844e-04, 1e-12);
  EXPECT_NEAR(s.rate(99999), 1.397542486e-04, 1e-12);
}

}  // namespace
}  // namespace liuli
