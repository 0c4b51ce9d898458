// Byte-level BPE, special tokens, spans, streams, and what make_tokenizer refuses.
#include "tokenizers/tokenizer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "liuli/error.h"

namespace liuli {
namespace {

using Ids = std::vector<int>;
using nlohmann::json;

// 256 byte tokens (id = byte), then what a test adds. Ġ is a space.
TokenizerData byte_vocabulary(const std::string& pre) {
  TokenizerData data;
  data.model = "gpt2";
  data.pre = pre;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const int c = itself ? byte : next++;
    if (c < 0x80)
      data.tokens.push_back(std::string(1, static_cast<char>(c)));
    else
      data.tokens.push_back({static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))});
  }
  data.types.assign(256, TokenType::normal);
  return data;
}

int add_token(TokenizerData& data, const std::string& text, TokenType type = TokenType::normal) {
  data.tokens.push_back(text);
  data.types.push_back(type);
  return static_cast<int>(data.tokens.size()) - 1;
}

int add_merge(TokenizerData& data, const std::string& left, const std::string& right) {
  data.merges.push_back(left + " " + right);
  return add_token(data, left + right);
}

ErrorCode refusal(TokenizerData data, std::string* message = nullptr) {
  try {
    make_tokenizer(std::move(data));
  } catch (const Error& error) {
    if (message) *message = error.what();
    return error.code();
  }
  ADD_FAILURE() << "a broken vocabulary was accepted";
  return ErrorCode::cancelled;
}

