// Every encoder against llama.cpp's on the same values, and at the edges of what a block can hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convert/encode.h"
#include "kernels/kernels.h"

namespace liuli {
namespace {

constexpr DType kBlockTypes[] = {DType::q8_0, DType::q4_0,   DType::q4_1, DType::q5_0,
                                 DType::q5_1, DType::iq4_nl, DType::q2_k, DType::q3_k,
                                 DType::q4_k, DType::q5_k,   DType::q6_k, DType::iq4_xs};
constexpr int64_t kRows = 24, kColumns = 1024;

/// The generator of tools/make_golden/quantize_errors.py.
class Uniforms {
 public:
  explicit Uniforms(uint64_t seed) : state_(seed) {}
  double next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 40) / 16777216.0 - 0.5;
  }

 private:
  uint64_t state_;
};

std::vector<float> sample() {
  Uniforms u(1);
  std::vector<float> x(kRows * kColumns);
  for (size_t i = 0; i < x.size(); i++) {
    const double a = u.next(), b = u.next(), c = u.next();
    x[i] = static_cast<float>((a + b + c) * (i % 97 == 0 ? 0.2 : 0.05));
  }
  return x;
}

std::vector<float> importance() {
  Uniforms u(2);
  std::vector<float> w(kColumns);
  for (float& v : w) v = static_cast<float>(0.01 + 16 * std::pow(u.next(), 4));
  return w;
}

std::vector<uint8_t> encode(DType type, const std::vector<float>& x, const float* weights = nullptr) {
  const auto n = static_cast<int64_t>(x.size());
  std::vector<uint8_t> bytes(static_cast<size_t>(row_bytes(type, n)));
  encode_row(type, x.data(), n, weights, bytes.data());
  return bytes;
}

std::vector<float> decode(DType type, const std::vector<uint8_t>& bytes, size_t n) {
  std::vector<float> out(n);
  kernels::decode_row(type, bytes.data(), static_cast<int64_t>(n), out.data());
  return out;
}

std::vector<float> round_trip(DType type, const std::vector<float>& x, const float* weights = nullptr) {
  return decode(type, encode(type, x, weights), x.size());
}

/// √(Σ w (x − x̂)² / Σ w x²) over the sample's rows.
double sample_error(DType type, const float* weights) {
  const std::vector<float> x = sample();
  double error = 0, total = 0;
  for (int64_t row = 0; row < kRows; row++) {
    const std::vector<float> values(x.begin() + row * kColumns, x.begin() + (row + 1) * kColumns);
    const std::vector<float> decoded = round_trip(type, values, weights);
    for (size_t i = 0; i < values.size(); i++) {
      const double w = weights == nullptr ? 1.0 : weights[i], difference = double{values[i]} - decoded[i];
      error += w * difference * difference;
      total += w * values[i] * values[i];
    }
  }
  return std::sqrt(error / total);
}

class BlockEncoder : public testing::TestWithParam<DType> {
 protected:
  nlohmann::json golden() const {
    std::ifstream in(std::string(LIULI_SOURCE_DIR) + "/tests/golden/quantize_errors.json");
    return nlohmann::json::parse(in).at(dtype_info(GetParam()).name);
  }
};

// The search finds at least 1 % over llama.cpp's everywhere (most types 3 … 13 %); a slip would eat that first.
TEST_P(BlockEncoder, IsCloserThanLlamaCppByOnePercent) {
  EXPECT_LT(sample_error(GetParam(), nullptr), 0.99 * golden().at("plain").get<double>());
}

TEST_P(BlockEncoder, IsCloserWhereTheImportanceMatrixLooksToo) {
  const std::vector<float> w = importance();
  EXPECT_LT(sample_error(GetParam(), w.data()), 0.99 * golden().at("weighted").get<double>());
}

TEST_P(BlockEncoder, KeepsZerosZero) {
  const std::vector<float> zeros(256, 0.0f);
  EXPECT_EQ(round_trip(GetParam(), zeros), zeros);
}

TEST_P(BlockEncoder, LosesLittleOnAConstantRow) {
  for (float value : {0.37f, -0.37f}) {
    const std::vector<float> x(256, value);
    for (float y : round_trip(GetParam(), x)) EXPECT_NEAR(y, value, 2e-3f * std::fabs(value)) << value;
  }
}

