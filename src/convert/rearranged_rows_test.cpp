// Rows from stored values, values that the source has to build, and columns, by the definition of each.
#include "convert/rearranged_rows.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "formats/gguf.h"
#include "formats/gguf_writer.h"

namespace liuli {
namespace {

/// Matrices of F32 that are built at every call, as FP8 with its scales is.
class BuildingSource final : public WeightSource {
 public:
  BuildingSource(int parts, int64_t rows, int64_t columns) {
    for (int i = 0; i < parts; i++) {
      TensorInfo info;
      info.name = std::to_string(i);
      info.type = DType::f32;
      info.shape = {rows, columns};
      tensors_.push_back(info);
    }
  }
  /// Part i holds 1000 i, 1000 i + 1, …
  std::shared_ptr<const uint8_t> bytes_of(const TensorInfo& info) const override {
    builds_++;
    auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(info.elements()));
    std::iota(values->begin(), values->end(), 1000 * std::stof(info.name));
    return {values, reinterpret_cast<const uint8_t*>(values->data())};
  }
  int builds() const { return builds_; }
  std::vector<const TensorInfo*> parts() const {
    std::vector<const TensorInfo*> all;
    for (const TensorInfo& info : tensors_) all.push_back(&info);
    return all;
  }

  const std::string& path() const override { return path_; }
  std::string format() const override { return "test"; }
  Naming naming() const override { return Naming::hugging_face; }
  const Metadata& metadata() const override { return keys_->metadata(); }
  std::optional<std::string> companion(std::string_view) const override { return std::nullopt; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const TensorInfo* find(std::string_view) const override { return nullptr; }
  const std::vector<SetAside>& set_aside() const override { return keys_->set_aside(); }
  void give_back(const TensorInfo&) const override {}
  int64_t file_bytes() const override { return 0; }

 private:
  std::string path_ = "test";
  std::shared_ptr<const std::string> bytes_ =
      std::make_shared<const std::string>(GgufWriter::without_tensors("test", {}));
  std::unique_ptr<WeightSource> keys_ =
      open_gguf_bytes("test", {reinterpret_cast<const uint8_t*>(bytes_->data()), bytes_->size(), bytes_});
  std::vector<TensorInfo> tensors_;
  mutable std::atomic<int> builds_{0};
};

std::vector<float> decoded(const RearrangedRows& rows, int64_t first, int64_t n, int64_t columns) {
  std::vector<float> values(static_cast<size_t>(n * columns));
  rows.decode(first, n, values.data());
  return values;
}

TEST(RearrangedRows, ExpertsAreOneBehindTheOtherAndBuiltOnceWhileNeeded) {
  const auto source = std::make_shared<BuildingSource>(5, 3, 2);
  const RearrangedRows rows(source, {source->parts(), {}}, 2);
  EXPECT_EQ(rows.bytes(), nullptr);
  EXPECT_EQ(decoded(rows, 2, 2, 2), (std::vector<float>{4, 5, 1000, 1001}));
  EXPECT_EQ(decoded(rows, 0, 15, 2).back(), 4005);
  EXPECT_EQ(source->builds(), 5);
  rows.give_back();
  decoded(rows, 14, 1, 2);
  EXPECT_EQ(source->builds(), 6) << "nothing is kept after give_back()";
}

TEST(RearrangedRows, RowsAndValuesOfVectorsFollowTheMap) {
  const auto source = std::make_shared<BuildingSource>(1, 3, 2);
  Arrangement backwards{source->parts(), [](int64_t row) { return 2 - row; }};
  EXPECT_EQ(decoded(RearrangedRows(source, backwards, 2), 0, 3, 2), (std::vector<float>{4, 5, 2, 3, 0, 1}));
  TensorInfo vector = *source->parts()[0];
  vector.shape = {3};
  backwards.parts = {&vector};
  backwards.plus_one = true;
  EXPECT_EQ(decoded(RearrangedRows(source, backwards, 3), 0, 1, 3), (std::vector<float>{3, 2, 1}));
}

TEST(RearrangedRows, ColumnsOfEveryBlockBecomeRows) {
  const auto source =
      std::make_shared<BuildingSource>(1, 6, 2);  // two heads of 3 rows, the first 2 of each wanted
  Arrangement a{source->parts(), {}};
  a.block_rows = 2;
  a.block_step = 3;
  const RearrangedRows rows(source, a, 2);
  EXPECT_EQ(decoded(rows, 0, 4, 2), (std::vector<float>{0, 2, 1, 3, 6, 8, 7, 9}));
}

TEST(RearrangedRows, ThreadsGetTheSameRows) {
  const auto source = std::make_shared<BuildingSource>(64, 8, 16);
  const RearrangedRows rows(source, {source->parts(), {}}, 16);
  const std::vector<float> expected = decoded(rows, 0, 512, 16);
  std::vector<float> got(expected.size());
  std::atomic<int64_t> next{0};
  auto work = [&] {
    for (int64_t row = next++; row < 512; row = next++) rows.decode(row, 1, got.data() + row * 16);
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(got, expected);
}

TEST(RearrangedRows, OnlyWhatStaysAsItIsHandsOutItsBytes) {
  const auto source = std::make_shared<BuildingSource>(1, 2, 2);
  const float stored[4] = {1, 2, 3, 4};
  TensorInfo info = *source->parts()[0];
  info.data = reinterpret_cast<const uint8_t*>(stored);
  Arrangement same{{&info}, {}}, moved = same, turned = same, shifted = same;
  moved.stored_row = [](int64_t row) { return 1 - row; };
  turned.block_rows = turned.block_step = 2;
  shifted.plus_one = true;
  EXPECT_EQ(RearrangedRows(source, same, 2).bytes(), info.data);
  for (const Arrangement& other : {moved, turned, shifted})
    EXPECT_EQ(RearrangedRows(source, other, 2).bytes(), nullptr);
}

}  // namespace
}  // namespace liuli
