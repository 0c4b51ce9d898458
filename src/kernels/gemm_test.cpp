// Products of any stride against plain loops, on every level the machine has: bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/isa_tables.h"

namespace liuli::kernels {

#ifdef __x86_64__
const GemmKernel* gemm_bf16_amx_emulated() noexcept;  // amx/gemm_bf16.cpp over tiles in plain arrays
#endif

namespace {

std::vector<float> random_values(int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) v = normal(random);
  return values;
}

void run(const GemmKernel& kernel, const GemmArgs& args) {
  std::vector<float> scratch(kernel.scratch_floats(args.m, args.n, args.k) + 16);
  kernel.multiply(args,
                  reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64));
}

struct Shape {
  int64_t m, n, k;
};
constexpr Shape kShapes[] = {{1, 1, 1},      {6, 64, 16},   {7, 65, 17},   {5, 63, 511},
                             {13, 129, 513}, {97, 33, 100}, {96, 64, 512}, {100, 20, 1030},
                             {3, 200, 2},    {193, 1, 40},  {33, 95, 31},  {50, 64, 64}};

// Which of A and B are stored the other way round.
class Gemm : public testing::TestWithParam<std::pair<bool, bool>> {
 protected:
  /// C by `kernel`, before · or added to.
  std::vector<float> product(const GemmKernel& kernel, const Shape& s, bool accumulate) const {
    const auto [a_turned, b_turned] = GetParam();
    const auto a = random_values(s.m * s.k, 1), b = random_values(s.k * s.n, 2);
    const int64_t c_row = s.n + 3;
    auto c = random_values(s.m * c_row, 3);
    run(kernel, {s.m, s.n, s.k, a.data(), a_turned ? 1 : s.k, a_turned ? s.m : 1, b.data(),
                 b_turned ? 1 : s.n, b_turned ? s.k : 1, c.data(), c_row, accumulate});
    return c;
  }
};

TEST_P(Gemm, EqualsPlainLoopsBitForBitOnEveryLevel) {
  for (const Shape& s : kShapes)
    for (const bool accumulate : {false, true}) {
      const auto expected = product(*gemm_scalar(), s, accumulate);
      for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::neon}) {
        const Kernels* level = kernels_for(isa);
        if (level == nullptr) continue;  // an instruction set this machine lacks
        EXPECT_EQ(product(level->gemm, s, accumulate), expected)
            << level->name << " " << s.m << "×" << s.n << "×" << s.k;
      }
    }
}

// Levels without a bf16 instruction multiply rounded operands in f32: the scalar level's bits.
TEST_P(Gemm, OverBf16EqualsScalarBitForBitWhereItIsF32Fma) {
  for (const Shape& s : kShapes)
    for (const bool accumulate : {false, true}) {
      const auto expected = product(*gemm_bf16_scalar(), s, accumulate);
      for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::neon}) {
        const GemmKernel* kernel = kernels_for(isa) ? gemm_bf16_highway(isa) : nullptr;
        if (kernel == nullptr) continue;  // an instruction set this machine lacks
        EXPECT_EQ(product(*kernel, s, accumulate), expected) << s.m << "×" << s.n << "×" << s.k;
      }
    }
}

std::vector<const GemmKernel*> bf16_dot_products() {
  std::vector<const GemmKernel*> found;
  if (const Kernels* level = kernels_for(Isa::avx512_bf16)) found.push_back(&level->gemm_bf16);
  if (const Kernels* level = kernels_for(Isa::amx)) found.push_back(&level->gemm_bf16);
#ifdef __x86_64__
  if (kernels_for(Isa::avx512_bf16)) found.push_back(gemm_bf16_amx_emulated());
#endif
  return found;
}

// They add in pairs: the same products of the same operands, other roundings of the sums.
TEST_P(Gemm, OfBf16PairsEqualsScalarButForRoundingsOfSums) {
  for (const Shape& s : kShapes)
    for (const bool accumulate : {false, true}) {
      const auto expected = product(*gemm_bf16_scalar(), s, accumulate);
      const float allowed = 4e-7f * static_cast<float>(s.k + 1);
      for (const GemmKernel* kernel : bf16_dot_products()) {
        const auto found = product(*kernel, s, accumulate);
        for (size_t i = 0; i < found.size(); i++)
          ASSERT_NEAR(found[i], expected[i], allowed)
              << kernel->name << " " << s.m << "×" << s.n << "×" << s.k << " at " << i;
      }
    }
}

TEST(GemmBf16, RoundsOperandsToNearestEven) {
  // 1 + 2^−8 lies between two bf16 numbers and goes to the even one, 1; 1 + 3 · 2^−8 to 1 + 2^−6.
  const float a[] = {1 + 0x1p-8f, 1 + 0x3p-8f}, b[] = {1, 1};
  for (const Isa isa : kAllIsas) {
    const Kernels* level = kernels_for(isa);
    if (level == nullptr) continue;  // an instruction set this machine lacks
    float c[2] = {};
    run(level->gemm_bf16, {2, 1, 1, a, 1, 1, b, 1, 1, c, 1});
    EXPECT_EQ(c[0], 1.0f) << level->name;
    EXPECT_EQ(c[1], 1 + 0x1p-6f) << level->name;
  }
}

TEST(GemmBf16, KeepsNotANumberAndInfinity) {
  const float a[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()},
              b[] = {2};
  for (const Isa isa : kAllIsas) {
    const Kernels* level = kernels_for(isa);
    if (level == nullptr) continue;  // an instruction set this machine lacks
    float c[2] = {};
    run(level->gemm_bf16, {2, 1, 1, a, 1, 1, b, 1, 1, c, 1});
    EXPECT_TRUE(std::isnan(c[0])) << level->name;
    EXPECT_TRUE(std::isinf(c[1])) << level->name;
  }
}
INSTANTIATE_TEST_SUITE_P(Layouts, Gemm,
                         testing::Values(std::pair(false, false), std::pair(false, true),
                                         std::pair(true, false), std::pair(true, true)));

TEST(GemmParts, ChangeNoBit) {
  const auto a = random_values(40 * 700, 1), b = random_values(700 * 150, 2);
  for (const GemmKernel* kernel : {&best_kernels().gemm, &best_kernels().gemm_bf16}) {
    std::vector<float> whole(40 * 150), parts(40 * 150);
    run(*kernel, {40, 150, 700, a.data(), 700, 1, b.data(), 150, 1, whole.data(), 150});
    for (const auto& [row, end] : {std::pair{0, 11}, std::pair{11, 33}, std::pair{33, 40}})
      for (const auto& [column, last] : {std::pair{0, 70}, std::pair{70, 150}})
        run(*kernel, {end - row, last - column, 700, a.data() + row * 700, 700, 1, b.data() + column, 150, 1,
                      parts.data() + row * 150 + column, 150});
    EXPECT_EQ(parts, whole) << kernel->name;
  }
}

}  // namespace
}  // namespace liuli::kernels
