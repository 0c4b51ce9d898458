#include "tokenizers/byte_alphabet.h"

#include <array>

#include "tokenizers/unicode.h"

namespace liuli {
namespace {

constexpr char32_t kAlphabetEnd = 0x100 + 68;

bool writes_itself(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

struct Alphabet {
  std::array<std::string, 256> text;
  std::array<int, kAlphabetEnd> byte_of;  // −1: not a character of the alphabet
};

const Alphabet& alphabet() {
  static const Alphabet table = [] {
    Alphabet a;
    a.byte_of.fill(-1);
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const char32_t character = writes_itself(byte) ? static_cast<char32_t>(byte) : next++;
      a.byte_of[character] = byte;
      append_utf8(a.text[static_cast<size_t>(byte)], character);
    }
    return a;
  }();
  return table;
}

int hex_digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; }

}  // namespace

const std::string& byte_character(uint8_t byte) { return alphabet().text[byte]; }

std::string bytes_of_spelling(std::string_view spelling) {
  std::string bytes;
  for (size_t at = 0; at < spelling.size();) {
    const Utf8Char c = read_utf8(spelling, at);
    const int byte = c.valid && c.code_point < kAlphabetEnd ? alphabet().byte_of[c.code_point] : -1;
    if (byte < 0) return std::string(spelling);
    bytes.push_back(static_cast<char>(byte));
    at += static_cast<size_t>(c.bytes);
  }
  return bytes;
}

int byte_token_value(std::string_view token) {
  if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>') return -1;
  const int high = hex_digit(token[3]), low = hex_digit(token[4]);
  return high < 0 || low < 0 ? -1 : 16 * high + low;
}

}  // namespace liuli