TEST_P(BlockEncoder, KeepsALoneValueAmongZeros) {
  for (float value : {3.0f, -3.0f}) {
    std::vector<float> x(256, 0.0f);
    x[77] = value;
    const std::vector<float> y = round_trip(GetParam(), x);
    EXPECT_NEAR(y[77], value, 0.02f) << value;
    EXPECT_LE(std::fabs(y[0]), 0.02f) << value;
  }
}

TEST_P(BlockEncoder, ScalesBelowAndAboveF16GiveFiniteNearestValues) {
  for (float magnitude : {1e-42f, 1e-20f, 1e-7f, 3e-6f, 1e5f, 1e9f, 3e38f}) {
    std::vector<float> x = sample();
    x.resize(256);
    for (float& v : x) v *= magnitude * 10;
    const std::vector<float> y = round_trip(GetParam(), x);
    for (size_t i = 0; i < x.size(); i++) {
      ASSERT_TRUE(std::isfinite(y[i])) << magnitude;
      // Never farther away than 0 would be, but for half of the smallest step a block can make.
      ASSERT_LE(std::fabs(y[i] - x[i]), std::fabs(x[i]) + magnitude) << magnitude << " at " << i;
    }
  }
}

TEST_P(BlockEncoder, GivesTheSameBytesTwiceAndWithEqualWeights) {
  std::vector<float> x = sample();
  x.resize(kColumns);
  const std::vector<float> ones(kColumns, 1.0f), sevens(kColumns, 7.0f);
  EXPECT_EQ(encode(GetParam(), x), encode(GetParam(), x));
  EXPECT_EQ(encode(GetParam(), x), encode(GetParam(), x, ones.data()));
  EXPECT_EQ(encode(GetParam(), x), encode(GetParam(), x, sevens.data()));
}

TEST_P(BlockEncoder, AColumnWithoutImportanceIsStillEncoded) {
  std::vector<float> x = sample();
  x.resize(kColumns);
  const std::vector<float> nothing(kColumns, 0.0f);
  EXPECT_EQ(encode(GetParam(), x), encode(GetParam(), x, nothing.data()));
  std::vector<float> half(kColumns, 1.0f);
  for (size_t i = 0; i < half.size() / 2; i++) half[i] = 0;
  const std::vector<float> y = round_trip(GetParam(), x, half.data());
  for (size_t i = 0; i < half.size() / 2; i++) EXPECT_NEAR(y[i], x[i], 0.05f);
}

INSTANTIATE_TEST_SUITE_P(Types, BlockEncoder, testing::ValuesIn(kBlockTypes),
                         [](const auto& tested) { return std::string(dtype_info(tested.param).name); });

/// A scale is found again from the values it made. (With a minimum it need not be: a block that does not use its first
/// or last code looks like one with a smaller range.)
TEST(EncodeRow, DecodedValuesEncodeToThemselves) {
  std::vector<float> x = sample();
  x.resize(kColumns);
  for (DType type :
       {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q5_0, DType::q4_0, DType::iq4_nl}) {
    const std::vector<float> once = round_trip(type, x), twice = round_trip(type, once);
    EXPECT_EQ(once, twice) << dtype_info(type).name;
  }
}

TEST(EncodeRow, KnowsWhatItCanWrite) {
  for (DType type : kBlockTypes) EXPECT_TRUE(can_encode(type));
  for (DType type : {DType::f32, DType::f16, DType::bf16}) EXPECT_TRUE(can_encode(type));
  for (DType type : {DType::iq2_xxs, DType::iq3_s, DType::i32, DType::f64, DType::nvfp4})
    EXPECT_FALSE(can_encode(type));
}

TEST(EncodeRow, F16AndBf16RoundToNearestEven) {
  const std::vector<float> x = {1.0f, 1.00048828125f, 1.00146484375f, -65504.0f, 6e-8f};
  EXPECT_EQ(round_trip(DType::f16, x), (std::vector<float>{1.0f, 1.0f, 1.001953125f, -65504.0f, 0x1p-24f}));
  EXPECT_EQ(round_trip(DType::bf16, {1.00390625f, 1.01171875f}), (std::vector<float>{1.0f, 1.015625f}));
}

}  // namespace
}  // namespace liuli
