// Tokenizers read from Hugging Face folders, against ids made by the reference library.
// LIULI_MODELS names the folder with minilm/ and the tokenizer-* folders (scripts/fetch_model.py).
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "liuli/error.h"
#include "tokenizers/chat_template.h"
#include "tokenizers/hugging_face.h"

namespace liuli {
namespace {

using Ids = std::vector<int>;
using nlohmann::json;

std::string model_folder(const std::string& name) {
  const char* folder = std::getenv("LIULI_MODELS");
  return (folder ? std::string(folder) : std::string("LIULI_MODELS-is-not-set")) + "/" + name;
}

CompanionFiles files_of(const std::string& folder) {
  return [folder](std::string_view name) -> std::optional<std::string> {
    std::ifstream file(folder + "/" + std::string(name), std::ios::binary);
    if (!file) return std::nullopt;
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  };
}

HuggingFaceText read(const std::string& folder) { return read_hugging_face_text(files_of(folder), ""); }

std::vector<json> golden_lines(const std::string& name) {
  std::ifstream file(LIULI_SOURCE_DIR "/tests/golden/" + name);
  std::vector<json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
  return lines;
}

// Lines marked "doubt" are those where the two reference implementations disagree; they must still not throw.
void check(const Tokenizer& tokenizer, const json& row) {
  const std::string text = row["text"];
  const Ids ids = row["ids"].get<Ids>();
  const Ids found = tokenizer.encode(text, false, true);
  if (row.contains("doubt")) return;
  const Ids plain = row.contains("ids_plain") ? row["ids_plain"].get<Ids>() : ids;
  EXPECT_EQ(found, ids) << row.dump();
  EXPECT_EQ(tokenizer.encode(text, false, false), plain) << row.dump();
}

void check_stream(const Tokenizer& tokenizer, const json& row) {
  if (row.contains("doubt")) return;
  const Ids ids = row["ids"].get<Ids>();
  const std::string decoded = row.value("decoded", row["text"].get<std::string>());
  EXPECT_EQ(tokenizer.decode(ids), decoded) << row.dump();
  StreamDecoder stream(tokenizer);
  std::string streamed;
  for (const int id : ids) streamed += stream.push(id);
  EXPECT_EQ(streamed + stream.finish(), decoded) << row.dump();
}

size_t check_golden(const std::string& folder, const std::string& golden) {
  const HuggingFaceText text = read(model_folder(folder));
  const std::vector<json> lines = golden_lines("tokenizers/" + golden + ".jsonl");
  for (const json& row : lines) {
    check(*text.tokenizer, row);
    check_stream(*text.tokenizer, row);
  }
  return lines.size();
}

TEST(TokenizerFilesGolden, Llama3AgreesWithTheReference) {
  EXPECT_EQ(check_golden("tokenizer-llama3", "llama3"), 279u);
}
TEST(TokenizerFilesGolden, DeepSeekV3AgreesWithTheReference) {
  EXPECT_EQ(check_golden("tokenizer-deepseek-v3", "deepseek_v3"), 279u);
}
TEST(TokenizerFilesGolden, Gemma3AgreesWithTheReference) {
  EXPECT_EQ(check_golden("tokenizer-gemma3", "gemma3"), 279u);
}

// Qwen3 has Qwen2.5's vocabulary and four added tokens more, which its own file lists.
TEST(TokenizerFilesGolden, Qwen3AgreesWithQwen25sReferenceWhereNoNewTokenIsSpelled) {
  const HuggingFaceText text = read(model_folder("tokenizer-qwen3"));
  int compared = 0;
  for (const json& row : golden_lines("tokenizers/qwen2.5.jsonl")) {
    const std::string whole = row["text"];
    if (whole.find("think>") != std::string::npos || whole.find("tool_response>") != std::string::npos)
      continue;
    check(*text.tokenizer, row);
    check_stream(*text.tokenizer, row);
    compared++;
  }
  EXPECT_GT(compared, 270);
}

void check_minilm(const Tokenizer& tokenizer) {
  const std::vector<json> lines = golden_lines("tokenizers/minilm.jsonl");
  EXPECT_EQ(lines.size(), 279u);
  for (const json& row : lines) {
    const Ids expected = row["ids"].get<Ids>();
    EXPECT_EQ(tokenizer.encode(row["text"].get<std::string>(), true, true), expected) << row.dump();
    Ids ids;
    for (const int id : expected)
      if (!tokenizer.is_control(id)) ids.push_back(id);
    EXPECT_EQ(tokenizer.decode(ids), row.value("decoded", row["text"].get<std::string>())) << row.dump();
  }
}

TEST(TokenizerFilesGolden, MiniLmAgreesWithTheReference) {
  check_minilm(*read(model_folder("minilm")).tokenizer);
}

TEST(TokenizerFilesGolden, MiniLmFromItsVocabularyAloneIsTheSame) {
  const CompanionFiles all = files_of(model_folder("minilm"));
  const CompanionFiles older = [&](std::string_view name) {
    return name == "tokenizer.json" ? std::nullopt : all(name);
  };
  check_minilm(*read_hugging_face_text(older, "bert").tokenizer);
}

// The same vocabulary as a GGUF file spells it.
TEST(TokenizerFilesGolden, MiniLmAsAGgufFileSpellsItIsTheSame) {
  TokenizerData data = read(model_folder("minilm")).tokenizer->data();
  for (size_t id = 0; id < data.tokens.size(); ++id) {
    std::string& token = data.tokens[id];
    if (data.types[id] == TokenType::control) continue;
    token = token.starts_with("##") ? token.substr(2) : "▁" + token;
  }
  data.model = "bert";
  data.bos = 101, data.eos = 102;
  data.add_bos = data.add_eos = true;
  check_minilm(*make_tokenizer(data));
}

TEST(TokenizerFilesGolden, TheTinyModelsOwnFilesAgreeWithTheReference) {
  const auto tokenizer = read(LIULI_SOURCE_DIR "/tests/golden/tokenizers/tiny").tokenizer;
  std::vector<json> lines = golden_lines("tokenizers/tiny.jsonl");
  lines.erase(lines.begin());  // the vocabulary
  EXPECT_EQ(lines.size(), 200u);
  for (const json& row : lines) {
    check(*tokenizer, row);
    check_stream(*tokenizer, row);
  }
}

// The renderings themselves are tested where the templates are (chat_template_test): here, that a folder gives the
// template they were made with.
TEST(TokenizerFilesGolden, ChatTemplatesAreThoseOfTheGoldenRenderings) {
  for (const auto& [folder, golden] :
       {std::pair("tokenizer-llama3", "llama3"), std::pair("tokenizer-deepseek-v3", "deepseek_v3"),
        std::pair("tokenizer-gemma3", "gemma3"), std::pair("tokenizer-qwen3", "qwen3")}) {
    const std::vector<json> lines = golden_lines(std::string("chat/") + golden + ".jsonl");
    EXPECT_EQ(read(model_folder(folder)).chat_template, lines[0]["template"].get<std::string>()) << folder;
  }
}

// Processor time, so that a busy machine does not count.
template <class Work>
double seconds(Work work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST(TokenizerFilesGolden, LoadingIsQuick) {
  for (const char* name :
       {"tokenizer-llama3", "tokenizer-deepseek-v3", "tokenizer-qwen3", "tokenizer-gemma3"}) {
    const double took = seconds([&] { read(model_folder(name)); });
    RecordProperty(name, std::to_string(took));
    EXPECT_LT(took, 5.0) << name;  // 0.2 to 0.6 s when measured; the bound leaves room for a busy machine
  }
}

TEST(TokenizerFilesGolden, AMegabyteIsTokenizedQuickly) {
  std::string text;
  for (const json& row : golden_lines("tokenizers/llama3.jsonl"))
    if (row["text"].get<std::string>().size() > 200) text += row["text"];
  while (text.size() < (1u << 20)) text += text;
  for (const char* name : {"tokenizer-llama3", "tokenizer-qwen3"}) {
    const auto tokenizer = read(model_folder(name)).tokenizer;
    const double took = seconds([&] { tokenizer->encode(text, false, false); });
    RecordProperty(std::string(name) + "_MB_per_s",
                   std::to_string(1e-6 * static_cast<double>(text.size()) / took));
    EXPECT_LT(took, 5.0) << name;
  }
}

}  // namespace
}  // namespace liuli
