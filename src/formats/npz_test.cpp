// Archives as NumPy writes and reads them, and broken ones.
#include "formats/npz.h"

#include <gtest/gtest.h>

#include "formats/temporary_folder.h"
#include "liuli/error.h"

namespace liuli {
namespace {

TEST(Npz, ReadsBackWhatWasWrittenInAnyOrder) {
  const TemporaryFolder folder("npz");
  const float values[6] = {1, 2, 3, 4, 5, -0.5f};
  NpzWriter writer(folder.file("a.npz"), {{"first", {2, 3}}, {"blocks.0.z", {4}}, {"scalar", {}}},
                   {{"schema", "1"}});
  writer.write_at(1, 2, values, 2);
  writer.write_at(0, 3, values + 3, 3);
  writer.write_at(0, 0, values, 3);
  EXPECT_THROW(writer.write_at(1, 3, values, 2), Error);
  writer.finish();
  const auto arrays = read_npz(folder.file("a.npz"));
  ASSERT_EQ(arrays.size(), 3u);  // the text array is left out
  EXPECT_EQ(arrays[0].name, "first");
  EXPECT_EQ(arrays[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(arrays[0].values, std::vector<float>(values, values + 6));
  EXPECT_EQ(arrays[1].values, (std::vector<float>{0, 0, 1, 2}));
  EXPECT_TRUE(arrays[2].shape.empty());
  EXPECT_NE(folder.read("a.npz").find("{\"schema\":\"1\"}"), std::string::npos);
}

// The checksum that NumPy verifies on reading: CRC-32 of "123456789" is cbf43926, that of an array is in its header.
TEST(Npz, EveryCutFileIsRefused) {
  const TemporaryFolder folder("npz");
  NpzWriter writer(folder.file("a.npz"), {{"x", {3}}});
  writer.finish();
  const std::string whole = folder.read("a.npz");
  EXPECT_EQ(read_npz(folder.file("a.npz")).size(), 1u);
  for (size_t n = 1; n < whole.size(); n++) {
    folder.write("cut.npz", whole.substr(0, n));
    EXPECT_THROW(read_npz(folder.file("cut.npz")), Error) << n;
  }
}

TEST(Npz, AnyChangedByteIsReadOrRefusedButNeverFollowedOutside) {
  const TemporaryFolder folder("npz");
  NpzWriter writer(folder.file("a.npz"), {{"x", {3}}});
  writer.finish();
  std::string bytes = folder.read("a.npz");
  int refused = 0;
  for (size_t i = 0; i < bytes.size(); i++) {
    const char original = bytes[i];
    bytes[i] = static_cast<char>(original ^ 0x7f);
    folder.write("changed.npz", bytes);
    try {
      read_npz(folder.file("changed.npz"));
    } catch (const Error&) {
      refused++;
    }
    bytes[i] = original;
  }
  EXPECT_GT(refused, 20);
}

TEST(Npz, RefusesTheSameNameTwice) {
  const TemporaryFolder folder("npz");
  EXPECT_THROW(NpzWriter(folder.file("a.npz"), {{"x", {1}}, {"x", {1}}}), Error);
}

TEST(Npy, ReadsWhatItWrites) {
  const TemporaryFolder folder("npz");
  const float values[6] = {1, 2, 3, 4, 5, -0.5f};
  write_npy(folder.file("a.npy"), {3, 2}, values);
  const NpyArray array = read_npy(folder.file("a.npy"));
  EXPECT_EQ(array.shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(array.values, std::vector<float>(values, values + 6));
  const std::string bytes = folder.read("a.npy");
  folder.write("cut.npy", bytes.substr(0, bytes.size() - 1));
  EXPECT_THROW(read_npy(folder.file("cut.npy")), Error);
}

}  // namespace
}  // namespace liuli
