#include "ops/norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/activation.h"

namespace liuli {
namespace {

struct Fixture {
  ThreadPool pool{2};
  Arena arena;
  OpContext c{
      kernels::best_kernels(), kernels::best_kernels().rows, kernels::best_kernels().attention, pool, arena,
      ProductClass::f32};
  Rows random_rows(int64_t n, int64_t width, unsigned seed) {
    Rows x = make_rows(arena, n, width);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < width; j++) {
        seed = seed * 1664525u + 1013904223u;
        x.row(i)[j] = static_cast<float>(static_cast<int>(seed >> 8) % 2001 - 1000) / 500.0f + 0.3f;
      }
    return x;
  }
};

TEST(Norm, TheArticlesRowComesOutAsPrinted) {
  Fixture f;
  Rows x = make_rows(f.arena, 1, 4), y = make_rows(f.arena, 1, 4);
  const float row[] = {-1.079f, 0.004f, 0.277f, -0.717f}, gamma[] = {1.2f, 0.8f, 1.0f, 1.1f},
              beta[] = {0.1f, -0.1f, 0.05f, 0.2f};
  std::copy(row, row + 4, x.data);
  float mean = 0, sigma = 0;
  norm_forward(f.c, {NormKind::layer, gamma, beta, 0}, x, y, {&mean, &sigma});
  EXPECT_NEAR(mean, -0.37875, 1e-6);
  EXPECT_NEAR(sigma, 0.5434309408747353, 1e-6);
  const double expected[] = {-1.4462866333069082, 0.4634570595246642, 1.2566850646090744,
                             -0.4846776140517291};
  for (int i = 0; i < 4; i++) EXPECT_NEAR(y.data[i], expected[i], 1e-6);
}

TEST(Norm, RmsHasNoMeanAndNoShift) {
  Fixture f;
  Rows x = f.random_rows(5, 70, 3), y = make_rows(f.arena, 5, 70);
  norm_forward(f.c, {NormKind::rms, nullptr, nullptr, 1e-5f}, x, y);
  for (int64_t i = 0; i < 5; i++) {
    double square = 0;
    for (int64_t j = 0; j < 70; j++) square += std::pow(static_cast<double>(x.row(i)[j]), 2);
    const double sigma = std::sqrt(square / 70 + 1e-5);
    for (int64_t j = 0; j < 70; j++) EXPECT_NEAR(y.row(i)[j], static_cast<double>(x.row(i)[j]) / sigma, 2e-6);
  }
}

TEST(Norm, BatchNormTakesColumnsAndLayerNormTakesRows) {
  Fixture f;
  Rows x = f.random_rows(40, 6, 8), y = make_rows(f.arena, 40, 6);
  float mean[6], var[6];
  column_statistics(x, mean, var);
  batch_norm_forward(f.c, {{NormKind::batch, nullptr, nullptr, 0}, mean, var}, x, y);
  for (int64_t j = 0; j < 6; j++) {
    double sum = 0, square = 0;
    for (int64_t i = 0; i < 40; i++) sum += static_cast<double>(y.row(i)[j]);
    for (int64_t i = 0; i < 40; i++) square += std::pow(static_cast<double>(y.row(i)[j]), 2);
    EXPECT_NEAR(sum / 40, 0, 1e-6);
    EXPECT_NEAR(square / 40, 1, 1e-5);
  }
}

TEST(Norm, ARowDoesNotDependOnTheOthers) {
  Fixture f;
  Rows x = f.random_rows(33, 129, 5), all = make_rows(f.arena, 33, 129), one = make_rows(f.arena, 1, 129);
  const Norm norm{NormKind::layer, nullptr, nullptr, 1e-5f};
  norm_forward(f.c, norm, x, all);
  for (int64_t i = 0; i < 33; i++) {
    norm_forward(f.c, norm, x.slice(i, 1), one);
    for (int64_t j = 0; j < 129; j++) ASSERT_EQ(one.data[j], all.row(i)[j]);
  }
}

TEST(Residual, AddsTheBranchAndScalesTheLane) {
  Fixture f;
  Rows x = f.random_rows(2, 10, 1), a = f.random_rows(2, 10, 2);
  const float before = x.row(1)[3];
  add_in_place(f.c, x, a, 1.0f);
  EXPECT_EQ(x.row(1)[3], before + a.row(1)[3]);
  add_in_place(f.c, x, a, 0.0f);  // the lane taken away
  EXPECT_EQ(x.row(1)[3], a.row(1)[3]);
}

}  // namespace
}  // namespace liuli
