#include "formats/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "formats/temporary_folder.h"
#include "liuli/error.h"

namespace liuli {
namespace {

TEST(Npy, WritesHeaderAndValuesAsVersionOneSays) {
  const TemporaryFolder folder("npy");
  const float values[6] = {1, 2, 3, 4, 5, -0.5f};
  write_npy(folder.file("a.npy"), {2, 3}, values);
  const std::string bytes = folder.read("a.npy");
  ASSERT_EQ(bytes.size(), 128 + sizeof values);
  EXPECT_EQ(bytes.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(bytes.substr(10, 59), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
  EXPECT_EQ(bytes[127], '\n');
  EXPECT_EQ(std::memcmp(bytes.data() + 128, values, sizeof values), 0);
}

TEST(Npy, WritesTuplesOfOneAndOfNone) {
  const TemporaryFolder folder("npy");
  const float value = 1;
  write_npy(folder.file("a.npy"), {1}, &value);
  EXPECT_NE(folder.read("a.npy").find("'shape': (1, ), }"), std::string::npos);
  write_npy(folder.file("b.npy"), {}, &value);
  EXPECT_NE(folder.read("b.npy").find("'shape': (), }"), std::string::npos);
  EXPECT_EQ(folder.read("b.npy").size() % 64, 4u);
}

TEST(Npy, ReportsAFullDisk) {
  const std::vector<float> values(10);
  EXPECT_THROW(write_npy("/dev/full", {10}, values.data()), Error);
}

}  // namespace
}  // namespace liuli
