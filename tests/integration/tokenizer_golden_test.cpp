// Real vocabularies, read from model files, against ids made by independent implementations.
// LIULI_MODELS names the folder with smollm2.gguf, qwen2.5.gguf and gemma3.gguf.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/tokenizer_data.h"
#include "liuli/error.h"

namespace liuli {
namespace {

using Ids = std::vector<int>;
using nlohmann::json;

std::unique_ptr<WeightSource> open_model(const std::string& name) {
  const char* folder = std::getenv("LIULI_MODELS");
  if (!folder)
    throw Error(ErrorCode::not_found, "LIULI_MODELS is not set: it names the folder with " + name + ".gguf");
  return open_weights(std::string(folder) + "/" + name + ".gguf");
}

struct Counts {
  int lines = 0, doubtful = 0, with_plain = 0;
};

void check_line(const Tokenizer& tokenizer, const json& row) {
  const std::string text = row["text"];
  const Ids ids = row["ids"].get<Ids>();
  const Ids plain = row.contains("ids_plain") ? row["ids_plain"].get<Ids>() : ids;
  EXPECT_EQ(tokenizer.encode(text, false, true), ids) << row.dump();
  EXPECT_EQ(tokenizer.encode(text, false, false), plain) << row.dump();
  const std::string decoded = tokenizer.decode(ids);
  EXPECT_EQ(decoded, row.value("decoded", text)) << row.dump();
  StreamDecoder stream(tokenizer);
  std::string streamed;
  for (const int id : ids) streamed += stream.push(id);
  EXPECT_EQ(streamed + stream.finish(), decoded) << row.dump();
}

// Lines marked "doubt" are those where the two reference implementations disagree; they must still not throw.
Counts check_golden(const std::string& name) {
  const auto tokenizer = make_tokenizer(tokenizer_data(open_model(name)->metadata()));
  std::ifstream file(LIULI_SOURCE_DIR "/tests/golden/tokenizers/" + name + ".jsonl");
  Counts counts;
  for (std::string line; std::getline(file, line); ++counts.lines) {
    const json row = json::parse(line);
    counts.with_plain += row.contains("ids_plain");
    if (row.contains("doubt")) {
      ++counts.doubtful;
      EXPECT_NO_THROW(tokenizer->encode(row["text"].get<std::string>(), false, true));
    } else {
      check_line(*tokenizer, row);
    }
  }
  return counts;
}

TEST(TokenizerGolden, Smollm2AgreesWithTheReference) {
  const Counts counts = check_golden("smollm2");
  EXPECT_EQ(counts.lines, 279);
  EXPECT_EQ(counts.doubtful, 0);
  EXPECT_EQ(counts.with_plain, 5);
}

TEST(TokenizerGolden, Qwen25AgreesWithTheReference) {
  const Counts counts = check_golden("qwen2.5");
  EXPECT_EQ(counts.lines, 279);
  EXPECT_EQ(counts.doubtful, 0);
  EXPECT_EQ(counts.with_plain, 6);
}

TEST(TokenizerGolden, Gemma3AgreesWithTheReference) {
  const Counts counts = check_golden("gemma3");
  EXPECT_EQ(counts.lines, 279);
  EXPECT_EQ(counts.doubtful, 1);
  EXPECT_EQ(counts.with_plain, 3);
}

TEST(TokenizerGolden, SpecialIdsAndFlagsComeFromTheFile) {
  const TokenizerData smollm2 = tokenizer_data(open_model("smollm2")->metadata());
  EXPECT_EQ(smollm2.bos, 1);
  EXPECT_EQ(smollm2.eos, 2);
  EXPECT_FALSE(smollm2.add_bos);
  const TokenizerData gemma3 = tokenizer_data(open_model("gemma3")->metadata());
  EXPECT_EQ(gemma3.bos, 2);
  EXPECT_TRUE(gemma3.add_bos);
  EXPECT_FALSE(gemma3.add_space_prefix);
  EXPECT_EQ(make_tokenizer(gemma3)->encode("a", true, false).front(), 2);
}

TEST(TokenizerGolden, BuildingAVocabularyIsQuick) {
  for (const std::string name : {"smollm2", "gemma3"}) {
    TokenizerData data = tokenizer_data(open_model(name)->metadata());
    const auto start = std::chrono::steady_clock::now();
    make_tokenizer(std::move(data));
    // 8 and 17 ms when measured; the bound leaves room for sanitizers and a busy machine.
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(1000)) << name;
  }
}

TEST(TokenizerGolden, AMegabyteOfOneLetterTakesLinearithmicTime) {
  for (const std::string name : {"smollm2", "qwen2.5", "gemma3"}) {
    const auto tokenizer = make_tokenizer(tokenizer_data(open_model(name)->metadata()));
    const std::string text(1 << 20, 'a');
    const auto start = std::chrono::steady_clock::now();
    const Ids ids = tokenizer->encode(text, false, false);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5))
        << name;  // 0.2 s when measured
    EXPECT_EQ(tokenizer->decode(ids), text) << name;
  }
}

