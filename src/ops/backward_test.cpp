// Backward of every op against central differences of its forward, at L = Σ y ⊙ r for random r.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/rng.h"
#include "ops/activation.h"
#include "ops/cross_entropy.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/rope.h"

namespace liuli {
namespace {

// What an op needs, with the machine's best kernels; statistics of the differences are formed in double.
struct Bench {
  explicit Bench(int threads = 2) : pool(threads) {}
  ThreadPool pool;
  Arena scratch;
  OpContext c{kernels::best_kernels(),
              kernels::best_kernels().rows,
              kernels::best_kernels().attention_f32,
              pool,
              scratch,
              ProductClass::f32};

  Rows random(int64_t n, int64_t width, uint64_t seed, double scale = 1, double shift = 0) {
    Rows x = make_rows(scratch, n, width);
    Rng rng(seed);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < width; j++) x.row(i)[j] = static_cast<float>(shift + scale * rng.normal());
    return x;
  }
  Rows zeros(int64_t n, int64_t width) { return random(n, width, 1, 0); }
};

double dot(Rows a, Rows b) {
  double sum = 0;
  for (int64_t i = 0; i < a.n; i++)
    for (int64_t j = 0; j < a.width; j++)
      sum += static_cast<double>(a.row(i)[j]) * static_cast<double>(b.row(i)[j]);
  return sum;
}

/// Every entry of `gradient` is the change of loss() with that entry of `at`. f32 forwards: 2e-3 of the largest.
void expect_gradient(Rows at, Rows gradient, const std::function<double()>& loss, const char* what) {
  double largest = 1e-3;
  for (int64_t i = 0; i < at.n; i++)
    for (int64_t j = 0; j < at.width; j++)
      largest = std::max(largest, std::fabs(static_cast<double>(gradient.row(i)[j])));
  for (int64_t i = 0; i < at.n; i++)
    for (int64_t j = 0; j < at.width; j++) {
      constexpr float kStep = 1e-2f;
      float& x = at.row(i)[j];
      const float before = x;
      x = before + kStep;
      const double up = loss(), step_up = static_cast<double>(x) - static_cast<double>(before);
      x = before - kStep;
      const double down = loss(), step_down = static_cast<double>(before) - static_cast<double>(x);
      x = before;
      EXPECT_NEAR(gradient.row(i)[j], (up - down) / (step_up + step_down), 2e-3 * largest)
          << what << " [" << i << ", " << j << "]";
    }
}

TEST(Backward, OfLinearIsItsDifference) {
  Bench b;
  Rows x = b.random(5, 13, 1), w = b.random(9, 13, 2), r = b.random(5, 9, 3);
  std::vector<float> weight(9 * 13), d_weight(9 * 13), bias(9, 0.5f), d_bias(9);
  for (int64_t i = 0; i < 9; i++) std::copy_n(w.row(i), 13, weight.data() + i * 13);
  Rows weights{weight.data(), 9, 13, 13}, d_weights{d_weight.data(), 9, 13, 13};
  Rows biases{bias.data(), 1, 9, 9}, d_biases{d_bias.data(), 1, 9, 9};
  Rows y = make_rows(b.scratch, 5, 9), dx = b.zeros(5, 13);
  const Matrix matrix("w", DType::f32, 9, 13, reinterpret_cast<const uint8_t*>(weight.data()));
  auto loss = [&] {
    linear_forward(b.c, x, {LinearJob{&matrix, bias.data(), y}});
    return dot(y, r);
  };
  linear_backward(b.c, {weight.data(), d_weight.data(), d_bias.data(), 9, 13}, x, r, dx);
  expect_gradient(x, dx, loss, "dx");
  expect_gradient(weights, d_weights, loss, "dW");
  expect_gradient(biases, d_biases, loss, "db");
}

TEST(Backward, OfNormsIsTheirDifference) {
  for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
    Bench b;
    Rows x = b.random(4, 17, 1, 1.5, 0.3), r = b.random(4, 17, 2), y = make_rows(b.scratch, 4, 17);
    Rows gamma = b.random(1, 17, 3, 0.3, 1), beta = b.random(1, 17, 4), dx = b.zeros(4, 17);
    Rows d_gamma = b.zeros(1, 17), d_beta = b.zeros(1, 17);
    const Norm norm{kind, gamma.data, kind == NormKind::layer ? beta.data : nullptr, 1e-5f};
    auto loss = [&] {
      norm_forward(b.c, norm, x, y);
      return dot(y, r);
    };
    norm_backward(b.c, norm, {d_gamma.data, d_beta.data}, x, r, dx, true);
    expect_gradient(x, dx, loss, "dx");
    expect_gradient(gamma, d_gamma, loss, "dγ");
    if (kind == NormKind::layer) expect_gradient(beta, d_beta, loss, "dβ");
  }
}

