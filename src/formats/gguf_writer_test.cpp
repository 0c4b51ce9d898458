// What is written is what our own reader finds, byte for byte.
#include "formats/gguf_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "formats/gguf.h"
#include "formats/temporary_folder.h"
#include "liuli/error.h"

namespace liuli {
namespace {

template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_argument) << e.what();
    return e.what();
  }
  return "no error";
}

std::vector<uint8_t> counting(size_t n) {
  std::vector<uint8_t> bytes(n);
  std::iota(bytes.begin(), bytes.end(), uint8_t{1});
  return bytes;
}

TEST(GgufWriter, KeysComeBackWithTheirTypesAndOrder) {
  const TemporaryFolder folder("gguf-writer-keys");
  GgufKeys keys;
  keys.text("general.architecture", "llama")
      .u32("a.u32", 4000000000u)
      .i32("a.i32", -5)
      .u64("a.u64", uint64_t{1} << 40);
  keys.f32("a.f32", 1e-5f)
      .boolean("a.bool", true)
      .u16("a.u16", 7)
      .u32s("b.u32", {1, 2, 3})
      .i32s("b.i32", {-1, 4});
  keys.f32s("b.f32", {0.5f, -2.0f}).booleans("b.bool", {true, false, true}).texts("b.text", {"", "é", "a b"});
  GgufWriter writer(folder.file("k.gguf"), keys, {});
  writer.finish();

  const auto source = open_gguf(folder.file("k.gguf"));
  const Metadata& m = source->metadata();
  EXPECT_EQ(source->format(), "GGUF v3");
  EXPECT_EQ(m.keys().size(), keys.size());
  EXPECT_EQ(m.keys()[3], "a.u64");
  const std::vector<std::pair<const char*, const char*>> types = {
      {"a.u32", "u32"},    {"a.i32", "i32"},      {"a.u64", "u64"},       {"a.f32", "f32"},
      {"a.bool", "bool"},  {"a.u16", "u16"},      {"b.u32", "u32[3]"},    {"b.i32", "i32[2]"},
      {"b.f32", "f32[2]"}, {"b.bool", "bool[3]"}, {"b.text", "string[3]"}};
  for (const auto& [key, type] : types) EXPECT_EQ(m.type_name(key), type) << key;
  EXPECT_EQ(m.integer("a.u32"), 4000000000);
  EXPECT_EQ(m.integer("a.i32"), -5);
  EXPECT_EQ(m.integer("a.u64"), int64_t{1} << 40);
  EXPECT_EQ(m.number("a.f32"), double{1e-5f});
  EXPECT_EQ(m.boolean("a.bool"), true);
  EXPECT_EQ(m.integers("b.i32"), (std::vector<int64_t>{-1, 4}));
  EXPECT_EQ(m.booleans("b.bool"), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(m.texts("b.text"), (std::vector<std::string>{"", "é", "a b"}));
}

TEST(GgufWriter, TensorsKeepShapesInOurOrderAndStandAligned) {
  const TemporaryFolder folder("gguf-writer-tensors");
  const std::vector<GgufTensorSpec> specs = {{"norm", DType::f32, {3}},
                                             {"matrix", DType::q4_0, {2, 64}},
                                             {"experts", DType::f16, {2, 3, 5}},
                                             {"last", DType::q4_k, {1, 256}}};
  const std::vector<uint8_t> data = counting(12 + 2 * 36 + 60 + 144);
  GgufWriter writer(folder.file("t.gguf"), GgufKeys(), specs);
  writer.append(data.data(), 5);       // a part of a tensor
  writer.append(data.data() + 5, 80);  // the rest, the next one and a byte of the third
  writer.append(data.data() + 85, data.size() - 85);
  writer.finish();

  const auto source = open_gguf(folder.file("t.gguf"));
  ASSERT_EQ(source->tensors().size(), specs.size());
  const uint8_t* expected = data.data();
  for (size_t i = 0; i < specs.size(); i++) {
    const TensorInfo& t = source->tensors()[i];
    EXPECT_EQ(t.name, specs[i].name);
    EXPECT_EQ(t.type, specs[i].type) << t.name;
    EXPECT_EQ(t.shape, specs[i].shape) << t.name;
    EXPECT_EQ(t.file_offset % 32, 0) << t.name;
    ASSERT_EQ(t.bytes, specs[i].bytes()) << t.name;
    EXPECT_EQ(std::memcmp(t.data, expected, static_cast<size_t>(t.bytes)), 0) << t.name;
    expected += t.bytes;
  }
  EXPECT_EQ(source->file_bytes(), GgufWriter::file_bytes("", GgufKeys(), specs));
  EXPECT_EQ(source->file_bytes() % 32, 0) << "the last tensor is padded too";
}

TEST(GgufWriter, AFileCarriedOverUnchangedIsTheSameFile) {
  const TemporaryFolder folder("gguf-writer-copy");
  for (const char* name : {"llama.F32.gguf", "llama.Q4_0.gguf"}) {
    const std::string original = std::string(LIULI_SOURCE_DIR) + "/tests/golden/tiny/llama/gguf/" + name;
    const auto source = open_gguf(original);
    std::vector<GgufTensorSpec> specs;
    for (const TensorInfo& t : source->tensors()) specs.push_back({t.name, t.type, t.shape});
    GgufWriter writer(folder.file(name), GgufKeys().copy_all(source->metadata()), specs);
    for (const TensorInfo& t : source->tensors()) writer.append(t.data, static_cast<size_t>(t.bytes));
    writer.finish();
    std::ifstream in(original, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    EXPECT_TRUE(folder.read(name) == bytes) << name << ": " << bytes.size() << " bytes";
  }
}

TEST(GgufWriter, SettingAKeyAgainReplacesItWhereItStands) {
  const TemporaryFolder folder("gguf-writer-replace");
  GgufKeys keys;
  keys.u32("first", 1).text("second", "x").u32("third", 3).text("first", "now a text").remove("third");
  EXPECT_TRUE(keys.has("second"));
  EXPECT_FALSE(keys.has("third"));
  GgufWriter(folder.file("r.gguf"), keys, {}).finish();
  const auto source = open_gguf(folder.file("r.gguf"));
  EXPECT_EQ(source->metadata().keys(), (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(source->metadata().text("first"), "now a text");
}

TEST(GgufWriter, HonoursAnAlignmentAmongTheKeys) {
  const TemporaryFolder folder("gguf-writer-alignment");
  GgufWriter writer(folder.file("a.gguf"), GgufKeys().u32("general.alignment", 128),
                    {{"a", DType::f32, {1}}, {"b", DType::f32, {1}}});
  const float values[2] = {1, 2};
  writer.append(values, sizeof values);
  writer.finish();
  const auto source = open_gguf(folder.file("a.gguf"));
  EXPECT_EQ(source->tensors()[1].file_offset - source->tensors()[0].file_offset, 128);
  EXPECT_EQ(source->tensors()[0].file_offset % 128, 0);
}

TEST(GgufWriter, RefusesWhatAReaderWouldRefuse) {
  const TemporaryFolder folder("gguf-writer-refusals");
  const std::string path = folder.file("x.gguf");
  const auto attempt = [&](GgufTensorSpec spec) {
    return refusal([&] { GgufWriter(path, GgufKeys(), {std::move(spec)}); });
  };
  EXPECT_NE(attempt({"", DType::f32, {1}}).find("0 bytes"), std::string::npos);
  EXPECT_NE(attempt({std::string(64, 'n'), DType::f32, {1}}).find("64 bytes"), std::string::npos);
  EXPECT_NE(attempt({"t", DType::f32, {}}).find("0 dimensions"), std::string::npos);
  EXPECT_NE(attempt({"t", DType::f32, {1, 1, 1, 1, 1}}).find("5 dimensions"), std::string::npos);
  EXPECT_NE(attempt({"t", DType::f32, {2, 0}}).find("[2, 0]"), std::string::npos);
  EXPECT_NE(attempt({"t", DType::q4_k, {2, 128}}).find("128 elements, Q4_K comes in blocks of 256"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              GgufWriter(path, GgufKeys(), {{"t", DType::f32, {1}}, {"t", DType::f32, {1}}});
            }).find("announced twice"),
            std::string::npos);
  EXPECT_NE(refusal([&] { GgufWriter(path, GgufKeys().u32("general.alignment", 48), {}); }).find("it is 48"),
            std::string::npos);
  EXPECT_NE(refusal([&] { GgufKeys().u32("", 1); }).find("0 bytes"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(GgufWriter, TooFewOrTooManyBytesLeaveNoFile) {
  const TemporaryFolder folder("gguf-writer-bytes");
  const std::string path = folder.file("x.gguf");
  const float values[3] = {1, 2, 3};
  EXPECT_NE(refusal([&] {
              GgufWriter writer(path, GgufKeys(), {{"t", DType::f32, {2}}});
              writer.append(values, 4);
              writer.finish();
            }).find("has 8 bytes, only 4"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              GgufWriter writer(path, GgufKeys(), {{"t", DType::f32, {2}}});
              writer.append(values, 12);
            }).find("4 more bytes"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace liuli
