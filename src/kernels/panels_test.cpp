#include "kernels/panels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "kernels/panel_samples.h"

namespace liuli::kernels {
namespace {

std::vector<uint8_t> random_bytes(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(n);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

// Column counts around the padding to 64 and the chunk of 256.
std::vector<int64_t> columns_of(DType type) {
  const int64_t block = dtype_info(type).block;
  if (block == 1) return {1, 2, 18, 31, 63, 64, 65, 256, 257};
  if (block == 256) return {256, 512, 1280};
  if (block == 128) return {128, 256, 384, 896};
  return {block, 3 * block, 256, 256 + block, 576};
}

TEST(Panels, GiveBackEveryRowOfRandomBytes) {
  for (const DType type : all_types()) {
    for (const int64_t k : columns_of(type)) {
      const size_t row = static_cast<size_t>(row_bytes(type, k));
      const auto rows = random_bytes(16 * row, 7);
      AlignedBytes panel(panel_layout(type).bytes(k));
      pack_panel(type, rows.data(), 16, k, panel.data());
      std::vector<uint8_t> back(row);
      for (int lane = 0; lane < 16; lane++) {
        panel_layout(type).unpack_row(panel.data(), back.data(), lane, k);
        ASSERT_TRUE(std::equal(back.begin(), back.end(), rows.begin() + lane * static_cast<ptrdiff_t>(row)))
            << dtype_info(type).name << " k " << k << " lane " << lane;
      }
    }
  }
}

// A gap between a panel's lines, or between panels, costs more than the bytes in it: memory's prefetchers start anew.
TEST(Panels, HaveNoGap) {
  for (const DType type : all_types()) {
    if (panel_layout(type).name != std::string_view("granules")) continue;
    EXPECT_EQ(static_cast<int64_t>(panel_layout(type).bytes(512)), 16 * row_bytes(type, 512))
        << dtype_info(type).name;
    for (const int64_t k :
         columns_of(type)) {  // ragged rows: less than two lines, or padded to 64 plain columns
      const int64_t padded = dtype_info(type).block == 1 ? (k + 63) / 64 * 64 : k;
      EXPECT_LT(static_cast<int64_t>(panel_layout(type).bytes(k)) - 16 * row_bytes(type, padded), 128)
          << dtype_info(type).name << " k " << k;
    }
  }
}

TEST(Panels, OfSixteenRowsPackedAtOnceAreThoseOfOneRowAfterAnother) {
  for (const DType type : all_types()) {
    for (const int64_t k : columns_of(type)) {
      const size_t bytes = panel_layout(type).bytes(k), row = static_cast<size_t>(row_bytes(type, k));
      const auto rows = random_bytes(16 * row, 10);
      AlignedBytes expected(bytes), panel(bytes);
      pack_panel(type, rows.data(), 16, k, expected.data());
      std::memset(panel.data(), 0, bytes);
      const uint8_t* at[16];
      for (size_t lane = 0; lane < 16; lane++) at[lane] = rows.data() + lane * row;
      pack_rows(type, at, panel.data(), k);
      ASSERT_EQ(std::memcmp(panel.data(), expected.data(), bytes), 0) << dtype_info(type).name << " k " << k;
    }
  }
}

TEST(Panels, GiveBackChunksThatTogetherAreTheRow) {
  for (const DType type : all_types()) {
    for (const int64_t k : columns_of(type)) {
      const auto rows = random_bytes(static_cast<size_t>(16 * row_bytes(type, k)), 8);
      AlignedBytes panel(panel_layout(type).bytes(k));
      pack_panel(type, rows.data(), 16, k, panel.data());
      std::vector<uint8_t> row;
      for (int64_t chunk = 0; chunk * kChunk < k; chunk++) {
        std::vector<uint8_t> blocks(kMaxChunkBytes);
        unpack_chunk(type, panel.data(), k, chunk, 11, blocks.data());
        blocks.resize(static_cast<size_t>(row_bytes(type, std::min<int64_t>(kChunk, k - chunk * kChunk))));
        row.insert(row.end(), blocks.begin(), blocks.end());
      }
      ASSERT_TRUE(std::equal(row.begin(), row.end(), rows.begin() + 11 * row_bytes(type, k)))
          << dtype_info(type).name << " k " << k;
    }
  }
}

TEST(Panels, AreMultiplesOf64BytesAndGrowOnlyByPadding) {
  for (const DType type : all_types()) {
    for (const int64_t k : columns_of(type)) {
      const size_t bytes = panel_layout(type).bytes(k), file = static_cast<size_t>(16 * row_bytes(type, k));
      EXPECT_EQ(bytes % 64, 0u) << dtype_info(type).name;
      EXPECT_GE(bytes, file) << dtype_info(type).name;
      if (k % kPanelK == 0) {
        EXPECT_LT(bytes, file + 64) << dtype_info(type).name << " k " << k;
      }
    }
  }
}

TEST(Panels, AreWrittenInsideTheirBytesOnly) {
  for (const DType type : all_types()) {
    const int64_t k = dtype_info(type).block == 1 ? 65 : 256;
    const size_t bytes = panel_layout(type).bytes(k);
    AlignedBytes panel(bytes + 64);
    const auto rows = random_bytes(static_cast<size_t>(16 * row_bytes(type, k)), 9);
    std::memset(panel.data() + bytes, 0xa5, 64);
    pack_panel(type, rows.data(), 16, k, panel.data());
    EXPECT_TRUE(std::all_of(panel.data() + bytes, panel.data() + bytes + 64, [](uint8_t b) {
      return b == 0xa5;
    })) << dtype_info(type).name;
  }
}

TEST(Panels, LayLanesSideBySideAsThePublishedTableSays) {
  // Q4_K: granule 0 of qs of lane 3 is at line 4 (after d, dmin and three lines of scales), byte 4 · 3.
  std::vector<uint8_t> row(144);
  row[16] = 0x12;
  row[17] = 0x34;
  row[0] = 0x56;
  std::vector<uint8_t> panel(panel_layout(DType::q4_k).bytes(256));
  panel_layout(DType::q4_k).pack_row(row.data(), panel.data(), 3, 256);
  EXPECT_EQ(panel[4 * 64 + 12], 0x12);
  EXPECT_EQ(panel[4 * 64 + 13], 0x34);
  EXPECT_EQ(panel[6], 0x56);
  EXPECT_STREQ(panel_layout(DType::q4_k).name, "granules");
  EXPECT_STREQ(panel_layout(DType::f64).name, "rows");
}

TEST(Panels, PutTheFifthBitsOfQ5WhereOneShiftReadsThem) {
  std::vector<uint8_t> row(22);
  row[2 + 13 / 8] = 1 << 13 % 8;  // column 13 = 4 · 3 + 1: bit 3 of byte 1
  std::vector<uint8_t> panel(panel_layout(DType::q5_0).bytes(32));
  panel_layout(DType::q5_0).pack_row(row.data(), panel.data(), 0, 32);
  EXPECT_EQ(panel[64 + 1], 1 << 3);
}

TEST(Panels, ActivationPlacesPutEvenColumnsOfAFourFirst) {
  const int expected[8] = {0, 2, 1, 3, 4, 6, 5, 7};
  for (int i = 0; i < 8; i++) EXPECT_EQ(activation_place(i), expected[i]);
}

}  // namespace
}  // namespace liuli::kernels
