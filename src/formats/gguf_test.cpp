// What a good file gives, and what its getters refuse.
#include "formats/gguf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "formats/gguf_test_bytes.h"
#include "liuli/error.h"

namespace liuli {
namespace {

using namespace testing_gguf;

std::unique_ptr<WeightSource> open(const Builder& builder) {
  return open_gguf_bytes("m.gguf", bytes_of(builder.build()));
}

std::string golden(const char* name) {
  return std::string(LIULI_SOURCE_DIR) + "/tests/golden/tiny/llama/gguf/" + name;
}

template <class F>
std::string corrupt_message(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::corrupt_file) << e.what();
    return e.what();
  }
  return "no error";
}

TEST(Gguf, GivesShapesInPytorchOrderAndBytesOfARealFile) {
  const auto source = open_weights(golden("llama.F32.gguf"));
  EXPECT_EQ(source->format(), "GGUF v3");
  EXPECT_EQ(source->file_bytes(), 768096);
  EXPECT_EQ(source->metadata().text("general.architecture"), "llama");
  const TensorInfo* embedding = source->find("token_embd.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->type, DType::f32);
  EXPECT_EQ(embedding->shape.size(), 2u);
  EXPECT_EQ(embedding->shape[0], 347) << "vocabulary rows come first";
  EXPECT_EQ(embedding->bytes, 4 * embedding->elements());
  EXPECT_EQ(source->find("token_embd.weigh"), nullptr);
}

TEST(Gguf, ReadsAQuantisedFileWithTheBytesOfItsBlocks) {
  const auto source = open_weights(golden("llama.Q4_0.gguf"));
  const TensorInfo* q = source->find("blk.0.attn_q.weight");
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(q->type, DType::q4_0);
  EXPECT_EQ(q->bytes, q->elements() / 32 * 18);
  int64_t end = 0;
  for (const TensorInfo& t : source->tensors()) {
    EXPECT_EQ(t.file_offset % 32, 0) << t.name;
    EXPECT_GE(t.file_offset, end) << t.name;
    end = t.file_offset + t.bytes;
  }
  EXPECT_LE(end, source->file_bytes());
}

TEST(Gguf, ReadsTheTokenizersArraysOfARealFile) {
  const auto source = open_weights(golden("llama.Q4_0.gguf"));
  const Metadata& m = source->metadata();
  const auto tokens = m.texts("tokenizer.ggml.tokens");
  ASSERT_TRUE(tokens.has_value());
  EXPECT_EQ(tokens->size(), 347u);
  EXPECT_EQ((*tokens)[0], "<|bos|>");
  EXPECT_EQ(m.type_name("tokenizer.ggml.tokens"), "string[347]");
  EXPECT_EQ(m.json("tokenizer.ggml.tokens", 2), R"(["<|bos|>", "<|eos|>"])");
  EXPECT_EQ(m.integers("tokenizer.ggml.token_type")->size(), 347u);
}

TEST(Gguf, ReadsTensorDataInPlace) {
  const auto source = open(Builder().f32("a", 3, 1.0f).f32("b", 2, 7.0f));
  ASSERT_EQ(source->tensors().size(), 2u);
  const TensorInfo* b = source->find("b");
  float values[2];
  std::memcpy(values, b->data, sizeof values);
  EXPECT_EQ(values[0], 7.0f);
  EXPECT_EQ(values[1], 8.0f);
  EXPECT_EQ(b->file_offset % 32, 0);
}

TEST(Gguf, AcceptsVersion2AnotherAlignmentAndGapsBetweenTensors) {
  Builder builder;
  builder.version = 2;
  builder.alignment = 64;
  builder.u32("general.alignment", 64).info("a", {2}, 0, 0).info("b", {2}, 0, 128);
  builder.data = std::string(136, '\1');
  const auto source = open(builder);
  EXPECT_EQ(source->format(), "GGUF v2");
  EXPECT_EQ(source->find("b")->file_offset - source->find("a")->file_offset, 128);
}

TEST(Gguf, AcceptsAFileOfKeysOnly) {
  const auto source = open(Builder().text("general.architecture", "llama"));
  EXPECT_TRUE(source->tensors().empty());
  EXPECT_EQ(source->metadata().keys(), std::vector<std::string>{"general.architecture"});
}

TEST(GgufMetadata, AnswersNothingForAnAbsentKey) {
  const auto source = open(Builder().u32("a", 1));
  const Metadata& m = source->metadata();
  EXPECT_FALSE(m.has("b"));
  EXPECT_FALSE(m.integer("b") || m.number("b") || m.boolean("b") || m.text("b"));
  EXPECT_FALSE(m.integers("b") || m.numbers("b") || m.booleans("b") || m.texts("b"));
  EXPECT_FALSE(m.is_array("b"));
  EXPECT_EQ(m.type_name("b"), "");
  EXPECT_EQ(m.json("b", 5), "null");
}

TEST(GgufMetadata, AcceptsIntegersOfEveryWidthAndSign) {
  Builder builder;
  builder.key("u8", 0, Bytes().put<uint8_t>(200)).key("i8", 1, Bytes().put<int8_t>(-5));
  builder.key("u16", 2, Bytes().put<uint16_t>(60000)).key("i16", 3, Bytes().put<int16_t>(-6));
  builder.key("u32", 4, Bytes().put<uint32_t>(4000000000u)).key("i32", 5, Bytes().put<int32_t>(-7));
  builder.key("u64", 10, Bytes().put<uint64_t>(INT64_MAX)).key("i64", 11, Bytes().put<int64_t>(INT64_MIN));
  const auto source = open(builder);
  const Metadata& m = source->metadata();
  EXPECT_EQ(m.integer("u8"), 200);
  EXPECT_EQ(m.integer("i8"), -5);
  EXPECT_EQ(m.integer("u16"), 60000);
  EXPECT_EQ(m.integer("i16"), -6);
  EXPECT_EQ(m.integer("u32"), 4000000000);
  EXPECT_EQ(m.integer("i32"), -7);
  EXPECT_EQ(m.integer("u64"), INT64_MAX);
  EXPECT_EQ(m.integer("i64"), INT64_MIN);
  EXPECT_EQ(m.number("i8"), -5.0);
}

TEST(GgufMetadata, RefusesAnIntegerThatDoesNotFit) {
  const auto source = open(Builder().key("a", kU64, Bytes().put<uint64_t>(UINT64_MAX)));
  EXPECT_EQ(corrupt_message([&] { (void)source->metadata().integer("a"); }),
            "m.gguf: key \"a\" is 18446744073709551615, the largest integer allowed is 9223372036854775807");
  EXPECT_EQ(source->metadata().json("a", 1), "18446744073709551615");
}

TEST(GgufMetadata, NamesKeyWantedAndStoredTypeWhenTheyDiffer) {
  Builder builder;
  builder.text("t", "x")
      .u32("u", 1)
      .key("f", kF32, Bytes().put(1.5f))
      .key("b", kBool, Bytes().put<uint8_t>(1));
  builder.array("u8s", kU8, 2, Bytes().put<uint16_t>(0)).array("fs", kF32, 1, Bytes().put(2.5f));
  const auto source = open(builder);
  const Metadata& m = source->metadata();
  EXPECT_EQ(corrupt_message([&] { (void)m.integer("f"); }),
            "m.gguf: key \"f\" should be an integer, the file stores f32");
  EXPECT_EQ(corrupt_message([&] { (void)m.integer("b"); }),
            "m.gguf: key \"b\" should be an integer, the file stores bool");
  EXPECT_EQ(corrupt_message([&] { (void)m.number("t"); }),
            "m.gguf: key \"t\" should be a number, the file stores string");
  EXPECT_EQ(corrupt_message([&] { (void)m.boolean("u"); }),
            "m.gguf: key \"u\" should be a bool, the file stores u32");
  EXPECT_EQ(corrupt_message([&] { (void)m.text("u"); }),
            "m.gguf: key \"u\" should be a string, the file stores u32");
  EXPECT_EQ(corrupt_message([&] { (void)m.integer("u8s"); }),
            "m.gguf: key \"u8s\" should be an integer, the file stores u8[2]");
  EXPECT_EQ(corrupt_message([&] { (void)m.numbers("u8s"); }),
            "m.gguf: key \"u8s\" should be an array of f32 or f64, the file stores u8[2]");
  EXPECT_EQ(corrupt_message([&] { (void)m.texts("fs"); }),
            "m.gguf: key \"fs\" should be an array of strings, the file stores f32[1]");
  EXPECT_EQ(corrupt_message([&] { (void)m.integers("fs"); }),
            "m.gguf: key \"fs\" should be an array of integers, the file stores f32[1]");
  EXPECT_EQ(corrupt_message([&] { (void)m.booleans("t"); }),
            "m.gguf: key \"t\" should be an array of bool, the file stores string");
}

TEST(GgufMetadata, GivesArraysAndSingleValuesAndTheirJson) {
  Builder builder;
  builder.key("f", kF32, Bytes().put(1e-5f)).key("nan", kF32, Bytes().put(std::nanf("")));
  builder.array("fs", kF32, 2, Bytes().put(0.5f).put(-3.0f));
  builder.array("bs", kBool, 3, Bytes().raw(std::string("\1\0\1", 3)));
  builder.array("is", kI32, 2, Bytes().put<int32_t>(-1).put<int32_t>(5));
  builder.array("none", kString, 0, Bytes()).text("bad utf-8", "a\"\n\xFF");
  const auto source = open(builder);
  const Metadata& m = source->metadata();
  EXPECT_EQ(m.json("f", 1), "1e-05");
  EXPECT_EQ(m.json("nan", 1), "null");
  EXPECT_EQ(m.numbers("fs"), (std::vector<float>{0.5f, -3.0f}));
  EXPECT_EQ(m.booleans("bs"), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(m.integers("is"), (std::vector<int64_t>{-1, 5}));
  EXPECT_EQ(m.json("is", 1), "[-1]");
  EXPECT_EQ(m.json("bs", 9), "[true, false, true]");
  EXPECT_TRUE(m.texts("none")->empty());
  EXPECT_TRUE(m.is_array("none"));
  EXPECT_FALSE(m.is_array("f"));
  EXPECT_EQ(m.json("bad utf-8", 1), "\"a\\\"\\n\xEF\xBF\xBD\"");
}

TEST(GgufMetadata, KeepsKeysInFileOrder) {
  const auto source = open(Builder().u32("b", 1).u32("a", 2).u32("c", 3));
  EXPECT_EQ(source->metadata().keys(), (std::vector<std::string>{"b", "a", "c"}));
  EXPECT_EQ(source->metadata().integer("a"), 2);
}

}  // namespace
}  // namespace liuli
