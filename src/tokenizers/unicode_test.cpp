#include "tokenizers/unicode.h"

#include <gtest/gtest.h>

namespace liuli {
namespace {

const std::string kBad = "\xEF\xBF\xBD";  // U+FFFD

TEST(Unicode, ReplacesEachMaximalIllFormedStretchOnce) {
  const std::pair<std::string, std::string> cases[] = {
      {"a\x80z", "a" + kBad + "z"},
      {"\xC0\xAF", kBad + kBad},                        // overlong
      {"\xE0\x80\x80", kBad + kBad + kBad},             // overlong
      {"\xED\xA0\x80", kBad + kBad + kBad},             // a surrogate
      {"\xF4\x90\x80\x80", kBad + kBad + kBad + kBad},  // above U+10FFFF
      {"\xF0\x9F\x98"
       "a",
       kBad + "a"},  // cut short: one stretch
      {"\xE6\x88", kBad},
      {"\xFF\xFE", kBad + kBad},
      {"ok \xF0\x9F\x98\x80", "ok \xF0\x9F\x98\x80"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(replace_invalid_utf8(text), expected);
    EXPECT_EQ(valid_utf8(text), text == expected);
  }
}

TEST(Unicode, EveryCodePointSurvivesWritingAndReading) {
  for (char32_t c = 0; c < 0x110000; c = c == 0xD7FF ? 0xE000 : c + 1) {
    std::string text;
    append_utf8(text, c);
    const Utf8Char read = read_utf8(text, 0);
    ASSERT_TRUE(read.valid && read.code_point == c && static_cast<size_t>(read.bytes) == text.size())
        << int(c);
  }
}

TEST(Unicode, FindsTheUnfinishedCharacterAtTheEnd) {
  EXPECT_EQ(incomplete_utf8_tail(""), 0u);
  EXPECT_EQ(incomplete_utf8_tail("a\xF0"), 1u);
  EXPECT_EQ(incomplete_utf8_tail("a\xF0\x9F\x98"), 3u);
  EXPECT_EQ(incomplete_utf8_tail("a\xF0\x9F\x98\x80"), 0u);
  EXPECT_EQ(incomplete_utf8_tail("\x98\x80"), 0u);  // no lead byte: ill-formed already
  EXPECT_EQ(incomplete_utf8_tail("\xE0\x80"), 0u);  // cannot be completed
}

TEST(Unicode, WordCharactersAreLettersMarksDecimalsConnectorsAndJoiners) {
  for (const char32_t c : {U'a', U'7', U'_', U'我', U'\u0301', U'\u2167', U'\u24B6', U'\u200D'})
    EXPECT_TRUE(char_class(c) & kWordChar) << static_cast<uint32_t>(c);
  for (const char32_t c : {U'-', U' ', U'½', U'$', U'\u00AD'})
    EXPECT_FALSE(char_class(c) & kWordChar) << static_cast<uint32_t>(c);
}

TEST(Unicode, ClassesAreThoseOfTheUnicodeDatabase) {
  EXPECT_EQ(char_class('a') & ~kWordChar, kLetter);
  EXPECT_EQ(char_class(0x6211) & ~kWordChar, kLetter);
  EXPECT_EQ(char_class(0xBD) & ~kWordChar, kNumber);    // ½
  EXPECT_EQ(char_class(0x2167) & ~kWordChar, kNumber);  // Ⅷ
  EXPECT_EQ(char_class(0x301) & ~kWordChar, kMark);
  EXPECT_EQ(char_class('_') & ~kWordChar, kPunctuation);
  EXPECT_EQ(char_class('$') & ~kWordChar, kSymbol);
  EXPECT_EQ(char_class('\n') & ~kWordChar, kSpace | kLineBreak);
  EXPECT_EQ(char_class(0x0B) & ~kWordChar, kSpace);
  EXPECT_EQ(char_class(0x85) & ~kWordChar, kSpace);
  EXPECT_EQ(char_class(0x3000) & ~kWordChar, kSpace);
  EXPECT_EQ(char_class(0x1C) & ~kWordChar, 0);    // white space in Python, not in Unicode
  EXPECT_EQ(char_class(0x200B) & ~kWordChar, 0);  // zero width space is Cf
  EXPECT_EQ(char_class(0x378) & ~kWordChar, 0);   // unassigned
  EXPECT_EQ(char_class(0x110000) & ~kWordChar, 0);
}

TEST(Unicode, NormalisationComposesReordersAndKeepsExclusions) {
  EXPECT_EQ(to_nfc("e\u0301"), "\u00e9");
  EXPECT_EQ(to_nfc("a\u0301\u0323"), "\u1ea1\u0301");  // the dot below comes first
  EXPECT_EQ(to_nfc("\u1112\u1161\u11ab"), "\ud55c");   // Hangul
  EXPECT_EQ(to_nfc("\u0958"), "\u0915\u093c");         // a composition exclusion
  EXPECT_EQ(to_nfc("\uf900"), "\u8c48");               // a CJK compatibility character
  EXPECT_EQ(to_nfc(std::string("a\0b", 3)), std::string("a\0b", 3));
}

TEST(Unicode, AMillionMarksInTheWrongOrderAreSortedInTime) {
  std::string text = "a";
  for (int i = 0; i < 500000; ++i) text += "\u0301";
  for (int i = 0; i < 500000; ++i) text += "\u0316";
  const std::string normal = to_nfc(text);  // an insertion sort needs 2.5e11 steps here: minutes
  EXPECT_EQ(normal.substr(0, 4), "\u00e1\u0316");
  EXPECT_EQ(normal.size(), text.size() - 1);
}

}  // namespace
}  // namespace liuli