// Metadata held in one JSON object, to try what real files do not contain.
class JsonMetadata : public Metadata {
 public:
  explicit JsonMetadata(nlohmann::json object) : object_(std::move(object)) {}
  std::vector<std::string> keys() const override { return {}; }
  bool has(std::string_view key) const override { return object_.contains(key); }
  std::optional<int64_t> integer(std::string_view key) const override { return get<int64_t>(key); }
  std::optional<double> number(std::string_view key) const override { return get<double>(key); }
  std::optional<bool> boolean(std::string_view key) const override { return get<bool>(key); }
  std::optional<std::string> text(std::string_view key) const override { return get<std::string>(key); }
  std::optional<std::vector<int64_t>> integers(std::string_view key) const override {
    return get<std::vector<int64_t>>(key);
  }
  std::optional<std::vector<float>> numbers(std::string_view key) const override {
    return get<std::vector<float>>(key);
  }
  std::optional<std::vector<bool>> booleans(std::string_view key) const override {
    return get<std::vector<bool>>(key);
  }
  std::optional<std::vector<std::string>> texts(std::string_view key) const override {
    return get<std::vector<std::string>>(key);
  }
  bool is_array(std::string_view key) const override {
    return has(key) && object_[std::string(key)].is_array();
  }
  std::string type_name(std::string_view) const override { return "json"; }
  std::string json(std::string_view, size_t) const override { return ""; }

 private:
  template <class T>
  std::optional<T> get(std::string_view key) const {
    if (!has(key)) return std::nullopt;
    return object_[std::string(key)].get<T>();
  }
  nlohmann::json object_;
};

// Keys are given without "tokenizer.ggml.".
TokenizerData data_of(const json& short_keys) {
  json object = json::object();
  for (const auto& [key, value] : short_keys.items()) object["tokenizer.ggml." + key] = value;
  return tokenizer_data(JsonMetadata(object));
}

TEST(TokenizerData, SilentFilesGetWhatTheirModelImplies) {
  const json tokens = {"a", "b", "c"}, none = json::array();
  const TokenizerData llama = data_of({{"model", "llama"}, {"tokens", tokens}});
  EXPECT_EQ(llama.bos, 1);
  EXPECT_EQ(llama.eos, 2);
  EXPECT_EQ(llama.unknown, 0);
  EXPECT_TRUE(llama.add_bos && !llama.add_eos && llama.add_space_prefix);
  const TokenizerData t5 = data_of({{"model", "t5"}, {"tokens", tokens}});
  EXPECT_EQ(t5.bos, -1);
  EXPECT_TRUE(!t5.add_bos && t5.add_eos && t5.add_space_prefix && !t5.remove_extra_whitespaces);
  const TokenizerData gpt2 =
      data_of({{"model", "gpt2"}, {"tokens", tokens}, {"merges", none}, {"bos_token_id", 0}});
  EXPECT_EQ(gpt2.pre, "default");
  EXPECT_EQ(gpt2.eos, -1);
  EXPECT_TRUE(!gpt2.add_bos && !gpt2.add_eos && !gpt2.add_space_prefix);
  const json llama3 = {
      {"model", "gpt2"}, {"tokens", tokens}, {"merges", none}, {"pre", "llama-bpe"}, {"bos_token_id", 0}};
  EXPECT_TRUE(data_of(llama3).add_bos);
}

TEST(TokenizerData, KeysInTheFileOverrideWhatIsImplied) {
  const TokenizerData data = data_of({{"model", "llama"},
                                      {"tokens", {"a", "b", "c"}},
                                      {"bos_token_id", 2},
                                      {"add_bos_token", false},
                                      {"add_space_prefix", false},
                                      {"token_type", {1, 3, 6}},
                                      {"precompiled_charsmap", {-1, 255, 0}},
                                      {"eos_token_id", UINT32_MAX}});
  EXPECT_EQ(data.bos, 2);
  EXPECT_EQ(data.eos, -1);
  EXPECT_FALSE(data.add_bos || data.add_space_prefix);
  EXPECT_EQ(data.types, (std::vector<TokenType>{TokenType::normal, TokenType::control, TokenType::byte}));
  EXPECT_EQ(data.precompiled_charsmap, (std::vector<uint8_t>{255, 255, 0}));
}

TEST(TokenizerData, RefusesWhatIsMissingOrOutOfRange) {
  const json tokens = {"a", "b", "c"};
  const auto code = [](const json& keys) {
    try {
      data_of(keys);
    } catch (const Error& error) {
      return error.code();
    }
    ADD_FAILURE() << "accepted " << keys.dump();
    return ErrorCode::cancelled;
  };
  EXPECT_EQ(code(json::object()), ErrorCode::not_found);
  EXPECT_EQ(code({{"model", "llama"}}), ErrorCode::corrupt_file);
  EXPECT_EQ(code({{"model", "gpt2"}, {"tokens", tokens}}), ErrorCode::corrupt_file);  // no merges
  EXPECT_EQ(code({{"model", "llama"}, {"tokens", tokens}, {"bos_token_id", 3}}), ErrorCode::corrupt_file);
  EXPECT_EQ(code({{"model", "llama"}, {"tokens", tokens}, {"token_type", {1, 1, 256}}}),
            ErrorCode::corrupt_file);
  EXPECT_EQ(code({{"model", "llama"}, {"tokens", tokens}, {"precompiled_charsmap", {256}}}),
            ErrorCode::corrupt_file);
}

}  // namespace
}  // namespace liuli