TEST(ByteBpe, AgreesWithTheReferenceOnTheTinyVocabulary) {
  std::ifstream file(LIULI_SOURCE_DIR "/tests/golden/tokenizers/tiny.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  const json vocabulary = json::parse(line);
  TokenizerData data;
  data.model = vocabulary["model"];
  data.pre = vocabulary["pre"];
  data.tokens = vocabulary["tokens"].get<std::vector<std::string>>();
  data.merges = vocabulary["merges"].get<std::vector<std::string>>();
  for (const int type : vocabulary["types"]) data.types.push_back(static_cast<TokenType>(type));
  const auto tokenizer = make_tokenizer(std::move(data));
  int lines = 0;
  for (; std::getline(file, line); ++lines) {
    const json row = json::parse(line);
    const std::string text = row["text"];
    const Ids ids = row["ids"].get<Ids>();
    EXPECT_EQ(tokenizer->encode(text, false, true), ids) << line;
    EXPECT_EQ(tokenizer->encode(text, false, false),
              row.contains("ids_plain") ? row["ids_plain"].get<Ids>() : ids)
        << line;
    EXPECT_EQ(tokenizer->decode(ids), row.value("decoded", text)) << line;
  }
  EXPECT_EQ(lines, 200);
}

TEST(ByteBpe, MergesLowestRankFirstThenLeftmost) {
  TokenizerData data = byte_vocabulary("gpt-2");
  const int bc = add_merge(data, "b", "c"), ab = add_merge(data, "a", "b"), aa = add_merge(data, "a", "a");
  const int ab_ab = add_merge(data, "ab", "ab");
  const auto tokenizer = make_tokenizer(data);
  EXPECT_EQ(tokenizer->encode("abc", false, false), (Ids{'a', bc}));
  EXPECT_EQ(tokenizer->encode("aaa", false, false), (Ids{aa, 'a'}));
  EXPECT_EQ(tokenizer->encode("ababab", false, false), (Ids{ab_ab, ab}));
}

TEST(ByteBpe, TakesAWholePieceThatMergesCannotReachOnlyWhereTheNameSaysSo) {
  for (const bool ignore_merges : {true, false}) {
    TokenizerData data = byte_vocabulary(ignore_merges ? "llama-bpe" : "dbrx");
    const int word = add_token(data, "Ġword");
    const auto tokenizer = make_tokenizer(data);
    EXPECT_EQ(tokenizer->encode(" word", false, false),
              ignore_merges ? Ids{word} : (Ids{' ', 'w', 'o', 'r', 'd'}));
  }
}

TEST(ByteBpe, DropsBytesWithoutATokenBeforeMerging) {
  TokenizerData data = byte_vocabulary("gpt-2");
  data.tokens[1] = "gone";  // byte 1 has no token now
  const int dots = add_merge(data, ".", ".");
  const auto tokenizer = make_tokenizer(data);
  EXPECT_EQ(tokenizer->encode("\x01", false, false), Ids{});
  EXPECT_EQ(tokenizer->encode("a\x01.", false, false), (Ids{'a', '.'}));
  EXPECT_EQ(tokenizer->encode(".\x01.", false, false),
            Ids{dots});  // one piece, whose neighbours are now the dots
}

TEST(ByteBpe, ReadsInvalidUtf8AsReplacementCharactersAndKeepsNul) {
  const auto tokenizer = make_tokenizer(byte_vocabulary("gpt-2"));
  EXPECT_EQ(tokenizer->encode("a\xFF", false, false), (Ids{'a', 0xEF, 0xBF, 0xBD}));
  EXPECT_EQ(tokenizer->encode(std::string("a\0b", 3), false, false), (Ids{'a', 0, 'b'}));
  EXPECT_EQ(tokenizer->decode({'a', 0, 'b'}), std::string("a\0b", 3));
  EXPECT_EQ(tokenizer->encode("", false, false), Ids{});
}

TEST(ByteBpe, NormalisesForQwenBetweenSpecialTokens) {
  TokenizerData data = byte_vocabulary("qwen2");
  const int mark = add_token(data, "<e\u0301>", TokenType::control);
  const auto tokenizer = make_tokenizer(data);
  EXPECT_EQ(tokenizer->encode("e\u0301<e\u0301>", false, true), (Ids{0xC3, 0xA9, mark}));
}

TEST(SpecialTokens, LongestMatchWinsAndForbiddenOnesLeaveTheShorter) {
  TokenizerData data = byte_vocabulary("gpt-2");
  const int a = add_token(data, "<a>", TokenType::user_defined);
  const int aa = add_token(data, "<a><a>", TokenType::control);
  const int tail = add_token(data, "a><", TokenType::user_defined);
  const auto tokenizer = make_tokenizer(data);
  EXPECT_EQ(tokenizer->encode("<a><a>", false, true), Ids{aa});
  EXPECT_EQ(tokenizer->encode("<a><a>", false, false), (Ids{a, a}));
  EXPECT_EQ(tokenizer->encode("a><a>", false, false), (Ids{tail, 'a', '>'}));
  EXPECT_TRUE(tokenizer->is_control(aa));
  EXPECT_FALSE(tokenizer->is_control(a));
  EXPECT_FALSE(tokenizer->is_control(-1));
}

TEST(SpecialTokens, UserTextCannotForgeAControlToken) {
  TokenizerData data = byte_vocabulary("gpt-2");
  const int end = add_token(data, "<|end|>", TokenType::control);
  const auto tokenizer = make_tokenizer(data);
  const Ids letters = {'<', '|', 'e', 'n', 'd', '|', '>'};
  EXPECT_EQ(tokenizer->encode_spans({{"<|end|>", false}}), Ids{end});
  EXPECT_EQ(tokenizer->encode_spans({{"<|end|>", true}}), letters);
  EXPECT_EQ(tokenizer->encode_spans({{"<|en", false}, {"d|>", false}}), Ids{end});
  EXPECT_EQ(tokenizer->encode_spans({{"<|en", false}, {"d", true}, {"|>", false}}), letters);
  EXPECT_EQ(tokenizer->encode_spans({{"<|end|", false}, {">", true}}), letters);
  EXPECT_EQ(tokenizer->encode_spans({{"<", true}, {"|end|>", false}}), letters);
  EXPECT_EQ(tokenizer->encode_spans({{"<|end|>", true}, {"<|end|>", false}}).back(), end);
}

TEST(SpecialTokens, MarkersOfTurnsFlaggedAsOrdinaryAreControlAllTheSame) {
  TokenizerData data = byte_vocabulary("deepseek-v3");
  const int user = add_token(data, "<｜User｜>", TokenType::user_defined);
  const int think = add_token(data, "<think>", TokenType::user_defined);
  const auto tokenizer = make_tokenizer(data);
  EXPECT_TRUE(tokenizer->is_control(user));
  EXPECT_FALSE(tokenizer->is_control(think));
  EXPECT_EQ(tokenizer->encode("<｜User｜>", false, true), Ids{user});
  EXPECT_EQ(tokenizer->encode("<｜User｜>", false, false).size(), 12u);
  EXPECT_EQ(tokenizer->decode({user, 'a'}), "<｜User｜>a");
}

TEST(Spans, AreOneTextForSplittingMergingAndUtf8) {
  TokenizerData data = byte_vocabulary("gpt-2");
  const int ab = add_merge(data, "a", "b");
  const auto tokenizer = make_tokenizer(data);
  EXPECT_EQ(tokenizer->encode_spans({{"a", false}, {"b", true}}), Ids{ab});
  EXPECT_EQ(tokenizer->encode_spans({{"\xC3", true}, {"\xA9", true}}), (Ids{0xC3, 0xA9}));
  EXPECT_EQ(tokenizer->encode_spans({}), Ids{});
}

TEST(Tokenizer, AddsBosAndEosOnlyWhenAskedAndPrescribed) {
  TokenizerData data = byte_vocabulary("gpt-2");
  data.bos = 1;
  data.eos = 2;
  data.add_bos = true;
  EXPECT_EQ(make_tokenizer(data)->encode("a", true, false), (Ids{1, 'a'}));
  EXPECT_EQ(make_tokenizer(data)->encode("a", false, false), Ids{'a'});
  data.add_eos = true;
  EXPECT_EQ(make_tokenizer(data)->encode("", true, false), (Ids{1, 2}));
}

TEST(Tokenizer, IdsWithoutTextAreEmpty) {
  TokenizerData data = byte_vocabulary("gpt-2");
  const int padding = add_token(data, "[PAD1]", TokenType::unused);
  const auto tokenizer = make_tokenizer(data);
  EXPECT_EQ(tokenizer->vocab_size(), padding + 1);
  for (const int id : {padding, padding + 1, -1, INT32_MAX}) EXPECT_EQ(tokenizer->token_bytes(id), "") << id;
  EXPECT_EQ(tokenizer->decode({'a', padding, 'b', padding + 1}), "ab");
}

TEST(StreamDecoder, GivesWholeCharactersAndTheSameTextAsDecoding) {
  const auto tokenizer = make_tokenizer(byte_vocabulary("gpt-2"));
  StreamDecoder stream(*tokenizer);
  EXPECT_EQ(stream.push('a'), "a");
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.push(0x9F), "");
  EXPECT_EQ(stream.push(0x98), "");
  EXPECT_EQ(stream.push(0x80), "\xF0\x9F\x98\x80");
  EXPECT_EQ(stream.push(0xE6), "");
  EXPECT_EQ(stream.push('b'), "\uFFFDb");
  EXPECT_EQ(stream.push(0xFF), "\uFFFD");
  EXPECT_EQ(stream.push(0xE6), "");
  EXPECT_EQ(stream.push(0x88), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
  EXPECT_EQ(tokenizer->decode({'a', 0xE6, 'b', 0xFF, 0xE6, 0x88}), "a\uFFFDb\uFFFD\uFFFD");
}

TEST(ByteBpe, AMegabyteWithoutASpaceTakesLinearithmicTime) {
  TokenizerData data = byte_vocabulary("gpt-2");
  std::string a = "a";
  for (; a.size() < 64; a += a) add_merge(data, a, a);
  const auto tokenizer = make_tokenizer(data);
  const auto start = std::chrono::steady_clock::now();
  const Ids ids = tokenizer->encode(std::string(1 << 20, 'a'), false, false);
  EXPECT_EQ(ids, Ids((1 << 20) / 64, 256 + 5));
  EXPECT_LT(std::chrono::steady_clock::now() - start,
            std::chrono::seconds(5));  // 0.2 s; quadratic merging needs hours
}

TEST(MakeTokenizer, RefusesAVocabularyThatContradictsItself) {
  const std::function<void(TokenizerData&)> faults[] = {
      [](auto& d) { d.tokens.clear(); },
      [](auto& d) { d.types.pop_back(); },
      [](auto& d) { d.types[3] = static_cast<TokenType>(7); },
      [](auto& d) { d.types[3] = static_cast<TokenType>(0); },
      [](auto& d) { d.scores.assign(3, 0.0f); },
      [](auto& d) { d.bos = 256; },
      [](auto& d) { d.eos = -2; },
      [](auto& d) { d.add_bos = true; },
      [](auto& d) { d.add_eos = true; },
      [](auto& d) { d.merges = {"ab"}; },
      [](auto& d) { d.merges = {"a b"}; },        // "ab" is no token
      [](auto& d) { d.merges = {"a nothing"}; },  // "nothing" is no token
      [](auto& d) { d.merges = {" a"}; },
      [](auto& d) { d.merges = {""}; },
  };
  for (size_t k = 0; k < std::size(faults); ++k) {
    TokenizerData data = byte_vocabulary("gpt-2");
    faults[k](data);
    EXPECT_EQ(refusal(data), ErrorCode::corrupt_file) << "fault " << k;
  }
}

TEST(MakeTokenizer, NamesTheModelOrPreTokenizerItDoesNotKnow) {
  std::string message;
  TokenizerData data = byte_vocabulary("klingon");
  EXPECT_EQ(refusal(data, &message), ErrorCode::unsupported);
  EXPECT_NE(message.find("klingon"), std::string::npos);
  data.model = "rwkv";
  EXPECT_EQ(refusal(data, &message), ErrorCode::unsupported);
  EXPECT_NE(message.find("rwkv"), std::string::npos);
}

}  // namespace
}  // namespace liuli
