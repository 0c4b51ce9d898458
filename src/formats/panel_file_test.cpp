#include "formats/panel_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "formats/temporary_folder.h"
#include "liuli/error.h"

namespace liuli {
namespace {

PanelFileHeader two_matrices() {
  return {"9.8.7",
          {{"somewhere/model.gguf", 12345, 1'700'000'000'123'456'789}},
          {{"first", DType::q4_k, 16, 256, 2240}, {"second", DType::f32, 3, 5, 4096}}};
}

std::vector<uint8_t> numbers(size_t n, int step) {
  std::vector<uint8_t> bytes(n);
  for (size_t i = 0; i < n; i++) bytes[i] = static_cast<uint8_t>(static_cast<int>(i) * step);
  return bytes;
}

std::string write_two(const TemporaryFolder& folder) {
  PanelFileWriter writer(folder.file("a.panels"), two_matrices());
  const auto first = numbers(2240, 3), second = numbers(4096, 7);
  writer.append(first.data(), 100);
  writer.append(first.data() + 100, 2140);
  writer.append(second.data(), 4096);
  writer.finish();
  return folder.file("a.panels");
}

/// The file's bytes with a change, read as a file.
void expect_refused(std::string bytes, const std::function<void(std::string&)>& change, ErrorCode code,
                    const char* reason) {
  change(bytes);
  try {
    const PanelFile file("x",
                         FileBytes{reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), nullptr});
    ADD_FAILURE() << "was read, expected: " << reason;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_NE(std::string(e.what()).find(reason), std::string::npos) << e.what();
  }
}

/// Exchanges two texts of one length, so that the header's length stays right.
std::function<void(std::string&)> exchange(const std::string& from, const std::string& to) {
  return [=](std::string& bytes) {
    const size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    ASSERT_EQ(from.size(), to.size());
    bytes.replace(at, from.size(), to);
  };
}

TEST(PanelFile, GivesBackWhatWasWritten) {
  const TemporaryFolder folder("panels");
  const PanelFile file(write_two(folder));
  const PanelFileHeader& header = file.header();
  EXPECT_EQ(header.liuli, "9.8.7");
  ASSERT_EQ(header.files.size(), 1u);
  EXPECT_EQ(header.files[0].path, "model.gguf");
  EXPECT_EQ(header.files[0].bytes, 12345);
  EXPECT_EQ(header.files[0].modified_ns, 1'700'000'000'123'456'789);
  ASSERT_EQ(header.matrices.size(), 2u);
  const PackedMatrix &first = header.matrices[0], &second = header.matrices[1];
  EXPECT_EQ(first.name, "first");
  EXPECT_EQ(first.type, DType::q4_k);
  EXPECT_EQ(second.d_out, 3);
  EXPECT_EQ(second.d_in, 5);
  EXPECT_EQ(first.offset, 2 << 20);
  EXPECT_EQ(second.offset, (2 << 20) + 2240);
  EXPECT_EQ(file.file_bytes(), (2 << 20) + 2240 + 4096);
  EXPECT_TRUE(file.populate(file.data_begin(), file.file_bytes() - file.data_begin()));
  EXPECT_EQ(std::memcmp(file.panels(first).get(), numbers(2240, 3).data(), 2240), 0);
  EXPECT_EQ(std::memcmp(file.panels(second).get(), numbers(4096, 7).data(), 4096), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file.panels(second).get()) % 64, 0u);
}

TEST(PanelFile, PanelsOutliveTheFileObject) {
  const TemporaryFolder folder("panels");
  std::shared_ptr<const uint8_t> panels;
  {
    const PanelFile file(write_two(folder));
    panels = file.panels(file.header().matrices[0]);
  }
  EXPECT_EQ(std::memcmp(panels.get(), numbers(2240, 3).data(), 2240), 0);
}

TEST(PanelFile, AppearsWholeOrNotAtAll) {
  const TemporaryFolder folder("panels");
  {
    PanelFileWriter writer(folder.file("b.panels"), two_matrices());
    writer.append(numbers(2240, 3).data(), 2240);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("")));
}

TEST(PanelFile, RefusesWhatContradictsItself) {
  const TemporaryFolder folder("panels");
  write_two(folder);
  const std::string good = folder.read("a.panels");
  const auto corrupt = ErrorCode::corrupt_file;
  expect_refused(
      good, [](auto& b) { b.resize(5); }, corrupt, "needs 8 bytes, 5 are left");
  expect_refused(
      good, [](auto& b) { b[0] = 'M'; }, corrupt, "is no panel file");
  expect_refused(
      good, [](auto& b) { b[8] = 2; }, ErrorCode::unsupported, "of version 2, this Liuli reads 1");
  expect_refused(
      good, [](auto& b) { b[15] = 5; }, corrupt, "the limit is");
  expect_refused(
      good, [](auto& b) { b.resize(60); }, corrupt, "the header needs");
  expect_refused(
      good, [](auto& b) { b[12] = static_cast<char>(b[12] - 1); }, corrupt, "are not JSON");
  expect_refused(
      good, [](auto& b) { b.pop_back(); }, corrupt, "it was cut off");
  expect_refused(
      good, [](auto& b) { b.resize(1 << 20); }, corrupt, "it was cut off");
  expect_refused(
      good, [](auto& b) { b.push_back('x'); }, corrupt, "the matrices end at byte");
  expect_refused(good, exchange("\"bytes\":2240", "\"bytes\":2241"), corrupt, "a multiple of 64");
  expect_refused(good, exchange("\"bytes\":2240", "\"bytes\":-640"), corrupt, "a multiple of 64");
  expect_refused(good, exchange("\"bytes\":2240", "\"bytes\":9920"), corrupt, "it was cut off");
  expect_refused(good, exchange("\"bytes\":2240", "\"bytes\":1e99"), corrupt, "no whole number");
  expect_refused(good, exchange("\"bytes\":12345", "\"bytes\":\"345\""), corrupt, "no whole number");
  expect_refused(good, exchange("Q4_K", "Q4_X"), corrupt, "type \"Q4_X\" is not known");
  expect_refused(good, exchange("\"shape\":[3,5]", "\"shape\":[355]"), corrupt, "has 1 numbers");
  expect_refused(good, exchange("\"files\":", "\"filed\":"), corrupt, "\"files\" is missing");
  expect_refused(good, exchange("\"liuli\":\"9.8.7\"", "\"liuli\":[9.8,7]"), corrupt, "\"liuli\" is no text");
}

TEST(PanelFile, SaysEarlyWhenTheDiskHasNoRoom) {
  const TemporaryFolder folder("panels");
  PanelFileHeader huge = two_matrices();
  huge.matrices[1].bytes = int64_t{1} << 61;
  try {
    const PanelFileWriter writer(folder.file("c.panels"), huge);
    ADD_FAILURE() << "there is no such disk";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::io_error);
    EXPECT_NE(std::string(e.what()).find("the disk has room for"), std::string::npos) << e.what();
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("")));
}

}  // namespace
}  // namespace liuli
