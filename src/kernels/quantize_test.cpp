// f32 rows to 16-bit integer activations: the formula, and the same bytes on every ISA.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/isa_tables.h"
#include "kernels/panel_samples.h"
#include "kernels/panels.h"

namespace liuli::kernels {
namespace {

std::vector<ActivationChunk> quantize(QuantizeRows kernel, const std::vector<float>& x, int64_t k, int n_rows,
                                      ptrdiff_t ldx) {
  std::vector<ActivationChunk> out(static_cast<size_t>(activation_chunks(k) * n_rows));
  std::memset(static_cast<void*>(out.data()), 0x5a, out.size() * sizeof(ActivationChunk));
  kernel(x.data(), ldx, n_rows, k, out.data());
  return out;
}

std::vector<float> random_x(int n_rows, int64_t k, ptrdiff_t ldx) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(n_rows * ldx));
  for (int m = 0; m < n_rows; m++)
    for (int64_t i = 0; i < k; i++) x[static_cast<size_t>(m * ldx + i)] = normal(random);
  return x;
}

bool same(const ActivationChunk& a, const ActivationChunk& b) {
  return std::memcmp(a.hi, b.hi, 256) == 0 && std::memcmp(a.lo, b.lo, 256) == 0 &&
         std::memcmp(a.q, b.q, 512) == 0 && std::memcmp(a.negative_sum32, b.negative_sum32, 32) == 0 &&
         std::memcmp(a.negative_sum16, b.negative_sum16, 64) == 0 && std::memcmp(a.sum32, b.sum32, 32) == 0 &&
         std::memcmp(a.sum16, b.sum16, 64) == 0 &&
         (a.scale == b.scale || (std::isnan(a.scale) && std::isnan(b.scale)));
}

void expect_all_levels_alike(const std::vector<float>& x, int64_t k, int n_rows, ptrdiff_t ldx) {
  const auto expected = quantize(quantize_x16_scalar(), x, k, n_rows, ldx);
  for (const auto& [isa, kernel] :
       {std::pair{Isa::avx2, quantize_x16_avx2()}, {Isa::avx512, quantize_x16_avx512()}}) {
    if (!kernels_for(isa)) continue;
    const auto actual = quantize(kernel, x, k, n_rows, ldx);
    for (size_t i = 0; i < expected.size(); i++)
      ASSERT_TRUE(same(actual[i], expected[i]))
          << "isa " << static_cast<int>(isa) << " k " << k << " chunk " << i;
  }
}

TEST(QuantizeX16, IsTheSameOnEveryIsa) {
  for (const int64_t k : {1, 15, 16, 17, 54, 64, 255, 256, 257, 608, 1024})
    expect_all_levels_alike(random_x(3, k, k + 5), k, 3, k + 5);
}

TEST(QuantizeX16, RoundsToTheNearestOf65025Steps) {
  const auto x = random_x(1, 300, 300);
  const auto out = quantize(quantize_x16_scalar(), x, 300, 1, 300);
  for (int i = 0; i < 300; i++) {
    const ActivationChunk& chunk = out[static_cast<size_t>(i / 256)];
    const int q = 256 * chunk.hi[i % 256] + chunk.lo[i % 256];
    EXPECT_EQ(q, chunk.q[activation_place(i % 256)]);
    EXPECT_NEAR(static_cast<float>(q) * chunk.scale, x[static_cast<size_t>(i)], 0.501f * chunk.scale);
  }
}

TEST(QuantizeX16, GivesTheSumsOfItsIntegers) {
  const auto x = random_x(1, 200, 200);
  const ActivationChunk chunk = quantize(quantize_x16_scalar(), x, 200, 1, 200)[0];
  for (int s = 0; s < 16; s++) {
    int sum = 0;
    for (int i = 16 * s; i < 16 * s + 16; i++) sum += 256 * chunk.hi[i] + chunk.lo[i];
    EXPECT_EQ(chunk.negative_sum16[s], -sum);
    EXPECT_EQ(chunk.sum16[s], static_cast<float>(sum));
  }
  for (int s = 0; s < 8; s++) {
    EXPECT_EQ(chunk.negative_sum32[s], chunk.negative_sum16[2 * s] + chunk.negative_sum16[2 * s + 1]);
    EXPECT_EQ(chunk.sum32[s], static_cast<float>(-chunk.negative_sum32[s]));
  }
}

TEST(QuantizeX16, GivesScaleZeroForZerosAndForValuesTooSmallToDivideBy) {
  for (const float value : {0.0f, -0.0f, 1e-31f, std::numeric_limits<float>::denorm_min()}) {
    const std::vector<float> x(64, value);
    const ActivationChunk chunk = quantize(quantize_x16_scalar(), x, 64, 1, 64)[0];
    EXPECT_EQ(chunk.scale, 0.0f);
    EXPECT_EQ(chunk.hi[3] | chunk.lo[3] | chunk.q[3], 0);
    expect_all_levels_alike(x, 64, 1, 64);
  }
}

TEST(QuantizeX16, ShowsNaNAndInfinityInTheScaleOfTheirChunkOnly) {
  for (const float value : {NAN, -NAN, INFINITY, -INFINITY}) {
    auto x = random_x(1, 512, 512);
    x[300] = value;
    const auto out = quantize(quantize_x16_scalar(), x, 512, 1, 512);
    EXPECT_FALSE(std::isnan(out[0].scale));
    EXPECT_TRUE(std::isnan(out[1].scale));
    EXPECT_EQ(out[1].q[0], 0);
    expect_all_levels_alike(x, 512, 1, 512);
  }
}

TEST(QuantizeX16, HandlesTheLargestFiniteValues) {
  std::vector<float> x(64, std::numeric_limits<float>::max());
  x[1] = -x[1];
  const ActivationChunk chunk = quantize(quantize_x16_scalar(), x, 64, 1, 64)[0];
  EXPECT_EQ(chunk.q[0], 32512);
  EXPECT_EQ(chunk.hi[1], -127);
  EXPECT_EQ(chunk.lo[1], 0);
  expect_all_levels_alike(x, 64, 1, 64);
}

}  // namespace
}  // namespace liuli::kernels
