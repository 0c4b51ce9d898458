// Files that contradict the format or themselves, each broken in one place, with the message a user gets.
#include <gtest/gtest.h>

#include "formats/gguf.h"
#include "formats/gguf_test_bytes.h"
#include "liuli/error.h"

namespace liuli {
namespace {

using namespace testing_gguf;

/// "code: message" of opening these bytes.
std::string refusal(const std::string& bytes) {
  try {
    open_gguf_bytes("m.gguf", bytes_of(bytes));
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << "one line: " << e.what();
    EXPECT_EQ(std::string(e.what()).rfind("m.gguf: ", 0), 0u) << "names the path: " << e.what();
    return std::string(to_string(e.code())) + ": " + e.what();
  }
  return "accepted";
}
std::string refusal(const Builder& builder) { return refusal(builder.build()); }

/// Refused as `kind`, with all these words in the message.
template <class File>
void expect_refused(const File& file, const std::string& kind, const std::vector<std::string>& words) {
  const std::string message = refusal(file);
  EXPECT_EQ(message.rfind(kind + ": ", 0), 0u) << message;
  for (const std::string& word : words) EXPECT_NE(message.find(word), std::string::npos) << message;
}

/// One F32 tensor "w" with these dimensions, type and offset, and 64 bytes of data.
Builder one_tensor(const std::vector<uint64_t>& dims, uint32_t type = 0, uint64_t offset = 0) {
  Builder builder;
  builder.info("w", dims, type, offset);
  builder.data = std::string(64, '\0');
  return builder;
}

TEST(GgufBadFile, IsRefusedWhenShorterThanAHeader) {
  expect_refused(std::string(), "corrupt_file", {"0 bytes", "24"});
  expect_refused(Builder().build().substr(0, 23), "corrupt_file", {"23 bytes", "24"});
}

TEST(GgufBadFile, IsRefusedForAnotherMagic) {
  Builder builder;
  builder.magic = "GGML";
  expect_refused(builder, "corrupt_file", {"not a GGUF file", "\"GGML\""});
}

TEST(GgufBadFile, IsUnsupportedForVersionsNotReadAndBigEndian) {
  Builder builder;
  builder.version = 1;
  expect_refused(builder, "unsupported", {"version is 1", "obsolete"});
  builder.version = 4;
  expect_refused(builder, "unsupported", {"version is 4", "2 and 3"});
  builder.version = 0;
  expect_refused(builder, "unsupported", {"version is 0"});
  builder.version = 0x03000000;
  expect_refused(builder, "unsupported", {"big-endian", "0x03000000"});
}

TEST(GgufBadFile, IsRefusedForCountsTheFileCannotHold) {
  Builder builder;
  builder.kv_count = uint64_t{1} << 63;
  expect_refused(builder, "corrupt_file", {"kv_count is 9223372036854775808", "0 bytes are left"});
  builder = Builder();
  builder.tensor_count = UINT64_MAX;
  expect_refused(builder, "corrupt_file", {"tensor_count is 18446744073709551615"});
}

TEST(GgufBadFile, IsRefusedForStringsLongerThanWhatIsLeft) {
  Builder builder;
  builder.keys.put<uint64_t>(UINT64_MAX).raw(std::string(64, 'k'));
  builder.kv_count = 1;
  expect_refused(builder, "corrupt_file", {"key is 18446744073709551615 bytes", "65535"});
  builder = Builder().key("k", kString, Bytes().put<uint64_t>(5).raw("four"));
  expect_refused(builder, "corrupt_file", {"\"k\"", "needs 5 bytes, 4 are left"});
  builder = Builder().key("k", kString, Bytes().put<uint64_t>(UINT64_MAX).raw("four"));
  expect_refused(builder, "corrupt_file", {"\"k\"", "18446744073709551615 bytes long"});
}

TEST(GgufBadFile, IsRefusedForArraysLongerThanWhatIsLeft) {
  Builder builder;
  builder.array("k", kU64, uint64_t{1} << 61, Bytes().put<uint64_t>(0));
  expect_refused(builder, "corrupt_file", {"\"k\"", "2305843009213693952 elements", "1073741824"});
  builder = Builder().array("k", kU64, 1 << 29, Bytes().put<uint64_t>(0));
  expect_refused(builder, "corrupt_file", {"\"k\"", "536870912 × 8 bytes, 8 are left"});
  builder = Builder().array("k", kString, 1 << 29, Bytes().string("a"));
  expect_refused(builder, "corrupt_file", {"\"k\"", "536870912 strings", "9 are left"});
  builder = Builder().array("k", kString, 2, Bytes().string("12345678"));
  expect_refused(builder, "corrupt_file", {"\"k\"", "a string length needs 8 bytes, 0 are left"});
}

TEST(GgufBadFile, IsRefusedForUnknownAndNestedTypesAndOtherBools) {
  expect_refused(Builder().key("k", 13, Bytes().put<uint64_t>(0)), "corrupt_file",
                 {"\"k\"", "value type is 13"});
  Builder builder;
  builder.array("k", kArray, 1, Bytes().put(kU8).put<uint64_t>(1).put<uint8_t>(1));
  expect_refused(builder, "corrupt_file", {"\"k\"", "array of arrays"});
  expect_refused(Builder().array("k", 99, 1, Bytes().put<uint64_t>(1)), "corrupt_file",
                 {"element type is 99"});
  expect_refused(Builder().key("k", kBool, Bytes().put<uint8_t>(2)), "corrupt_file",
                 {"\"k\"", "stored as 2"});
  expect_refused(Builder().array("k", kBool, 2, Bytes().raw("\1\7")), "corrupt_file",
                 {"\"k\"", "stored as 7"});
}

TEST(GgufBadFile, IsRefusedForEmptyDuplicateAndBinaryKeys) {
  expect_refused(Builder().u32("", 1), "corrupt_file", {"0 bytes"});
  expect_refused(Builder().u32("a", 1).u32("b", 1).u32("a", 2), "corrupt_file",
                 {"\"a\" appears twice", "0 and 2"});
  expect_refused(Builder().u32(std::string("a\0b", 3), 1), "corrupt_file", {"\"a\\x00b\"", "NUL"});
}

TEST(GgufBadFile, IsRefusedForAlignmentsThatAreNoPowerOfTwoInRange) {
  for (const uint32_t value : {0u, 3u, 4u, 24u, 1u << 21, 1u << 31}) {
    expect_refused(Builder().u32("general.alignment", value), "corrupt_file",
                   {("is " + std::to_string(value) + ","), "power of two"});
  }
  expect_refused(Builder().key("general.alignment", kU64, Bytes().put<uint64_t>(32)), "corrupt_file",
                 {"should be u32, the file stores u64"});
}

TEST(GgufBadFile, IsRefusedForShapesThatCannotBe) {
  expect_refused(one_tensor({1, 1, 1, 1, 1}), "corrupt_file", {"\"w\"", "n_dims is 5"});
  expect_refused(one_tensor({}), "corrupt_file", {"n_dims is 0"});
  Builder builder;
  builder.infos.string("w").put(UINT32_MAX).raw(std::string(64, '\1'));
  builder.tensor_count = 1;
  expect_refused(builder, "corrupt_file", {"n_dims is 4294967295"});
  expect_refused(one_tensor({0}), "corrupt_file", {"dimension 0 is 0"});
  expect_refused(one_tensor({1, uint64_t{1} << 63}), "corrupt_file", {"dimension 1 is 9223372036854775808"});
  expect_refused(one_tensor({uint64_t{1} << 32, uint64_t{1} << 32}), "corrupt_file",
                 {"number of elements exceeds"});
  expect_refused(one_tensor({uint64_t{1} << 62}), "corrupt_file", {"needs more than"});
}

TEST(GgufBadFile, IsUnsupportedForUnknownAndWithdrawnElementTypes) {
  for (const uint32_t type : {4u, 5u, 9u, 15u, 31u, 38u, 43u, UINT32_MAX}) {
    expect_refused(one_tensor({32}, type), "unsupported", {"\"w\"", ("type " + std::to_string(type) + " ")});
  }
}

TEST(GgufBadFile, IsRefusedForRowsThatAreNoWholeBlocks) {
  expect_refused(one_tensor({33}, 2), "corrupt_file", {"\"w\"", "33 elements", "Q4_0", "blocks of 32"});
  expect_refused(one_tensor({16, 2}, 2), "corrupt_file",
                 {"16 elements"});  // blocks lie in a row, not in the whole
}

TEST(GgufBadFile, IsRefusedForOffsetsMisalignedOrPastTheEnd) {
  expect_refused(one_tensor({4}, 0, 16), "corrupt_file", {"\"w\"", "offset 16", "alignment 32"});
  expect_refused(one_tensor({9}, 0, 32), "corrupt_file", {"\"w\"", "36 bytes at offset 32", "64 bytes"});
  expect_refused(one_tensor({4}, 0, UINT64_MAX - 31), "corrupt_file", {"offset 18446744073709551584"});
  expect_refused(one_tensor({4}, 0, INT64_MAX - 31), "corrupt_file", {"offset 9223372036854775776"});
  expect_refused(one_tensor({17}), "corrupt_file", {"68 bytes at offset 0", "64 bytes", "cut short"});
}

TEST(GgufBadFile, IsRefusedWhenTheDataSectionIsMissing) {
  Builder builder;
  builder.info("w", {1}, 0, 0);
  expect_refused(builder, "corrupt_file", {"\"w\"", "which has 0 bytes"});
}

TEST(GgufBadFile, IsRefusedForOverlappingTensors) {
  Builder builder;
  builder.info("a", {8}, 0, 32).info("b", {9}, 0, 0);
  builder.data = std::string(64, '\0');
  expect_refused(builder, "corrupt_file", {"\"b\"", "overlaps \"a\""});
}

TEST(GgufBadFile, IsRefusedForTensorNamesEmptyLongTwiceOrBinary) {
  expect_refused(Builder().f32("", 1, 0), "corrupt_file", {"0 bytes"});
  expect_refused(Builder().f32(std::string(64, 'n'), 1, 0), "corrupt_file", {"64 bytes long", "63"});
  EXPECT_EQ(refusal(Builder().f32(std::string(63, 'n'), 1, 0)), "accepted");
  expect_refused(Builder().f32("w", 1, 0).f32("v", 1, 0).f32("w", 1, 0), "corrupt_file",
                 {"\"w\" appears twice"});
  expect_refused(Builder().f32(std::string("w\0", 2), 1, 0), "corrupt_file", {"NUL"});
}

TEST(GgufBadFile, IsRefusedWhereverItIsCut) {
  Builder builder;
  builder.text("general.architecture", "llama").array("tokens", kString, 2, Bytes().string("a").string("bc"));
  builder.f32("v", 3, 1).f32("w", 8, 2);
  const std::string whole = builder.build();
  ASSERT_EQ(refusal(whole), "accepted");
  for (size_t n = 0; n < whole.size(); n++) expect_refused(whole.substr(0, n), "corrupt_file", {"m.gguf"});
}

}  // namespace
}  // namespace liuli
