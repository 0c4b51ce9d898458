#include <gtest/gtest.h>

#include "formats/gguf.h"
#include "formats/gguf_test_bytes.h"
#include "formats/temporary_folder.h"
#include "liuli/error.h"

namespace liuli {
namespace {

using namespace testing_gguf;

class SplitGguf : public testing::Test {
 protected:
  static Builder part(int no, int count, int total) {
    Builder builder;
    builder.key("split.no", kU16, Bytes().put(static_cast<uint16_t>(no)));
    builder.key("split.count", kU16, Bytes().put(static_cast<uint16_t>(count)));
    builder.key("split.tensors.count", kI32, Bytes().put(static_cast<int32_t>(total)));
    return builder;
  }
  static std::string name(int number, int count) {
    return fmt::format("m-{:05d}-of-{:05d}.gguf", number, count);
  }
  /// A good model of three parts and three tensors: none in the first, one, two.
  void write_model() {
    first_ = folder_.write(name(1, 3), part(0, 3, 3).text("general.architecture", "llama").build());
    folder_.write(name(2, 3), part(1, 3, 3).f32("a", 4, 10).build());
    folder_.write(name(3, 3), part(2, 3, 3).f32("b", 4, 20).f32("c", 4, 30).build());
  }
  static std::string refusal(const std::string& path) {
    try {
      open_weights(path);
    } catch (const Error& e) {
      return std::string(to_string(e.code())) + ": " + e.what();
    }
    return "accepted";
  }
  static void expect_parts(const std::string& message, std::initializer_list<const char*> parts) {
    for (const char* text : parts) EXPECT_NE(message.find(text), std::string::npos) << message;
  }

  TemporaryFolder folder_{"split"};
  std::string first_;
};

TEST_F(SplitGguf, JoinsTensorsOfAllPartsUnderTheMetadataOfTheFirst) {
  write_model();
  const auto source = open_weights(first_);
  EXPECT_EQ(source->path(), first_);
  ASSERT_EQ(source->tensors().size(), 3u);
  EXPECT_EQ(source->tensors()[0].name, "a");
  float c = 0;
  std::memcpy(&c, source->find("c")->data, sizeof c);
  EXPECT_EQ(c, 30.0f);
  EXPECT_EQ(source->metadata().text("general.architecture"), "llama");
  const size_t bytes =
      folder_.read(name(1, 3)).size() + folder_.read(name(2, 3)).size() + folder_.read(name(3, 3)).size();
  EXPECT_EQ(source->file_bytes(), static_cast<int64_t>(bytes));
}

TEST_F(SplitGguf, TakesACountOfZeroOrOneAsNotSplit) {
  EXPECT_EQ(refusal(folder_.write("joined.gguf", part(0, 0, 1).f32("a", 4, 0).build())), "accepted");
  EXPECT_EQ(refusal(folder_.write("single.gguf", part(0, 1, 1).f32("a", 4, 0).build())), "accepted");
}

TEST_F(SplitGguf, WantsTheFirstPart) {
  write_model();
  expect_parts(refusal(folder_.file(name(2, 3))),
               {"invalid_argument", "part 2 of 3", "open the first one", "m-00001-of-00003.gguf"});
}

TEST_F(SplitGguf, WantsANameThatLeadsToTheOthers) {
  expect_parts(refusal(folder_.write("model.gguf", part(0, 3, 3).build())),
               {"invalid_argument", "model.gguf", "NAME-00001-of-00003.gguf"});
  expect_parts(refusal(folder_.write("m-0000x-of-00003.gguf", part(0, 3, 3).build())), {"invalid_argument"});
}

TEST_F(SplitGguf, NamesAMissingPart) {
  write_model();
  std::filesystem::remove(folder_.file(name(3, 3)));
  expect_parts(refusal(first_), {"not_found", "m-00003-of-00003.gguf"});
}

TEST_F(SplitGguf, RefusesPartsThatContradictTheirNamesOrTheFirstPart) {
  write_model();
  folder_.write(name(2, 3), part(2, 3, 3).f32("a", 4, 10).build());
  expect_parts(refusal(first_), {"corrupt_file", "m-00002-of-00003.gguf", "\"split.no\" is 2", "says 1"});
  folder_.write(name(2, 3), part(1, 4, 3).f32("a", 4, 10).build());
  expect_parts(refusal(first_), {"corrupt_file", "\"split.count\" is 4", "says 3"});
  folder_.write(name(2, 3), Builder().f32("a", 4, 10).build());
  expect_parts(refusal(first_), {"corrupt_file", "\"split.no\" is missing"});
  expect_parts(refusal(folder_.write(name(1, 5), part(0, 3, 3).build())),
               {"corrupt_file", "\"split.count\" is 3", "says 5"});
}

TEST_F(SplitGguf, RefusesAWrongTotalAndATensorInTwoParts) {
  write_model();
  folder_.write(name(2, 3), part(1, 3, 3).f32("c", 4, 10).build());
  expect_parts(refusal(first_), {"corrupt_file", "\"c\" appears twice"});
  folder_.write(name(2, 3), part(1, 3, 3).f32("a", 4, 10).f32("d", 4, 10).build());
  expect_parts(refusal(first_), {"corrupt_file", "\"split.tensors.count\" is 3", "hold 4 tensors"});
}

TEST_F(SplitGguf, RefusesANegativeOrHugeCount) {
  Builder builder;
  builder.key("split.count", kI32, Bytes().put<int32_t>(-1));
  expect_parts(refusal(folder_.write("n.gguf", builder.build())), {"corrupt_file", "is -1"});
  builder = Builder();
  builder.u32("split.count", 70000);
  expect_parts(refusal(folder_.write("h.gguf", builder.build())), {"corrupt_file", "is 70000", "65535"});
}

}  // namespace
}  // namespace liuli
