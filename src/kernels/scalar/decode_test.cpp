// Every decoder against values of an independent implementation, bit for bit.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "kernels/kernels.h"

namespace liuli::kernels {
namespace {

/// A golden file: random and edge-case blocks of one type, and what they decode to.
struct Golden {
  std::vector<uint8_t> blocks;
  std::vector<float> values;
};

/// The bytes of one array of tests/golden/FILE.safetensors; nothing if the file is missing.
std::string golden_bytes(const std::string& file, const std::string& name) {
  std::ifstream in(std::string(LIULI_SOURCE_DIR) + "/tests/golden/" + file + ".safetensors",
                   std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  uint64_t header_size = 0;
  if (bytes.size() < 8) return {};
  std::memcpy(&header_size, bytes.data(), 8);
  const auto header = nlohmann::json::parse(bytes.substr(8, header_size));
  const auto& offsets = header.at(name).at("data_offsets");
  return bytes.substr(8 + header_size + offsets[0].get<size_t>(),
                      offsets[1].get<size_t>() - offsets[0].get<size_t>());
}

std::vector<float> floats_of(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Golden read_golden(const std::string& type_name) {
  const std::string file = "quant/" + type_name, blocks = golden_bytes(file, "blocks");
  return {{blocks.begin(), blocks.end()}, floats_of(golden_bytes(file, "values"))};
}

std::vector<float> decode(DType type, const std::vector<uint8_t>& blocks) {
  const DTypeInfo& info = dtype_info(type);
  std::vector<float> out(blocks.size() / static_cast<size_t>(info.bytes) * static_cast<size_t>(info.block));
  decode_row(type, blocks.data(), static_cast<int64_t>(out.size()), out.data());
  return out;
}

size_t first_difference(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); i++)
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) return i;
  return a.size();
}

const char* const kGoldenTypes[] = {"F16",     "BF16",   "Q4_0",  "Q4_1",    "Q5_0",  "Q5_1",   "Q8_0",
                                    "Q2_K",    "Q3_K",   "Q4_K",  "Q5_K",    "Q6_K",  "IQ1_S",  "IQ1_M",
                                    "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_NL", "IQ4_XS",
                                    "TQ1_0",   "TQ2_0",  "MXFP4", "NVFP4"};

class DecodeGolden : public testing::TestWithParam<const char*> {};

TEST_P(DecodeGolden, EqualsThePublishedDecoderBitForBit) {
  const Golden golden = read_golden(GetParam());
  ASSERT_FALSE(golden.values.empty()) << "golden file of " << GetParam() << " is missing";
  const std::vector<float> decoded = decode(dtype_from_name(GetParam()).value(), golden.blocks);
  ASSERT_EQ(decoded.size(), golden.values.size());
  const size_t at = first_difference(decoded, golden.values);
  EXPECT_EQ(at, decoded.size()) << "element " << at << ": " << decoded[at] << " should be "
                                << golden.values[at];
}

TEST_P(DecodeGolden, GivesTheSameBitsFromAMisalignedRowAndBlockByBlock) {
  const Golden golden = read_golden(GetParam());
  const DType type = dtype_from_name(GetParam()).value();
  const auto block = static_cast<size_t>(dtype_info(type).block),
             bytes = static_cast<size_t>(dtype_info(type).bytes);
  std::vector<uint8_t> shifted(golden.blocks.size() + 1);
  std::memcpy(shifted.data() + 1, golden.blocks.data(), golden.blocks.size());
  std::vector<float> out(golden.values.size() + 1, 7.5f);
  for (size_t i = 0; i < golden.blocks.size() / bytes; i++)
    decode_row(type, shifted.data() + 1 + i * bytes, static_cast<int64_t>(block), out.data() + i * block);
  EXPECT_EQ(out.back(), 7.5f) << "wrote past the end";
  out.pop_back();
  ASSERT_EQ(out.size(), golden.values.size());
  EXPECT_EQ(first_difference(out, golden.values), out.size());
}

INSTANTIATE_TEST_SUITE_P(EveryType, DecodeGolden, testing::ValuesIn(kGoldenTypes),
                         [](const auto& golden_type) { return std::string(golden_type.param); });

/// One block with bytes (37 k + 11) mod 256, its f16 scale at `d` set to 0.5 and its minimum at `m` to 0.25.
struct Pattern {
  const char* type;
  int d, m;
  std::vector<float> first;
  float last;
  double sum, weighted_sum;  ///< Σ y_i and Σ (i + 1) · y_i
};

const Pattern kPatterns[] = {
    {"Q4_0", 0, -1, {-1.5f, 1, 3.5f, -2, 0.5f, 3}, 0, -10.5, -259},
    {"Q4_1", 0, 2, {7.75f, 2.25f, 4.75f, 7.25f, 1.75f, 4.25f}, 6.25f, 130.5, 2123.5},
    {"Q5_0", 0, -1, {4.5f, -1, 1.5f, -4, 6.5f, -7}, 0.5f, 7.5, 56},
    {"Q5_1", 0, 2, {9.75f, 12.25f, 14.75f, 9.25f, 11.75f, 6.25f}, 2.75f, 260.5, 4082.5},
    {"Q8_0", 0, -1, {42.5f, 61, -48.5f, -30, -11.5f, 7}, -24, -88, -4040},
    {"Q2_K", 80, 82, {16.5f, 0, 5.5f, 11, 16.5f, 0}, 2.25f, 1029.5, 121565},
    {"Q3_K", 108, -1, {40.5f, -54, 13.5f, -27, 40.5f, -54}, 21, 479, 88572.5},
    {"Q4_K", 0, 2, {157.75f, -12.75f, 64.75f, 142.25f, 219.75f, 49.25f}, 24.25f, 27220, 3786420},
    {"Q5_K", 0, 2, {405.75f, -12.75f, 312.75f, 142.25f, 467.75f, 49.25f}, 54.25f, 58108, 8013724},
    {"Q6_K", 208, -1, {-715.5f, 848, 291.5f, -265, -821.5f, 742}, -30, 2306, 392210},
    {"IQ4_NL", 0, -1, {-17.5f, 12.5f, 56.5f, -24.5f, 6.5f, 44.5f}, 0.5f, -128.5, -3459.5},
    {"IQ4_XS", 0, -1, {32.5f, -0.5f, -34.5f, 41.5f, 5, -26.5f}, -8, -5502.5, -1045567},
    {"TQ1_0", 52, -1, {-0.5f, -0.5f, -0.5f, 0, 0, 0.5f}, -0.5f, -1, -65.5},
    {"TQ2_0", 64, -1, {1, -0.5f, 0, 0.5f, 1, -0.5f}, -0.5f, 64.5, 8622.5},
    {"MXFP4", -1, -1, {0, 1.5f, -0.5f, -3, 1, -0.25f}, 1.5f, 6.25, 159.5},
    {"NVFP4", -1, -1, {-6, 2, -0.5f, -4, 1.5f, 0}, 0.0068359375f, -28.9248047, -955.053710938},
    {"IQ2_XXS",
     0,
     -1,
     {-29.5625f, 29.5625f, 17.1875f, -17.1875f, 17.1875f, -5.5f},
     -40.3125f,
     381.875,
     18396.5},
    {"IQ2_XS", 0, -1, {-5.5f, 17.1875f, -5.5f, -29.5625f, -5.5f, -17.1875f}, -9.5f, 745.25, 61599.0625},
    {"IQ2_S",
     0,
     -1,
     {-72.5625f, 42.1875f, -13.5f, 13.5f, -13.5f, -72.5625f},
     39.0625f,
     -400.3125,
     -31040.3125},
    {"IQ3_XXS", 0, -1, {-6.5f, 4.5f, -3.5f, 1.5f, -7.75f, 3.5f}, -7.5f, -342, 1511.5},
    {"IQ3_S", 0, -1, {-40.5f, 121.5f, -175.5f, -94.5f, -175.5f, -94.5f}, 112.5f, 728, 101395},
    {"IQ1_S", 0, -1, {-1.3125f, 0.1875f, 1.6875f, 1.6875f, 1.6875f, 0.1875f}, -2.1875f, 10, -5914.5},
};

std::vector<uint8_t> pattern_block(const Pattern& p) {
  std::vector<uint8_t> block(static_cast<size_t>(dtype_info(dtype_from_name(p.type).value()).bytes));
  for (size_t k = 0; k < block.size(); k++) block[k] = static_cast<uint8_t>(37 * k + 11);
  const auto set_f16 = [&](int at, uint8_t high) {
    if (at < 0) return;
    block[static_cast<size_t>(at)] = 0x00;
    block[static_cast<size_t>(at) + 1] = high;
  };
  set_f16(p.d, 0x38);
  set_f16(p.m, 0x34);
  if (p.type == std::string("MXFP4")) block[0] = 126;
  if (p.type == std::string("NVFP4")) {
    const uint8_t scales[4] = {0x38, 0x30, 0x3c, 0x07};
    std::copy(scales, scales + 4, block.begin());
  }
  return block;
}

TEST(Decode, GivesTheCheckVectorsOfTheFormatsDescription) {
  for (const Pattern& p : kPatterns) {
    SCOPED_TRACE(p.type);
    const std::vector<float> y = decode(dtype_from_name(p.type).value(), pattern_block(p));
    for (size_t i = 0; i < p.first.size(); i++) EXPECT_EQ(y[i], p.first[i]) << "element " << i;
    EXPECT_EQ(y.back(), p.last);
    double sum = 0, weighted_sum = 0;
    for (size_t i = 0; i < y.size(); i++) {
      sum += y[i];
      weighted_sum += static_cast<double>(i + 1) * y[i];
    }
    EXPECT_NEAR(sum, p.sum, 1e-7);
    EXPECT_NEAR(weighted_sum, p.weighted_sum, 1e-8);
  }
}

template <class T>
std::vector<float> decode_values(DType type, const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return decode(type, bytes);
}

TEST(Decode, KeepsF32BitsAndRoundsWiderTypesToNearest) {
  const float nan = std::bit_cast<float>(0x7FC12345u);
  const std::vector<float> f32 = decode_values<float>(DType::f32, {1.5f, -0.0f, nan, 1e-42f});
  EXPECT_EQ(std::bit_cast<uint32_t>(f32[1]), 0x80000000u);
  EXPECT_EQ(std::bit_cast<uint32_t>(f32[2]), 0x7FC12345u);
  EXPECT_EQ(f32[3], 1e-42f);
  EXPECT_EQ(decode_values<double>(DType::f64, {0.1, -1e300, 0x1.000001p0}),
            (std::vector<float>{0.1f, -std::numeric_limits<float>::infinity(), 1.0f}));
}

TEST(Decode, ReadsIntegersOfEveryWidthWithTheirSign) {
  EXPECT_EQ(decode_values<int8_t>(DType::i8, {-128, 127, 0}), (std::vector<float>{-128, 127, 0}));
  EXPECT_EQ(decode_values<int16_t>(DType::i16, {-32768, 255}), (std::vector<float>{-32768, 255}));
  EXPECT_EQ(decode_values<int32_t>(DType::i32, {-5, 16777217}), (std::vector<float>{-5, 16777216}));
  EXPECT_EQ(decode_values<int64_t>(DType::i64, {-(int64_t{1} << 40), 3}), (std::vector<float>{-0x1p40f, 3}));
}

/// Rows of [scale][128 codes] made of codes that lie apart from their scales.
std::vector<uint8_t> fp8_blocks(const std::string& codes, float scale) {
  std::vector<uint8_t> blocks;
  for (size_t at = 0; at < codes.size(); at += 128) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&scale);
    blocks.insert(blocks.end(), bytes, bytes + sizeof scale);
    blocks.insert(blocks.end(), codes.begin() + static_cast<ptrdiff_t>(at),
                  codes.begin() + static_cast<ptrdiff_t>(at + 128));
  }
  return blocks;
}

