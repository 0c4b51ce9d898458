// Importance matrices as files: what is written comes back, and what is wrong is named.
#include "convert/imatrix.h"

#include <gtest/gtest.h>

#include <limits>

#include "formats/gguf.h"
#include "formats/gguf_writer.h"
#include "formats/temporary_folder.h"
#include "liuli/error.h"

namespace liuli {
namespace {

void write(const std::string& path, const std::vector<GgufTensorSpec>& specs,
           const std::vector<float>& values) {
  GgufKeys keys;
  keys.text("general.type", "imatrix");
  GgufWriter writer(path, keys, specs);
  writer.append(values.data(), values.size() * sizeof(float));
  writer.finish();
}

std::string refusal(ErrorCode code, const std::string& path) {
  try {
    read_imatrix(path);
  } catch (const Error& e) {
    EXPECT_EQ(to_string(e.code()), std::string(to_string(code))) << e.what();
    return e.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Imatrix, ComesBackAsWritten) {
  const TemporaryFolder folder("imatrix");
  ImportanceMatrix matrix;
  matrix.entries["blk.0.attn_q.weight"] = {{1, 2, 3, 4}, {2}};
  matrix.entries["blk.0.ffn_up_exps.weight"] = {{4, 8, 1, 1}, {4, 0}};
  matrix.datasets = {"a.txt", "b.txt"};
  matrix.chunk_count = 7;
  matrix.chunk_size = 512;
  write_imatrix(folder.file("im.gguf"), matrix);
  const ImportanceMatrix back = read_imatrix(folder.file("im.gguf"));
  EXPECT_EQ(back.datasets, matrix.datasets);
  EXPECT_EQ(back.chunk_count, 7);
  EXPECT_EQ(back.chunk_size, 512);
  ASSERT_EQ(back.entries.size(), 2u);
  for (const auto& [name, entry] : matrix.entries) {
    EXPECT_EQ(back.entries.at(name).sums, entry.sums) << name;
    EXPECT_EQ(back.entries.at(name).counts, entry.counts) << name;
  }
}

TEST(Imatrix, MeansAreByExpertAndOnesWhereNoTokenCame) {
  const ImportanceMatrix::Entry entry{{4, 8, 5, 7}, {4, 0}};
  EXPECT_EQ(entry.means(), (std::vector<float>{1, 2, 1, 1}));
}

TEST(Imatrix, HasTheShapesAndKeysOtherToolsExpect) {
  const TemporaryFolder folder("imatrix-shapes");
  ImportanceMatrix matrix;
  matrix.entries["x.weight"] = {{1, 2, 3, 4, 5, 6}, {2, 3}};
  write_imatrix(folder.file("im.gguf"), matrix);
  const auto file = open_gguf(folder.file("im.gguf"));
  EXPECT_EQ(file->metadata().text("general.type"), "imatrix");
  EXPECT_EQ(file->metadata().type_name("imatrix.chunk_count"), "u32");
  EXPECT_EQ(file->find("x.weight.in_sum2")->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(file->find("x.weight.counts")->shape, (std::vector<int64_t>{2, 1}));
}

TEST(Imatrix, WhatIsWrongIsNamed) {
  const TemporaryFolder folder("imatrix-bad");
  const std::string path = folder.file("im.gguf");
  write(path, {{"a.in_sum2", DType::f32, {1, 2}}}, {1, 2});
  EXPECT_TRUE(contains(refusal(ErrorCode::corrupt_file, path), "a.in_sum2 has no a.counts"));
  write(path, {{"a.in_sum2", DType::f32, {1, 2}}, {"a.counts", DType::f32, {2, 1}}}, {1, 2, 3, 4});
  EXPECT_TRUE(contains(refusal(ErrorCode::corrupt_file, path), "expected one count per row"));
  write(path, {{"a.in_sum2", DType::f32, {1, 2}}, {"a.counts", DType::f32, {1, 1}}}, {1, -2, 3});
  EXPECT_TRUE(contains(refusal(ErrorCode::corrupt_file, path), "a.in_sum2[1] is -2"));
  write(path, {{"a.in_sum2", DType::f32, {1, 1}}, {"a.counts", DType::f32, {1, 1}}},
        {std::numeric_limits<float>::quiet_NaN(), 3});
  EXPECT_TRUE(contains(refusal(ErrorCode::corrupt_file, path), "a.in_sum2[0] is nan"));
  write(path, {{"a", DType::f32, {1, 1}}}, {1});
  EXPECT_TRUE(contains(refusal(ErrorCode::invalid_argument, path), "is no importance matrix"));
  EXPECT_THROW(write_imatrix(path, {}), Error);
}

}  // namespace
}  // namespace liuli
