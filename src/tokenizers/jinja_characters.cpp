#include "tokenizers/jinja_characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

namespace liuli::jinja {
namespace {

struct Decoded {
  utf8proc_int32_t code;
  size_t size;
};

Decoded decode(std::string_view text, size_t at) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at;
  if (*bytes < 0x80) return {*bytes, 1};
  utf8proc_int32_t code = 0;
  const auto size = utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
  return size > 0 ? Decoded{code, static_cast<size_t>(size)} : Decoded{0xFFFD, 1};
}

utf8proc_category_t category(uint32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)); }

// Knuth-Morris-Pratt: for each prefix of the needle, the longest border that can still match.
std::vector<uint32_t> borders(std::string_view needle) {
  std::vector<uint32_t> border(needle.size() + 1, 0);
  for (size_t i = 1, k = 0; i < needle.size(); ++i) {
    while (k > 0 && needle[i] != needle[k]) k = border[k];
    if (needle[i] == needle[k]) ++k;
    border[i + 1] = static_cast<uint32_t>(k);
  }
  return border;
}

}  // namespace

size_t character_size(std::string_view text, size_t at) { return decode(text, at).size; }
uint32_t code_point(std::string_view text, size_t at) { return static_cast<uint32_t>(decode(text, at).code); }

size_t character_count(std::string_view text) {
  size_t n = 0;
  for (size_t i = 0; i < text.size(); i += character_size(text, i)) ++n;
  return n;
}

size_t byte_offset(std::string_view text, size_t n) {
  size_t i = 0;
  for (; n > 0 && i < text.size(); --n) i += character_size(text, i);
  return i;
}

void append_code_point(std::string& out, uint32_t code) {
  utf8proc_uint8_t bytes[4];
  const bool valid = utf8proc_codepoint_valid(static_cast<utf8proc_int32_t>(code));
  const auto size = utf8proc_encode_char(valid ? static_cast<utf8proc_int32_t>(code) : 0xFFFD, bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

bool is_space(uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

size_t strip_left(std::string_view text) {
  size_t i = 0;
  while (i < text.size() && is_space(code_point(text, i))) i += character_size(text, i);
  return i;
}

size_t strip_right(std::string_view text, size_t end) {
  while (end > 0) {
    size_t start = end - 1;
    while (start > 0 && end - start < 4 && (text[start] & 0xC0) == 0x80) --start;
    const std::string_view last = text.substr(start, end - start);
    if (character_size(last, 0) != last.size() || !is_space(code_point(last, 0))) break;
    end = start;
  }
  return end;
}

std::string change_case(std::string_view character, Case to) {
  const utf8proc_int32_t code = decode(character, 0).code;
  if (code == 0xDF && to != Case::lower) return to == Case::upper ? "SS" : "Ss";
  const utf8proc_int32_t changed = to == Case::upper   ? utf8proc_toupper(code)
                                   : to == Case::lower ? utf8proc_tolower(code)
                                                       : utf8proc_totitle(code);
  if (changed == code) return std::string(character);
  std::string out;
  append_code_point(out, static_cast<uint32_t>(changed));
  return out;
}

bool is_upper(uint32_t code) { return category(code) == UTF8PROC_CATEGORY_LU; }
bool is_lower(uint32_t code) { return category(code) == UTF8PROC_CATEGORY_LL; }
bool is_decimal_digit(uint32_t code) { return category(code) == UTF8PROC_CATEGORY_ND; }
bool is_letter(uint32_t code) {
  const utf8proc_category_t c = category(code);
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

size_t find_text(std::string_view text, std::string_view needle, size_t from) {
  constexpr size_t kShort = 16;  // the library's search is faster, and quadratic only in this factor
  if (needle.size() <= kShort) return text.find(needle, from);
  if (from > text.size() || needle.size() > text.size() - from) return std::string_view::npos;
  const std::vector<uint32_t> border = borders(needle);
  for (size_t i = from, k = 0; i < text.size(); ++i) {
    while (k > 0 && text[i] != needle[k]) k = border[k];
    if (text[i] == needle[k]) ++k;
    if (k == needle.size()) return i + 1 - k;
  }
  return std::string_view::npos;
}

}  // namespace liuli::jinja
