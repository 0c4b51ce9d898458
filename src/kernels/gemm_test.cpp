// Products of any stride against plain loops, on every level the machine has: bit for bit.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/isa_tables.h"

namespace liuli::kernels {
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
constexpr Shape kShapes[] = {{1, 1, 1},     {6, 64, 16},   {7, 65, 17},     {5, 63, 511}, {13, 129, 513},
                             {97, 33, 100}, {96, 64, 512}, {100, 20, 1030}, {3, 200, 2},  {193, 1, 40}};

// Which of A and B are stored the other way round.
class Gemm : public testing::TestWithParam<std::pair<bool, bool>> {};

TEST_P(Gemm, EqualsPlainLoopsBitForBitOnEveryLevel) {
  const auto [a_turned, b_turned] = GetParam();
  for (const Shape& s : kShapes)
    for (const bool accumulate : {false, true}) {
      const auto a = random_values(s.m * s.k, 1), b = random_values(s.k * s.n, 2);
      const int64_t c_row = s.n + 3;
      const auto before = random_values(s.m * c_row, 3);
      auto expected = before;
      GemmArgs args{s.m,
                    s.n,
                    s.k,
                    a.data(),
                    a_turned ? 1 : s.k,
                    a_turned ? s.m : 1,
                    b.data(),
                    b_turned ? 1 : s.n,
                    b_turned ? s.k : 1,
                    expected.data(),
                    c_row,
                    accumulate};
      run(*gemm_scalar(), args);
      for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::neon}) {
        const Kernels* level = kernels_for(isa);
        if (level == nullptr) continue;  // an instruction set this machine lacks
        auto found = before;
        args.c = found.data();
        run(level->gemm, args);
        EXPECT_EQ(found, expected) << level->name << " " << s.m << "×" << s.n << "×" << s.k;
      }
    }
}
INSTANTIATE_TEST_SUITE_P(Layouts, Gemm,
                         testing::Values(std::pair(false, false), std::pair(false, true),
                                         std::pair(true, false), std::pair(true, true)));

TEST(GemmParts, ChangeNoBit) {
  const auto a = random_values(40 * 700, 1), b = random_values(700 * 150, 2);
  std::vector<float> whole(40 * 150), parts(40 * 150);
  const GemmKernel& kernel = best_kernels().gemm;
  GemmArgs args{40, 150, 700, a.data(), 700, 1, b.data(), 150, 1, whole.data(), 150};
  run(kernel, args);
  for (const int64_t begin : {0, 11, 33})
    for (const int64_t column : {0, 70}) {
      const int64_t end = begin == 0 ? 11 : begin == 11 ? 33 : 40, last = column == 0 ? 70 : 150;
      run(kernel, {end - begin, last - column, 700, a.data() + begin * 700, 700, 1, b.data() + column, 150, 1,
                   parts.data() + begin * 150 + column, 150});
    }
  EXPECT_EQ(parts, whole);
}

}  // namespace
}  // namespace liuli::kernels
