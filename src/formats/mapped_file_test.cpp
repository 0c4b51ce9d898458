#include "formats/mapped_file.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <vector>

#include "formats/temporary_folder.h"
#include "liuli/error.h"

namespace liuli {
namespace {

void expect_refused(const std::string& path, ErrorCode code, const char* reason) {
  try {
    map_file(path);
    ADD_FAILURE() << path << " was mapped";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_EQ(std::string(e.what()).rfind(path + ": ", 0), 0u) << e.what();
    EXPECT_NE(std::string(e.what()).find(reason), std::string::npos) << e.what();
  }
}

TEST(MappedFile, GivesTheBytesAndOutlivesTheFilesName) {
  const TemporaryFolder folder("map");
  const std::string path = folder.write("a", "hello");
  const FileBytes bytes = map_file(path);
  std::filesystem::remove(path);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data), bytes.size), "hello");
}

TEST(MappedFile, DroppedPagesComeBackAndBuffersAreLeftAlone) {
  const TemporaryFolder folder("map");
  const std::string text(100000, 'q');
  const FileBytes mapped = map_file(folder.write("a", text));
  drop_resident_pages(mapped, mapped.data, mapped.size);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(mapped.data), mapped.size), text);
  std::vector<uint8_t> buffer(100000, 7);
  drop_resident_pages(FileBytes{buffer.data(), buffer.size(), nullptr}, buffer.data(), buffer.size());
  EXPECT_EQ(buffer[50000], 7);
}

TEST(MappedFile, RefusesWhatIsNoFileWithBytes) {
  const TemporaryFolder folder("map");
  expect_refused(folder.file("missing"), ErrorCode::not_found, "No such file");
  expect_refused(folder.write("a", "x") + "/b", ErrorCode::not_found, "Not a directory");
  expect_refused(folder.file(""), ErrorCode::invalid_argument, "is a directory");
  expect_refused(folder.write("empty", ""), ErrorCode::corrupt_file, "0 bytes");
  expect_refused("/dev/null", ErrorCode::invalid_argument, "not a regular file");
}

TEST(MappedFile, RefusesAPipeInsteadOfWaitingForIt) {
  const TemporaryFolder folder("map");
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  expect_refused(folder.file("pipe"), ErrorCode::invalid_argument, "not a regular file");
}

TEST(MappedFile, ReportsWhatTheSystemRefuses) {
  expect_refused(std::string(5000, 'x'), ErrorCode::io_error, "File name too long");
}

}  // namespace
}  // namespace liuli
