// Parts of tokenizer.json one by one, and the other files a tokenizer can come from.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "liuli/error.h"
#include "tokenizers/hugging_face.h"
#include "tokenizers/regex.h"

namespace liuli {
namespace {

using Ids = std::vector<int>;
using nlohmann::json;
using Folder = std::map<std::string, std::string, std::less<>>;

HuggingFaceText read(const Folder& folder, const std::string& model_type = "") {
  const CompanionFiles files = [&](std::string_view name) -> std::optional<std::string> {
    const auto found = folder.find(name);
    return found == folder.end() ? std::nullopt : std::optional(found->second);
  };
  return read_hugging_face_text(files, model_type);
}

// What reading a folder is refused with.
std::string refusal(const Folder& folder, ErrorCode code) {
  try {
    read(folder);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return "";
}

std::string file(const std::string& name) {
  std::ifstream in(std::string(LIULI_SOURCE_DIR "/tests/") + name, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// 26 tokenizers put together by lot from every kind of part; ids and texts are the reference library's.
TEST(TokenizerJson, EveryPartDoesWhatTheReferenceDoes) {
  std::istringstream lines(file("golden/tokenizers/parts.jsonl"));
  int tokenizers = 0;
  for (std::string line; std::getline(lines, line); ++tokenizers) {
    const json row = json::parse(line);
    const auto tokenizer = read({{"tokenizer.json", row["tokenizer"].dump()}}).tokenizer;
    for (const json& sample : row["texts"]) {
      const Ids ids = sample[1].get<Ids>();
      EXPECT_EQ(tokenizer->encode(sample[0].get<std::string>(), true, true), ids)
          << tokenizers << sample.dump();
      EXPECT_EQ(tokenizer->decode(ids), sample[2].get<std::string>()) << tokenizers << sample.dump();
    }
  }
  EXPECT_EQ(tokenizers, 26);
}

json word_level() {
  return json::parse(R"({"pre_tokenizer": {"type": "Whitespace"}, "added_tokens": [],
    "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "a": 1, "<s>": 2, "b": 3}}})");
}

TEST(TokenizerJson, RefusesByNameWhatItDoesNotKnow) {
  for (const char* part : {"normalizer", "pre_tokenizer", "decoder", "post_processor", "model"}) {
    json tokenizer = word_level();
    tokenizer[part]["type"] = "Klingon";
    const std::string message = refusal({{"tokenizer.json", tokenizer.dump()}}, ErrorCode::unsupported);
    EXPECT_NE(message.find("Klingon"), std::string::npos) << message;
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  json tokenizer = word_level();
  tokenizer["model"] = json::parse(R"({"type": "BPE", "dropout": 0.1, "vocab": {"a": 0}, "merges": []})");
  refusal({{"tokenizer.json", tokenizer.dump()}}, ErrorCode::unsupported);
}

TEST(TokenizerJson, RefusesWhatContradictsItself) {
  const char* faults[] = {"",
                          "[]",
                          "{",
                          R"({"model": 3})",
                          R"({"model": {"type": "BPE", "vocab": {}}})",
                          R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": ["a b"]}})",
                          R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a  b"]}})",
                          R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a"]]}})",
                          R"({"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}})",
                          R"({"model": {"type": "BPE", "vocab": {"a": 1e9}, "merges": []}})",
                          R"({"model": {"type": "BPE", "vocab": {"a": 999999999}, "merges": []}})",
                          R"({"model": {"type": "WordPiece", "vocab": {"a": 0}}})",
                          R"({"model": {"type": "Unigram", "unk_id": 7, "vocab": [["a", 0.0]]}})",
                          R"({"model": {"type": "Unigram", "vocab": [["a"]]}})"};
  for (const char* fault : faults) refusal({{"tokenizer.json", fault}}, ErrorCode::corrupt_file);
}

TEST(TokenizerJson, TextOfAUserMakesNoControlTokenAlsoBehindANormalizer) {
  json tokenizer = word_level();
  tokenizer["normalizer"] = {{"type", "Lowercase"}};
  tokenizer["added_tokens"] = {{{"id", 2}, {"content", "<S>"}, {"special", true}, {"normalized", true}}};
  tokenizer["model"]["vocab"].erase("<s>");
  const auto read_one = read({{"tokenizer.json", tokenizer.dump()}}).tokenizer;
  EXPECT_EQ(read_one->encode("<s> A", false, true), (Ids{2, 1}));
  EXPECT_EQ(read_one->encode("<s> A", false, false), (Ids{0, 0, 0, 1}));
  EXPECT_EQ(read_one->encode_spans({{"<S>", false}, {"<S>", true}, {"a", false}}), (Ids{2, 0, 0, 0, 1}));
}

TEST(TokenizerConfig, NamesSpecialTokensAndSaysWhatIsAdded) {
  const Folder folder = {{"tokenizer.json", word_level().dump()},
                         {"tokenizer_config.json",
                          R"({"bos_token": {"content": "<s>"}, "add_bos_token": true, "eos_token": "b",
      "chat_template": [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}],
      "added_tokens_decoder": {"5": {"content": "<x>", "special": false}}})"}};
  const HuggingFaceText text = read(folder);
  EXPECT_EQ(text.tokenizer->encode("a", true, false), (Ids{2, 1}));
  EXPECT_EQ(text.tokenizer->data().eos, 3);
  EXPECT_TRUE(text.tokenizer->is_control(2));
  EXPECT_EQ(text.tokenizer->encode("<x>", false, false), Ids{5});
  EXPECT_EQ(text.chat_template, "D");
  Folder newer = folder;
  newer["chat_template.jinja"] = "J";
  EXPECT_EQ(read(newer).chat_template, "J");
}

TEST(HuggingFaceText, AFolderWithoutATokenizerIsNotFound) {
  refusal({{"tokenizer_config.json", "{}"}}, ErrorCode::not_found);
}

TEST(VocabTxt, WordsOfNeverSplitStayWholeWhereTheyStandAlone) {
  const std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\nUS-1\nus\n-\n1\n";
  const auto tokenizer =
      read({{"vocab.txt", vocabulary}, {"tokenizer_config.json", R"({"never_split": ["US-1"]})"}}).tokenizer;
  EXPECT_EQ(tokenizer->encode("AB US-1", true, true), (Ids{2, 5, 6, 7, 3}));
  EXPECT_EQ(tokenizer->encode("(US-1", false, true), (Ids{1, 8, 9, 10}));
}

TEST(VocabJson, ReadsGpt2sTwoFiles) {
  const Folder folder = {{"vocab.json", R"({"a": 0, "b": 1, "ab": 2, "Ġ": 3, "Ġa": 4, "<|endoftext|>": 5})"},
                         {"merges.txt", "#version: 0.2\na b\nĠ a\n"}};
  const auto tokenizer = read(folder, "gpt2").tokenizer;
  EXPECT_EQ(tokenizer->encode("ab a<|endoftext|>", false, true), (Ids{2, 4, 5}));
  EXPECT_EQ(tokenizer->data().eos, 5);
  refusal(folder, ErrorCode::unsupported);  // nothing says how to split
}

TEST(SentencePieceFile, AgreesWithTheReference) {
  const auto ids = [](const std::string& model, const char* text) {
    return read({{"tokenizer.model", file("fuzz/seeds/sentencepiece_" + model + ".model")},
                 {"tokenizer_config.json", R"({"add_bos_token": false, "add_eos_token": false})"}})
        .tokenizer->encode(text, true, true);
  };
  EXPECT_EQ(ids("bpe", "hello the world"), (Ids{271, 270, 260, 259, 267, 274}));
  EXPECT_EQ(ids("bpe", "  hello   tokens  "), (Ids{271, 270, 260, 265, 269}));
  EXPECT_EQ(ids("bpe", "héllo 你好 of"), (Ids{275, 279, 198, 172, 270, 273, 272}));
  EXPECT_EQ(ids("unigram", "hello the world"), (Ids{4, 6, 5, 5, 3, 7, 6, 4, 15, 3, 14, 5, 10}));
  EXPECT_EQ(ids("unigram", "  hello   tokens  "), (Ids{4, 6, 5, 5, 3, 7, 3, 9, 8, 12, 13}));
  EXPECT_EQ(ids("unigram", "héllo 你好 of"), (Ids{4, 19, 0, 5, 5, 3, 20, 4, 3, 11}));
}

// "a", "b", "ab", " ", "abc" (which no two of the others make), as tiktoken has them.
TEST(TiktokenFile, MergesWhatTogetherIsATokenLowestRankFirst) {
  const Folder folder = {{"tokenizer.model", "YQ== 0\nYg== 1\nYWI= 2\nIA== 3\nYw== 4\nYWJj 5\n"},
                         {"tokenizer_config.json",
                          R"({"added_tokens_decoder": {"6": {"content": "<|end|>", "special": true}}})"}};
  const auto tokenizer = read(folder).tokenizer;
  EXPECT_EQ(tokenizer->encode("abb abc<|end|>", false, true), (Ids{2, 1, 3, 5, 6}));
  refusal({{"tokenizer.model", "YQ== 0\n"}},
          ErrorCode::unsupported);  // neither Llama 3's size nor special tokens
  refusal({{"tokenizer.model", "YQ== 0\nYg== 2\n"}}, ErrorCode::corrupt_file);
}

TEST(Regex, SpellsOutWhatTheTwoEnginesReadDifferently) {
  size_t begin = 0, end = 0;
  EXPECT_FALSE(Regex(R"(\s)").find("\u180E", 0, begin, end));
  EXPECT_TRUE(Regex(R"(\w+)").find("-a\u0301_\u00B2", 0, begin, end));
  EXPECT_EQ(begin, 1u);
  EXPECT_EQ(end, 7u);
  EXPECT_FALSE(Regex(R"(\p{Han})").find("。", 0, begin, end));
  EXPECT_TRUE(Regex(R"(^b$)").find("a\nb\nc", 0, begin, end));
}

TEST(Regex, RefusesConstructsOfOneEngineOnly) {
  for (const char* pattern :
       {R"(\h)", R"([a&&b])", R"([a[b]])", R"((?m:.))", R"((?~a))", R"(\X)", R"(\12)", "(", "[a"})
    try {
      const Regex accepted(pattern);
      ADD_FAILURE() << pattern;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported) << pattern;
    }
}

TEST(Regex, GivesUpOnExponentialBacktracking) {
  size_t begin = 0, end = 0;
  const Regex hostile(R"((a+)+$)");
  EXPECT_THROW(hostile.find(std::string(40, 'a') + "b", 0, begin, end), Error);
}

}  // namespace
}  // namespace liuli
