// Random blocks decode to what was asked for, in every type.
#include "convert/random_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "kernels/kernels.h"
#include "liuli/error.h"

namespace liuli {
namespace {

const std::vector<DType> kTypes = {DType::f32,    DType::f16,     DType::bf16,  DType::q4_0,  DType::q4_1,
                                   DType::q5_0,   DType::q5_1,    DType::q8_0,  DType::q2_k,  DType::q3_k,
                                   DType::q4_k,   DType::q5_k,    DType::q6_k,  DType::iq1_s, DType::iq1_m,
                                   DType::iq2_xs, DType::iq2_xxs, DType::iq2_s, DType::iq3_s, DType::iq3_xxs,
                                   DType::iq4_nl, DType::iq4_xs,  DType::tq1_0, DType::tq2_0, DType::mxfp4};

std::vector<float> values(DType type, double deviation, int64_t n_blocks, uint64_t seed = 3) {
  const DTypeInfo& info = dtype_info(type);
  std::vector<uint8_t> bytes(static_cast<size_t>(n_blocks * info.bytes));
  std::vector<float> out(static_cast<size_t>(n_blocks * info.block));
  Rng rng(seed);
  RandomBlocks(type, deviation).fill(rng, bytes.data(), n_blocks);
  kernels::decode_row(type, bytes.data(), n_blocks * info.block, out.data());
  return out;
}

TEST(RandomBlocks, DecodeToTheDeviationAskedForAndMeanZero) {
  for (const DType type : kTypes)
    for (const double deviation : {1.0, 1 / std::sqrt(14336.0)}) {
      const auto v = values(type, deviation, 262144 / dtype_info(type).block);
      double sum = 0, squares = 0;
      for (const float x : v) {
        ASSERT_TRUE(std::isfinite(x)) << dtype_info(type).name;
        sum += double{x};
        squares += double{x} * double{x};
      }
      const auto n = static_cast<double>(v.size());
      EXPECT_NEAR(std::sqrt(squares / n) / deviation, 1, 0.03) << dtype_info(type).name;
      EXPECT_NEAR(sum / n / deviation, 0, 0.02) << dtype_info(type).name;
    }
}

TEST(RandomBlocks, Nvfp4ReachesWhatItsByteScalesReach) {
  // Its smallest scale is 2^−9: below a deviation of about 0.006 a file needs the tensor's own factor.
  const auto v = values(DType::nvfp4, 0.02, 4096);
  double squares = 0;
  for (const float x : v) squares += double{x} * double{x};
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(v.size())) / 0.02, 1, 0.03);
}

TEST(RandomBlocks, DependOnTheGeneratorOnly) {
  EXPECT_EQ(values(DType::q4_k, 1, 8, 5), values(DType::q4_k, 1, 8, 5));
  EXPECT_NE(values(DType::q4_k, 1, 8, 5), values(DType::q4_k, 1, 8, 6));
}

TEST(RandomBlocks, UseEveryCodeThatEncodersUseAndNoOther) {
  std::vector<uint8_t> bytes(34 * 4096);
  Rng rng(1);
  RandomBlocks(DType::q8_0, 1).fill(rng, bytes.data(), 4096);
  std::set<int> codes;
  for (size_t block = 0; block < bytes.size(); block += 34)
    for (size_t i = 2; i < 34; i++) codes.insert(static_cast<int8_t>(bytes[block + i]));
  EXPECT_EQ(codes.size(), 255u);
  EXPECT_EQ(codes.count(-128), 0u);
  std::set<float> trits;
  for (const float v : values(DType::tq2_0, 1, 64)) trits.insert(v == 0 ? 0.0f : std::copysign(1.0f, v));
  EXPECT_EQ(trits, (std::set<float>{-1, 0, 1}));
}

TEST(RandomBlocks, RefuseIntegerTypes) {
  EXPECT_THROW(RandomBlocks(DType::i32, 1), Error);
  EXPECT_THROW(RandomBlocks(DType::f64, 1), Error);
}

}  // namespace
}  // namespace liuli