TEST(Decode, GivesEveryFp8CodeTheValueOfAnotherImplementation) {
  const std::string codes = golden_bytes("fp8/model", "every_code.weight");
  const std::vector<float> values = floats_of(golden_bytes("fp8/values", "every_code.weight"));
  ASSERT_EQ(codes.size(), 256u);
  ASSERT_EQ(values.size(), 256u);
  const std::vector<float> plain = decode(DType::f8_e4m3_b128, fp8_blocks(codes, 1.0f));
  const std::vector<float> scaled = decode(DType::f8_e4m3_b128, fp8_blocks(codes, 0.0123f));
  int nans = 0;
  for (size_t i = 0; i < values.size(); i++) {
    if (std::isnan(values[i])) {
      nans++;
      EXPECT_TRUE(std::isnan(plain[i]) && std::isnan(scaled[i])) << i;
    } else {
      EXPECT_EQ(std::bit_cast<uint32_t>(plain[i]), std::bit_cast<uint32_t>(values[i])) << "code " << i;
      EXPECT_EQ(scaled[i], values[i] * 0.0123f) << "code " << i;
    }
  }
  EXPECT_EQ(nans, 2);
}

TEST(Decode, GivesTheFp8CheckValuesOfTheFormatsDescription) {
  std::string codes(128, '\0');
  const uint8_t first[5] = {0x01, 0x08, 0x38, 0x7E, 0xC0};
  std::memcpy(codes.data(), first, sizeof first);
  const std::vector<float> y = decode(DType::f8_e4m3_b128, fp8_blocks(codes, 1.0f));
  EXPECT_EQ(std::vector<float>(y.begin(), y.begin() + 6),
            (std::vector<float>{0.001953125f, 0.015625f, 1, 448, -2, 0}));
}

TEST(Decode, WritesNothingForAnEmptyRow) {
  for (int id = 0; id < kDTypeCount; id++) {
    if (const auto type = dtype_at(id)) {
      float out = 7.5f;
      decode_row(*type, nullptr, 0, &out);
      EXPECT_EQ(out, 7.5f) << dtype_info(*type).name;
    }
  }
}

}  // namespace
}  // namespace liuli::kernels
