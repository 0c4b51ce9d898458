// UTF-8, character classes and normalisation: what splitting text needs to know about Unicode.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace liuli {

constexpr char32_t kReplacementChar = 0xFFFD;

/// Classes a pre-tokenizer's pattern can ask for; a character has the sum of those that apply (often none).
enum CharClass : uint8_t {
  kLetter = 1,        ///< \p{L}
  kNumber = 2,        ///< \p{N} = Nd, Nl, No
  kSpace = 4,         ///< \s = the property White_Space
  kMark = 8,          ///< \p{M}
  kPunctuation = 16,  ///< \p{P}
  kSymbol = 32,       ///< \p{S}
  kLineBreak = 64,    ///< \r and \n only
  kWordChar = 128,    ///< \w = Alphabetic, \p{M}, \p{Nd}, \p{Pc}, the joiners U+200C and U+200D
};

/// Classes of a code point; 0 above U+10FFFF.
uint8_t char_class(char32_t code_point);

/// One character of a text, or one maximal ill-formed stretch (then the code point is U+FFFD).
struct Utf8Char {
  char32_t code_point;
  int bytes;        ///< 1 … 4
  bool valid;       ///< well formed; overlong forms, surrogates and values above U+10FFFF are not
  bool incomplete;  ///< not valid, but only because the text ends here
};
/// Reads the character at byte `at` < text.size().
Utf8Char read_utf8(std::string_view text, size_t at);

bool valid_utf8(std::string_view text);
void append_utf8(std::string& text, char32_t code_point);

/// The text with each maximal ill-formed stretch replaced by one U+FFFD (as Unicode recommends and Rust and
/// Python do).
std::string replace_invalid_utf8(std::string_view text);

/// Bytes at the end of the text that begin a character and lack the rest: 0 … 3.
size_t incomplete_utf8_tail(std::string_view text);

enum class NormalForm : uint8_t { nfc, nfd, nfkc, nfkd };
/// A normalisation form of a valid text.
std::string to_normal_form(std::string_view text, NormalForm form);
inline std::string to_nfc(std::string_view text) { return to_normal_form(text, NormalForm::nfc); }

/// What Rust's char knows, and so tokenizer.json means.
void append_lowercase(std::string& text, char32_t code_point);
bool is_nonspacing_mark(char32_t code_point);  ///< Mn
/// Categories Cc, Cf, Co and Cs: unassigned code points are none of them.
bool is_other(char32_t code_point);
bool is_ascii_punctuation(char32_t code_point);
/// Bytes of the extended grapheme cluster that begins at byte `at`.
size_t grapheme_bytes(std::string_view text, size_t at);

}  // namespace liuli
