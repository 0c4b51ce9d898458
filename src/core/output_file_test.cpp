#include "core/output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "liuli/error.h"

namespace liuli {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() {
    directory_ = fs::temp_directory_path() / ("liuli-output-" + std::to_string(::getpid()));
    fs::create_directory(directory_);
  }
  ~OutputFileTest() override { fs::remove_all(directory_); }

  std::string path(const char* name) const { return (directory_ / name).string(); }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }
  static std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path directory_;
};

template <class F>
std::string io_error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::io_error);
    return e.what();
  }
  return "no error";
}

TEST_F(OutputFileTest, AppearsUnderItsNameOnlyOnCommit) {
  OutputFile file(path("a"));
  file.write("one ");
  EXPECT_FALSE(fs::exists(path("a")));
  file.write("two");
  file.commit();
  EXPECT_EQ(read(path("a")), "one two");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFileTest, LeavesTheOldFileAndNoTemporaryWithoutCommit) {
  std::ofstream(path("a")) << "old";
  {
    OutputFile file(path("a"));
    file.write(std::string(1 << 20, 'x'));  // more than the buffer: it has reached the disk
    EXPECT_EQ(files(), 2u);
  }
  EXPECT_EQ(read(path("a")), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFileTest, WritesLargeAndSmallPiecesInOrder) {
  std::string expected;
  OutputFile file(path("a"));
  for (size_t n : {1u, 1000u, 300000u, 5u, 262144u, 262143u, 2u, 0u, 7u}) {
    const std::string piece(n, static_cast<char>('a' + expected.size() % 26));
    file.write(piece);
    expected += piece;
  }
  file.commit();
  EXPECT_TRUE(read(path("a")) == expected);
}

TEST_F(OutputFileTest, KeepsTheModeOfTheFileItReplaces) {
  std::ofstream(path("a")) << "old";
  ::chmod(path("a").c_str(), 0640);
  OutputFile file(path("a"));
  file.commit();
  struct stat status {};
  ASSERT_EQ(::stat(path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
  EXPECT_EQ(status.st_size, 0);
}

TEST_F(OutputFileTest, WritesThroughASymbolicLinkToTheFileItPointsTo) {
  std::ofstream(path("real")) << "old";
  fs::create_symlink(path("real"), path("link"));
  OutputFile file(path("link"));
  file.write("new");
  file.commit();
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read(path("real")), "new");
}

TEST_F(OutputFileTest, ReportsAFullDiskByPathAndReason) {
  const std::string message = io_error_of([] {
    OutputFile file("/dev/full");
    file.write("x");
    file.commit();
  });
  EXPECT_EQ(message, "/dev/full: cannot write it: No space left on device");
}

TEST_F(OutputFileTest, WritesDirectlyToADeviceAndToAPipe) {
  OutputFile null("/dev/null");
  null.write("x");
  null.commit();
  EXPECT_TRUE(fs::is_character_file("/dev/null"));

  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  OutputFile pipe("/dev/fd/" + std::to_string(ends[1]));
  pipe.write("through");
  pipe.commit();
  char text[8] = {};
  EXPECT_EQ(::read(ends[0], text, 7), 7);
  EXPECT_STREQ(text, "through");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(OutputFileTest, RefusesADirectoryAMissingFolderAndAFileUsedAsAFolder) {
  EXPECT_NE(io_error_of([&] { OutputFile file(directory_.string()); }).find("Is a directory"),
            std::string::npos);
  EXPECT_NE(io_error_of([&] { OutputFile file(path("none/a")); }).find("No such file"), std::string::npos);
  std::ofstream(path("plain")) << "x";
  const std::string message = io_error_of([&] { OutputFile file(path("plain/a")); });
  EXPECT_NE(message.find("plain/a"), std::string::npos);
  EXPECT_NE(message.find("Not a directory"), std::string::npos);
}

TEST_F(OutputFileTest, LeavesNothingBehindWhenTheRenameFails) {
  OutputFile file(path("a"));
  file.write("x");
  fs::create_directory(path("a"));  // a directory took the name meanwhile
  EXPECT_NE(io_error_of([&] { file.commit(); }).find("rename"), std::string::npos);
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace liuli
