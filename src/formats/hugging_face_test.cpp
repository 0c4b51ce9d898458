#include "formats/hugging_face.h"

#include <gtest/gtest.h>

#include "core/half.h"
#include "formats/gguf_test_bytes.h"
#include "formats/temporary_folder.h"
#include "liuli/error.h"

namespace liuli {
namespace {

using testing_gguf::Builder;
using testing_gguf::Bytes;

const std::string kTiny = std::string(LIULI_SOURCE_DIR) + "/tests/golden/tiny/";

std::string refusal(const std::string& path) {
  try {
    open_weights(path);
  } catch (const Error& e) {
    return std::string(to_string(e.code())) + ": " + e.what();
  }
  return "accepted";
}
void expect_refused(const std::string& path, const char* code, const std::string& part) {
  const std::string message = refusal(path);
  EXPECT_EQ(message.rfind(code, 0), 0u) << message;
  EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

/// A safetensors file with I8 tensors of one byte each, named by `names`.
std::string bytes_named(const std::vector<std::string>& names) {
  std::string header = "{", data;
  for (size_t i = 0; i < names.size(); i++) {
    header += (i > 0 ? "," : "") + ("\"" + names[i]) + R"(":{"dtype":"I8","shape":[1],"data_offsets":[)" +
              std::to_string(i) + "," + std::to_string(i + 1) + "]}";
    data += static_cast<char>('A' + i);
  }
  return Bytes().string(header + "}").raw(data).data();
}

TEST(HuggingFace, ReadsAFolderWithOneFile) {
  const auto source = open_weights(kTiny + "llama_bf16");
  EXPECT_EQ(source->path(), kTiny + "llama_bf16");
  EXPECT_EQ(source->format(), "safetensors");
  EXPECT_EQ(source->naming(), Naming::hugging_face);
  EXPECT_EQ(source->metadata().text("model_type"), "llama");
  EXPECT_EQ(source->metadata().integer("num_hidden_layers"), 2);
  EXPECT_TRUE(source->set_aside().empty());
  const TensorInfo* q = source->find("model.layers.0.self_attn.q_proj.weight");
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(q->type, DType::bf16);
  EXPECT_EQ(q->bytes, q->elements() * 2);
  EXPECT_EQ(source->find("model.layers.0.self_attn.q_proj"), nullptr);
}

/// Every tensor of every type against the reader that was tested by itself.
TEST(HuggingFace, HandsOutTheBytesOfTheFile) {
  for (const char* name : {"llama", "llama_f16", "gemma3", "bert", "transformer2017"}) {
    SCOPED_TRACE(name);
    const std::string path = kTiny + name + "/model.safetensors";
    const auto source = open_weights(path);
    const SafetensorsFile file(path);
    ASSERT_EQ(source->tensors().size(), file.tensors().size());
    for (const TensorInfo& tensor : source->tensors()) {
      EXPECT_EQ(source->find(tensor.name), &tensor);
      const auto raw = file.raw(tensor.name);
      ASSERT_EQ(static_cast<size_t>(tensor.bytes), raw.size());
      EXPECT_EQ(std::memcmp(tensor.data, raw.data(), raw.size()), 0) << tensor.name;
      source->give_back(tensor);
      EXPECT_EQ(std::memcmp(tensor.data, raw.data(), raw.size()), 0) << "after giving back " << tensor.name;
    }
    EXPECT_EQ(source->file_bytes(), static_cast<int64_t>(std::filesystem::file_size(path)));
  }
}

TEST(HuggingFace, JoinsShards) {
  const auto source = open_weights(kTiny + "llama_sharded");
  EXPECT_EQ(source->format(), "safetensors, 3 shards");
  size_t count = 0;
  int64_t bytes = 0;
  for (int i = 1; i <= 3; i++) {
    const std::string path = kTiny + "llama_sharded/model-0000" + std::to_string(i) + "-of-00003.safetensors";
    const SafetensorsFile shard(path);
    bytes += static_cast<int64_t>(std::filesystem::file_size(path));
    for (const auto& tensor : shard.tensors()) {
      const TensorInfo* joined = source->find(tensor.name);
      ASSERT_NE(joined, nullptr) << tensor.name;
      EXPECT_EQ(std::memcmp(joined->data, tensor.data, static_cast<size_t>(tensor.bytes)), 0);
      count++;
    }
  }
  EXPECT_EQ(source->tensors().size(), count);
  EXPECT_EQ(source->file_bytes(), bytes);
}

TEST(HuggingFace, HandsOutCompanions) {
  const auto source = open_weights(kTiny + "llama/model.safetensors");
  const auto tokenizer = source->companion("tokenizer.json");
  ASSERT_TRUE(tokenizer.has_value());
  EXPECT_EQ(tokenizer->size(), std::filesystem::file_size(kTiny + "llama/tokenizer.json"));
  EXPECT_EQ(source->companion("added_tokens.json"), std::nullopt);
  EXPECT_THROW(source->companion("../llama/config.json"), Error);
}

TEST(HuggingFace, SaysWhatIsMissing) {
  const TemporaryFolder folder("hf-missing");
  expect_refused(folder.file("nothing"), "not_found", "nothing");
  expect_refused(folder.file(""), "invalid_argument",
                 "no model.safetensors, model.safetensors.index.json or GGUF file");
  const std::string weights = folder.write("model.safetensors", bytes_named({"a"}));
  expect_refused(weights, "not_found", "model.safetensors: config.json is missing beside it");
  expect_refused(folder.file(""), "not_found", "model.safetensors: config.json is missing beside it");
  folder.write("config.json", "{\"a\": NaN}");
  expect_refused(weights, "corrupt_file", "config.json: 10 bytes are not JSON");
  folder.write("config.json", "{}");
  EXPECT_EQ(refusal(weights), "accepted");
  EXPECT_EQ(refusal(folder.file("")), "accepted");
}

TEST(HuggingFace, ReadsPicklesNever) {
  const TemporaryFolder folder("hf-pickle");
  folder.write("config.json", "{}");
  folder.write("pytorch_model.bin", "PK");
  expect_refused(folder.file(""), "unsupported", "pytorch_model.bin, a Python pickle");
}

TEST(HuggingFace, OpensTheOneGgufFileOfAFolder) {
  const TemporaryFolder folder("hf-gguf");
  folder.write("a.gguf", Builder().text("general.name", "A").build());
  EXPECT_EQ(open_weights(folder.file(""))->metadata().text("general.name"), "A");
  folder.write("b.gguf", Builder().build());
  expect_refused(folder.file(""), "invalid_argument", "name one of them: a.gguf, b.gguf");
}

TEST(HuggingFace, SendsAShardToItsFolder) {
  expect_refused(kTiny + "llama_sharded/model-00002-of-00003.safetensors", "invalid_argument",
                 "open its folder");
}

class ShardedFolder : public testing::Test {
 protected:
  ShardedFolder() {
    folder_.write("config.json", "{}");
    folder_.write("one", bytes_named({"a", "b"}));
    folder_.write("two", bytes_named({"b", "c", "stray"}));
    index(R"({"a": "one", "b": "two", "c": "two"})");
  }
  void index(const std::string& map) {
    folder_.write("model.safetensors.index.json",
                  "{\"metadata\": {\"total_size\": 1}, \"weight_map\": " + map + "}");
  }
  std::string path() const { return folder_.file(""); }

  TemporaryFolder folder_{"hf-sharded"};
};

TEST_F(ShardedFolder, TakesEachTensorFromTheMappedFile) {
  const auto source = open_weights(path());
  EXPECT_EQ(source->tensors().size(), 3u);
  EXPECT_EQ(*source->find("a")->data, 'A');
  EXPECT_EQ(*source->find("b")->data, 'A') << "the copy in shard two, where it comes first";
  EXPECT_EQ(*source->find("c")->data, 'B');
}

TEST_F(ShardedFolder, LeavesOutWhatTheIndexDoesNotName) {
  const auto source = open_weights(path());
  EXPECT_EQ(source->find("stray"), nullptr);
  ASSERT_EQ(source->set_aside().size(), 1u);
  EXPECT_EQ(source->set_aside()[0].name, "stray");
  EXPECT_EQ(source->set_aside()[0].reason, "lies in two, but model.safetensors.index.json does not name it");
}

TEST_F(ShardedFolder, RefusesAnIndexThatContradictsItsFiles) {
  index(R"({"a": "one", "z": "two"})");
  expect_refused(path(), "corrupt_file", "says that tensor \"z\" is in \"two\", which does not hold it");
  index(R"({"a": "one", "z": "three"})");
  expect_refused(path(), "not_found", "three");
  index("[]");
  expect_refused(path(), "corrupt_file", "no object \"weight_map\"");
  index(R"({"a": "one", "a": "two"})");
  expect_refused(path(), "corrupt_file", "\"a\" appears twice");
}

TEST_F(ShardedFolder, RefusesFileNamesThatLeadElsewhere) {
  for (const char* name : {"../one", "/etc/passwd", "..", "", "x\\\\one", "one\\u0000", "."}) {
    index(std::string(R"({"a": ")") + name + "\"}");
    expect_refused(path(), "corrupt_file", "not to the name of a file in this folder");
  }
  index(R"({"a": 3})");
  expect_refused(path(), "corrupt_file", "mapped to number");
}

TEST(HuggingFace, SetsAsideTypesItDoesNotRead) {
  const TemporaryFolder folder("hf-types");
  folder.write("config.json", "{}");
  folder.write("model.safetensors",
               Bytes()
                   .string(R"({"mask":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                           R"("packed":{"dtype":"F4","shape":[2,2],"data_offsets":[2,4]},)"
                           R"("w":{"dtype":"F8_E5M2","shape":[1],"data_offsets":[4,5]},)"
                           R"("x":{"dtype":"F16","shape":[1],"data_offsets":[5,7]}})")
                   .raw("1234567")
                   .data());
  const auto source = open_weights(folder.file(""));
  ASSERT_EQ(source->tensors().size(), 1u);
  EXPECT_EQ(source->tensors()[0].name, "x");
  ASSERT_EQ(source->set_aside().size(), 3u);
  EXPECT_EQ(source->set_aside()[2].name, "w");
  EXPECT_EQ(source->set_aside()[2].reason, "is stored as F8_E5M2, which Liuli does not read");
}

}  // namespace
}  // namespace liuli
