#include "ops/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace liuli {
namespace {

struct Fixture {
  ThreadPool pool{1};
  Arena arena;
  OpContext c{
      kernels::best_kernels(), kernels::best_kernels().rows, kernels::best_kernels().attention, pool, arena,
      ProductClass::f32};
};

TEST(Rope, TurnsPairsAsPublished) {
  // x = 1…8, base 10000, position 3, pairs (i, i + 4): published check values.
  const float expected[] = {-1.695592537f, 0.137551738f, 2.788681600f, 3.975982036f,
                            -4.808842475f, 6.323059348f, 7.086836737f, 8.011963982f};
  Fixture f;
  RopeConfig config;
  config.dim = 8;
  const auto frequencies = rope_frequencies(config);
  const int position = 3;
  Rows x = make_rows(f.arena, 1, 8);
  for (int i = 0; i < 8; i++) x.data[i] = static_cast<float>(i + 1);
  rope_forward(f.c, rope_angles(f.c, config, frequencies, &position, 1), x, 1, 8);
  for (int i = 0; i < 8; i++) EXPECT_NEAR(x.data[i], expected[i], 2e-6) << i;
}

TEST(Rope, LeavesTheRestOfAHeadAlone) {
  Fixture f;
  RopeConfig config;
  config.dim = 4;
  const int position = 5;
  Rows x = make_rows(f.arena, 1, 16);
  for (int i = 0; i < 16; i++) x.data[i] = 1.0f;
  rope_forward(f.c, rope_angles(f.c, config, rope_frequencies(config), &position, 1), x, 2, 8);
  for (int head = 0; head < 2; head++)
    for (int i = 4; i < 8; i++) EXPECT_EQ(x.data[head * 8 + i], 1.0f);
  EXPECT_NE(x.data[0], 1.0f);
}

// Divisors of Llama 3.1-8B (factor 8) and 3.2-1B (factor 32), computed from the published rule.
TEST(Rope, Llama3ScalingGivesThePublishedDivisors) {
  RopeConfig plain;
  plain.theta = 500000;
  auto divisors = [&](int dim, double factor) {
    plain.dim = dim;
    RopeConfig scaled = plain;
    scaled.scaling = RopeScaling::llama3;
    scaled.factor = factor;
    scaled.original_max_seq_len = 8192;
    const auto a = rope_frequencies(plain), b = rope_frequencies(scaled);
    std::vector<double> d;
    for (size_t i = 0; i < a.size(); i++) d.push_back(a[i] / b[i]);
    return d;
  };
  const auto eight_b = divisors(128, 8), one_b = divisors(64, 32);
  EXPECT_NEAR(eight_b[28], 1, 1e-12);
  EXPECT_NEAR(eight_b[29], 1.20748387, 1e-7);
  EXPECT_NEAR(eight_b[34], 5.25732659, 1e-7);
  EXPECT_NEAR(eight_b[35], 8, 1e-12);
  EXPECT_NEAR(one_b[15], 1.65132925, 1e-7);
  EXPECT_NEAR(one_b[17], 9.66672898, 1e-7);
}

TEST(Rope, YarnRampsBetweenItsBounds) {
  RopeConfig config;
  config.dim = 64;
  config.scaling = RopeScaling::yarn;
  config.factor = 40;
  config.original_max_seq_len = 4096;
  const auto f = rope_frequencies(config);
  EXPECT_NEAR(f[10], std::pow(10000.0, -20.0 / 64), 1e-12);
  EXPECT_NEAR(f[11], 0.0390069266, 1e-9);
  EXPECT_NEAR(f[16], 0.0055, 1e-9);
  EXPECT_NEAR(f[31], 3.33380358e-06, 1e-13);
}

}  // namespace
}  // namespace liuli
