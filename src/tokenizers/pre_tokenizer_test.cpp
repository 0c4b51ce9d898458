#include "tokenizers/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "liuli/error.h"
#include "tokenizers/unicode.h"

namespace liuli {
namespace {

using Pieces = std::vector<std::string>;

// "a·b" → {"a", "b"}, with ␣ for a space and ⏎ for a newline so that tables can be read.
Pieces pieces_of(std::string_view written) {
  Pieces pieces(1);
  for (size_t at = 0; at < written.size();) {
    const auto bytes = static_cast<size_t>(read_utf8(written, at).bytes);
    const std::string_view c = written.substr(at, bytes);
    if (c == "·")
      pieces.emplace_back();
    else
      pieces.back() += c == "␣" ? " " : c == "⏎" ? "\n" : std::string(c);
    at += bytes;
  }
  return pieces;
}

struct Row {
  const char *gpt2, *llama3, *qwen2, *deepseek3, *smollm;
};

// Splits made by the published regular expressions in two independent engines. "=": as the column to the
// left.
const Row kRows[] = {
    {"it·'s·␣IT·'·S", "it·'s·␣IT·'S", "=", "=", "it·'s·␣IT·'·S"},
    {"3333·␣12345", "333·3·␣·123·45", "3·3·3·3·␣·1·2·3·4·5", "333·3·␣·123·45", "3·3·3·3·␣·1·2·3·4·5"},
    {"foo·_·bar·(·x·);·⏎⏎␣·␣y", "foo·_bar·(x·);⏎⏎·␣·␣y", "=", "=", "foo·_·bar·(·x·);·⏎⏎␣·␣y"},
    {"⏎⏎␣⏎·␣z", "=", "=", "=", "="},
    {"x·\r⏎\r·⏎·y", "x·\r⏎\r⏎·y", "=", "=", "x·\r⏎\r·⏎·y"},
    {"a·\t·b", "a·\tb", "=", "=", "a·\t·b"},
    {"\u00a0·x", "\u00a0x", "=", "=", "\u00a0·x"},
    {"don·’·t", "don·’t", "=", "don·’·t", "="},
    {"␣e·\u0301", "=", "␣é", "␣e\u0301", "␣e·\u0301"},
    {"c·++·17", "=", "c·++·1·7", "c·++·17", "c·++·1·7"},
    {"x·␣␣", "=", "=", "=", "="},
    {"␣·␣x", "=", "=", "=", "="},
    // Look-ahead stops at the end of a piece that an earlier pass made.
    {"a·␣·␣1", "a·␣·␣·1", "=", "a·␣␣·1", "="},
    {"我a我", "=", "=", "我·a·我", "我a我"},
    {"we·'ll·,·␣I·'m·␣you·'re·␣they·'ve·␣I·'d", "=", "=", "=", "="},
    {"'re", "=", "=", "=", "="},
    {"\u0001\u0002·a", "=", "=", "\u0001·\u0002a", "\u0001\u0002·a"},
};

TEST(PreTokenize, MatchesThePublishedPatternsRowByRow) {
  const char* names[] = {"gpt-2", "llama-bpe", "qwen2", "deepseek-v3", "smollm"};
  for (const Row& row : kRows) {
    const char* columns[] = {row.gpt2, row.llama3, row.qwen2, row.deepseek3, row.smollm};
    std::string text;
    for (const std::string& piece : pieces_of(row.gpt2)) text += piece;
    const char* expected = columns[0];
    for (size_t k = 0; k < 5; ++k) {
      if (std::string_view(columns[k]) != "=") expected = columns[k];
      EXPECT_EQ(pre_tokenize(names[k], text), pieces_of(expected)) << names[k] << " of " << text;
    }
  }
}

TEST(PreTokenize, DefaultIsolatesPunctuationAndThreeDigitGroups) {
  EXPECT_EQ(pre_tokenize("default", "ab, 12345$x"), pieces_of("ab·,·␣·123·45·$·x"));
  EXPECT_EQ(pre_tokenize("default", "a\t1٣234 ½"), pieces_of("a·\t·1٣·234·␣·½"));
  EXPECT_EQ(pre_tokenize("default", "x ."), pieces_of("x·␣·."));
}

TEST(PreTokenize, PiecesAreNeverEmptyAndJoinToTheText) {
  std::mt19937 random(7);
  const char32_t alphabet[] = {'a',     'Z', '1',  ' ',    '\n',  '\r',   '\t',    '\'',
                               's',     '.', '$',  0xBD,   0x301, 0x6211, 0x3042,  0x30FB,
                               0x1F600, 0,   0xA0, 0x3000, 0x378, 0xFEFF, 0x10FFFF};
  for (const char* name : {"gpt-2", "llama-bpe", "dbrx", "qwen2", "smollm", "deepseek-v3", "default"}) {
    for (int round = 0; round < 2000; ++round) {
      std::string text;
      for (size_t n = random() % 20; n > 0; --n) append_utf8(text, alphabet[random() % std::size(alphabet)]);
      if (pre_tokenizer(name).nfc) text = to_nfc(text);
      std::string joined;
      for (const std::string& piece : pre_tokenize(name, text)) {
        EXPECT_FALSE(piece.empty());
        EXPECT_TRUE(valid_utf8(piece));
        joined += piece;
      }
      EXPECT_EQ(joined, text) << name;
    }
  }
}

TEST(PreTokenize, RefusesAnUnknownNameAndSaysWhichAreKnown) {
  try {
    pre_tokenize("klingon", "text");
    FAIL() << "an unknown pre-tokenizer was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string_view(error.what()).find("klingon"), std::string_view::npos);
    EXPECT_NE(std::string_view(error.what()).find("smollm"), std::string_view::npos);
  }
}

}  // namespace
}  // namespace liuli