TEST(Backward, OfBatchNormIsItsDifference) {
  Bench b;
  Rows x = b.random(6, 5, 1, 1.5, 0.3), r = b.random(6, 5, 2), y = make_rows(b.scratch, 6, 5);
  Rows gamma = b.random(1, 5, 3, 0.3, 1), beta = b.random(1, 5, 4), dx = b.zeros(6, 5);
  Rows d_gamma = b.zeros(1, 5), d_beta = b.zeros(1, 5);
  const Norm norm{NormKind::batch, gamma.data, beta.data, 1e-5f};
  auto loss = [&] {
    std::vector<float> mean(5), var(5);
    batch_norm_train_forward(b.c, norm, x, y, mean.data(), var.data());
    return dot(y, r);
  };
  batch_norm_backward(b.c, norm, {d_gamma.data, d_beta.data}, x, r, dx);
  expect_gradient(x, dx, loss, "dx");
  expect_gradient(gamma, d_gamma, loss, "dγ");
  expect_gradient(beta, d_beta, loss, "dβ");
}

TEST(BatchNorm, MovesItsRunningStatisticsTowardsTheBatch) {
  Bench b;
  Rows x = make_rows(b.scratch, 2, 1), y = make_rows(b.scratch, 2, 1);
  x.row(0)[0] = 1;
  x.row(1)[0] = 5;
  float mean = 0, var = 1;
  batch_norm_train_forward(b.c, {NormKind::batch, nullptr, nullptr, 0}, x, y, &mean, &var);
  EXPECT_FLOAT_EQ(mean, 0.3f);            // 0 + 0.1 · (3 − 0)
  EXPECT_FLOAT_EQ(var, 0.9f + 0.1f * 8);  // the unbiased variance of 1 and 5 is 8
  EXPECT_FLOAT_EQ(y.row(0)[0], -1);
}

TEST(Backward, OfRopeIsItsDifference) {
  Bench b;
  RopeConfig config;
  config.dim = 6;
  const std::vector<int> positions = {0, 3, 7};
  const RopeAngles angles = rope_angles(b.c, config, rope_frequencies(config), positions.data(), 3);
  Rows x = b.random(3, 16, 1), r = b.random(3, 16, 2), y = make_rows(b.scratch, 3, 16),
       dx = make_rows(b.scratch, 3, 16);
  auto loss = [&] {
    for (int64_t i = 0; i < 3; i++) std::copy_n(x.row(i), 16, y.row(i));
    rope_forward(b.c, angles, y, 2, 8, 2);
    return dot(y, r);
  };
  for (int64_t i = 0; i < 3; i++) std::copy_n(r.row(i), 16, dx.row(i));
  rope_backward(b.c, angles, dx, 2, 8, 2);
  expect_gradient(x, dx, loss, "dx");
}

TEST(Backward, OfCrossEntropyIsItsDifferenceAndLeavesIgnoredRowsOut) {
  for (const double smoothing : {0.0, 0.1}) {
    Bench b;
    Rows z = b.random(4, 11, 1, 2), dz = make_rows(b.scratch, 4, 11);
    const std::vector<int> targets = {3, kIgnoredTarget, 0, 10};
    auto loss = [&] {
      const CrossEntropy e = cross_entropy_forward(b.c, z, targets, smoothing);
      EXPECT_EQ(e.counted, 3);
      return e.sum / 3;
    };
    for (int64_t i = 0; i < 4; i++) std::copy_n(z.row(i), 11, dz.row(i));
    cross_entropy_backward(b.c, dz, targets, 1.0f / 3, smoothing);
    expect_gradient(z, dz, loss, "dz");
  }
}

TEST(Backward, DoesNotDependOnTheNumberOfThreads) {
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 3}) {
    Bench b(threads);
    Rows x = b.random(70, 130, 1), dy = b.random(70, 200, 2), dx = b.zeros(70, 130), dn = b.zeros(70, 130);
    std::vector<float> all(200 * 130 * 2 + 200 + 130);
    float *weight = all.data(), *d_weight = weight + 200 * 130, *d_bias = d_weight + 200 * 130,
          *d_gamma = d_bias + 200;
    Rng rng(5);
    for (int i = 0; i < 200 * 130; i++) weight[i] = static_cast<float>(rng.normal());
    linear_backward(b.c, {weight, d_weight, d_bias, 200, 130}, x, dy, dx);
    norm_backward(b.c, {NormKind::layer, nullptr, nullptr, 1e-5f}, {d_gamma, nullptr}, x, dx, dn, true);
    for (int64_t i = 0; i < 70; i++) all.insert(all.end(), dn.row(i), dn.row(i) + 130);
    results.push_back(std::move(all));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

}  // namespace
}  // namespace liuli
