// SentencePiece's two models on vocabularies small enough to work out by hand.
#include "tokenizers/sentencepiece.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "liuli/error.h"
#include "tokenizers/charsmap.h"

namespace liuli {
namespace {

using Ids = std::vector<int>;

struct Piece {
  const char* text;
  float score;
  TokenType type = TokenType::normal;
};

// 0 <unk>, 1 <s>, 2 </s>, then the pieces from id 3, then the bytes if asked.
TokenizerData vocabulary(const std::string& model, const std::vector<Piece>& pieces, bool bytes) {
  TokenizerData data;
  data.model = model;
  data.unknown = 0, data.bos = 1, data.eos = 2;
  const auto add = [&](const std::string& text, float score, TokenType type) {
    data.tokens.push_back(text);
    data.scores.push_back(score);
    data.types.push_back(type);
  };
  add("<unk>", 0, TokenType::unknown);
  add("<s>", 0, TokenType::control);
  add("</s>", 0, TokenType::control);
  for (const Piece& piece : pieces) add(piece.text, piece.score, piece.type);
  const char* digits = "0123456789ABCDEF";
  for (int byte = 0; bytes && byte < 256; ++byte)
    add(std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">", 0, TokenType::byte);
  return data;
}

const std::vector<Piece> kBpePieces = {
    {"▁", -9},
    {"a", -10},
    {"b", -11},
    {"c", -12},  // 3 4 5 6
    {"ab", -3},
    {"bc", -2},
    {"▁a", -1},
    {"aa", -4},  // 7 8 9 10
    {"x", -13},
    {"y", -14},
    {"z", -15},
    {"xy", -5, TokenType::unused},
    {"xyz", -6},  // 11 … 15
    {"  ", -7, TokenType::user_defined},
    {"▁▁▁", -8, TokenType::user_defined},  // 16 17
};

TEST(SentencePieceBpe, MergesTheBestScoreFirstThenLeftmost) {
  const auto tokenizer = make_tokenizer(vocabulary("llama", kBpePieces, true));
  EXPECT_EQ(tokenizer->encode("abc", false, false), (Ids{4, 8}));   // bc (−2) before ab (−3)
  EXPECT_EQ(tokenizer->encode(" abc", false, false), (Ids{9, 8}));  // ▁a (−1) first
  EXPECT_EQ(tokenizer->encode("aaa", false, false), (Ids{10, 4}));  // a tie: the left pair
  EXPECT_EQ(tokenizer->encode("b a", false, false), (Ids{5, 9}));
}

TEST(SentencePieceBpe, PutsOneSpaceBeforeEachStretchIfTheFileSaysSo) {
  TokenizerData data = vocabulary("llama", kBpePieces, true);
  data.add_space_prefix = true;
  data.add_bos = true;
  const auto tokenizer = make_tokenizer(data);
  EXPECT_EQ(tokenizer->encode("a", true, false), (Ids{1, 9}));
  EXPECT_EQ(tokenizer->encode("a</s>a", false, true), (Ids{9, 2, 9}));
  EXPECT_EQ(tokenizer->encode("", true, false), Ids{1});
  EXPECT_EQ(tokenizer->decode({9, 5}), "ab");
  EXPECT_EQ(tokenizer->decode({1, 9, 9}), "<s>a a");  // one space only, and only at the start
  EXPECT_EQ(tokenizer->token_bytes(9), " a");
}

TEST(SentencePieceBpe, FindsUserDefinedRunsOfSpacesInTheRawText) {
  const auto tokenizer = make_tokenizer(vocabulary("llama", kBpePieces, true));
  EXPECT_EQ(tokenizer->encode("a  b", false, false), (Ids{4, 16, 5}));
  EXPECT_EQ(tokenizer->encode("a   b", false, false), (Ids{4, 17, 5}));
  EXPECT_EQ(tokenizer->encode("     ", false, false), (Ids{17, 16}));
  EXPECT_EQ(tokenizer->decode({4, 17, 16, 5}), "a     b");
}

TEST(SentencePieceBpe, UnusedPiecesHelpToMergeAndAreTakenApart) {
  const auto tokenizer = make_tokenizer(vocabulary("llama", kBpePieces, true));
  EXPECT_EQ(tokenizer->encode("xyz", false, false), Ids{15});
  EXPECT_EQ(tokenizer->encode("xya", false, false), (Ids{11, 12, 4}));
}

TEST(SentencePieceBpe, FallsBackToBytesOrToTheUnknownToken) {
  const int byte0 = 3 + static_cast<int>(kBpePieces.size());
  const auto with_bytes = make_tokenizer(vocabulary("llama", kBpePieces, true));
  EXPECT_EQ(with_bytes->encode("aé", false, false), (Ids{4, byte0 + 0xC3, byte0 + 0xA9}));
  EXPECT_EQ(with_bytes->encode("\xFF", false, false), (Ids{byte0 + 0xEF, byte0 + 0xBF, byte0 + 0xBD}));
  EXPECT_EQ(with_bytes->encode("<0x41>", false, true).size(), 6u);  // the name of a byte token is text
  const auto without = make_tokenizer(vocabulary("llama", kBpePieces, false));
  EXPECT_EQ(without->encode("aéb", false, false), (Ids{4, 0, 5}));
  EXPECT_EQ(without->encode("aéèb", false, false), (Ids{4, 0, 5}));  // neighbours are one
  EXPECT_EQ(without->encode("é</s>è", false, true), (Ids{0, 2, 0}));
}

TEST(SentencePieceBpe, DecodesAnIllFormedRunByteForByte) {
  const int byte0 = 3 + static_cast<int>(kBpePieces.size());
  const auto tokenizer = make_tokenizer(vocabulary("llama", kBpePieces, true));
  EXPECT_EQ(tokenizer->decode({4, byte0 + 0xC3, byte0 + 0xA9, 5}), "aéb");
  EXPECT_EQ(tokenizer->decode({4, byte0 + 0xE6, byte0 + 0x88, 5}), "a\uFFFD\uFFFDb");
  EXPECT_EQ(tokenizer->decode({9, -1, 1 << 20}), " a");
}

TEST(SentencePieceBpe, AMegabyteOfOneLetterIsEncodedInTime) {
  const auto tokenizer = make_tokenizer(vocabulary("llama", kBpePieces, true));
  EXPECT_EQ(tokenizer->encode(std::string(1 << 20, 'a'), false, false), Ids(1 << 19, 10));
}

TEST(MakeTokenizer, RefusesBrokenSentencePieceVocabularies) {
  const auto refused = [](const TokenizerData& data) {
    try {
      make_tokenizer(data);
    } catch (const Error& error) {
      return error.code() == ErrorCode::corrupt_file;
    }
    return false;
  };
  for (const char* model : {"llama", "t5"}) {
    const TokenizerData good = vocabulary(model, kBpePieces, true);
    TokenizerData data = good;
    data.scores.pop_back();
    EXPECT_TRUE(refused(data));
    data = good;
    data.scores[4] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(refused(data));
    for (const char* name : {"<0x4>", "<0x4G>", "<0x041>", "0x41", "<0X41>", "<0x4a>"}) {
      data = good;
      data.tokens.back() = name;
      EXPECT_TRUE(refused(data)) << name;
    }
    data = vocabulary(model, kBpePieces, false);
    data.unknown = -1;
    EXPECT_TRUE(refused(data));
  }
}

const std::vector<Piece> kUnigramPieces = {
    {"▁", -2}, {"▁a", -3}, {"b", -4}, {"ab", -5}, {"▁ab", -6.5f}, {"abb", -7},  // 3 … 8
};

TokenizerData unigram(bool bytes) {
  TokenizerData data = vocabulary("t5", kUnigramPieces, bytes);
  data.add_space_prefix = true;
  return data;
}

TEST(Unigram, TakesTheSegmentationWithTheHighestSum) {
  const auto tokenizer = make_tokenizer(unigram(false));
  EXPECT_EQ(tokenizer->encode("ab", false, false), Ids{7});        // ▁ab −6.5; ▁a b −7; ▁ ab −7
  EXPECT_EQ(tokenizer->encode("abb", false, false), (Ids{3, 8}));  // ▁ abb −9; ▁ab b −10.5; ▁a b b −11
  EXPECT_EQ(tokenizer->encode("b b", false, false), (Ids{3, 5, 3, 5}));
  EXPECT_EQ(tokenizer->decode({7, 3, 5}), "ab b");
}

TEST(Unigram, FusesUnknownCharactersOrSpellsTheirBytes) {
  EXPECT_EQ(make_tokenizer(unigram(false))->encode("xéb x", false, false), (Ids{3, 0, 5, 3, 0}));
  const int byte0 = 3 + static_cast<int>(kUnigramPieces.size());
  EXPECT_EQ(make_tokenizer(unigram(true))->encode("éb", false, false),
            (Ids{3, byte0 + 0xC3, byte0 + 0xA9, 5}));
}

TEST(Unigram, CollapsesSpacesOnlyIfTheFileSaysSo) {
  TokenizerData data = unigram(false);
  EXPECT_EQ(make_tokenizer(data)->encode(" b  b ", false, false), (Ids{3, 3, 5, 3, 3, 5, 3}));
  data.remove_extra_whitespaces = true;
  EXPECT_EQ(make_tokenizer(data)->encode(" b  b ", false, false), (Ids{3, 5, 3, 5}));
  EXPECT_EQ(make_tokenizer(data)->encode("   ", false, false), Ids{});
  data.add_eos = true;
  EXPECT_EQ(make_tokenizer(data)->encode("b", true, false), (Ids{3, 5, 2}));
}

// A double array for "A" → "a" and "é" (C3 A9) → "b". The root's offset is 0x40, so "A" (0x41) leads to unit
// 1 and C3 to unit 0x83; the offsets of the others were chosen to lead to units 2, 3 and 4.
std::vector<uint8_t> small_charsmap() {
  std::vector<uint32_t> units(0x84);
  units[0] = 0x40 << 10;
  units[1] = 0x41 | 0x100 | 3 << 10;  // 1 ^ 3 = 2: the leaf
  units[2] = 0x80000000u | 0;
  units[0x83] = 0xC3 | 0x29 << 10;    // 0x83 ^ 0x29 ^ 0xA9 = 3
  units[3] = 0xA9 | 0x100 | 7 << 10;  // 3 ^ 7 = 4: the leaf
  units[4] = 0x80000000u | 2;
  std::vector<uint8_t> table;
  const auto put = [&](uint32_t value) {
    for (int k = 0; k < 4; ++k) table.push_back(static_cast<uint8_t>(value >> 8 * k));
  };
  put(static_cast<uint32_t>(4 * units.size()));
  for (const uint32_t unit : units) put(unit);
  for (const char c : std::string("a\0b\0", 4)) table.push_back(static_cast<uint8_t>(c));
  return table;
}

TEST(Charsmap, ReplacesTheLongestEntryAndKeepsOtherCharacters) {
  TokenizerData data = unigram(false);
  data.precompiled_charsmap = small_charsmap();
  EXPECT_EQ(make_tokenizer(data)->encode("Aéé", false, false), (Ids{3, 8}));  // abb
  const Charsmap map(small_charsmap());
  size_t bytes = 0;
  EXPECT_EQ(map.replacement("我A", bytes), "我");
  EXPECT_EQ(bytes, 3u);
  EXPECT_EQ(map.replacement("éA", bytes), "b");
  EXPECT_EQ(bytes, 2u);
}

TEST(Charsmap, RefusesATableThatIsShorterThanItSays) {
  std::vector<uint8_t> table = small_charsmap();
  table.pop_back();  // the last text lacks its NUL
  EXPECT_THROW(Charsmap{table}, Error);
  table.resize(100);  // the trie is cut
  EXPECT_THROW(Charsmap{table}, Error);
  EXPECT_THROW(Charsmap(std::vector<uint8_t>{1, 2}), Error);
  EXPECT_THROW(Charsmap(std::vector<uint8_t>{0, 0, 0, 0}), Error);
}

TEST(Charsmap, SurvivesAnyCorruptionOfItsUnits) {
  const std::vector<uint8_t> good = small_charsmap();
  for (size_t at = 4; at + 4 < good.size(); ++at) {
    for (const uint8_t value : {0xFF, 0x80, 0x01, 0x7F}) {
      std::vector<uint8_t> bad = good;
      bad[at] = value;
      const Charsmap map(bad);
      for (const char* text : {"A", "é", "éA", "b"}) {
        size_t bytes = 0;
        map.replacement(text, bytes);
        EXPECT_GE(bytes, 1u);
        EXPECT_LE(bytes, std::string_view(text).size());
      }
    }
  }
}

}  // namespace
}  // namespace liuli
