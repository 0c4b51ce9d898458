#include "tokenizers/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <new>
#include <vector>

namespace liuli {
namespace {

constexpr char32_t kCodePoints = 0x110000;

uint8_t class_of_category(int category) {
  switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return kNumber;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return kMark;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return kPunctuation;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
      return kSymbol;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return kSpace;
    default:
      return 0;
  }
}

// Alphabetic is L, Nl and Other_Alphabetic; what of the latter is not a mark are the circled letters.
void mark_word_characters(std::vector<uint8_t>& table) {
  for (char32_t c = 0; c < kCodePoints; ++c) {
    const int category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
    if ((table[c] & (kLetter | kMark)) || category == UTF8PROC_CATEGORY_ND ||
        category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_PC)
      table[c] |= kWordChar;
  }
  constexpr char32_t kOthers[][2] = {
      {0x200C, 0x200D}, {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
  for (const auto& [first, last] : kOthers)
    for (char32_t c = first; c <= last; ++c) table[c] |= kWordChar;
}

// One byte per code point: 1.1 MB, of which a text touches a few pages. Asking utf8proc each time costs four
// times as much.
std::vector<uint8_t> make_class_table() {
  std::vector<uint8_t> table(kCodePoints);
  for (char32_t c = 0; c < kCodePoints; ++c)
    table[c] = class_of_category(utf8proc_category(static_cast<utf8proc_int32_t>(c)));
  // White_Space = the categories Z* and these six controls (and not U+001C … U+001F, unlike Python's \s).
  for (char32_t c = '\t'; c <= '\r'; ++c) table[c] = kSpace;
  table[0x85] = kSpace;
  table['\r'] |= kLineBreak;
  table['\n'] |= kLineBreak;
  mark_word_characters(table);
  return table;
}

// Decomposition, combining marks in canonical order. utf8proc's own ordering is an insertion sort:
// half a megabyte of marks in falling order would take minutes, so the marks are sorted here.
std::vector<utf8proc_int32_t> decompose(std::string_view text, bool compatibility) {
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (compatibility ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = read_utf8(text, at);
    at += static_cast<size_t>(c.bytes);
    utf8proc_int32_t parts[32];  // the longest decomposition has 18 characters (U+FDFA)
    int boundary = 0;
    const utf8proc_ssize_t n =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.code_point), parts, 32, options, &boundary);
    if (n > 0 && n <= 32) out.insert(out.end(), parts, parts + n);
  }
  const auto combining = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
  for (auto first = out.begin(); first != out.end();) {
    first = std::find_if(first, out.end(), combining);
    const auto last = std::find_if_not(first, out.end(), combining);
    std::stable_sort(first, last, [&](auto a, auto b) { return combining(a) < combining(b); });
    first = last;
  }
  return out;
}

}  // namespace

uint8_t char_class(char32_t code_point) {
  static const std::vector<uint8_t> table = make_class_table();
  return code_point < kCodePoints ? table[code_point] : 0;
}

Utf8Char read_utf8(std::string_view text, size_t at) {
  const auto lead = static_cast<uint8_t>(text[at]);
  if (lead < 0x80) return {lead, 1, true, false};
  const int length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0) return {kReplacementChar, 1, false, false};
  // The second byte's range excludes overlong forms (E0, F0), surrogates (ED) and values above U+10FFFF (F4).
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  char32_t code_point = lead & (0x7Fu >> length);
  for (int k = 1; k < length; ++k) {
    if (at + static_cast<size_t>(k) >= text.size()) return {kReplacementChar, k, false, true};
    const auto byte = static_cast<uint8_t>(text[at + static_cast<size_t>(k)]);
    const bool fits = k == 1 ? byte >= low && byte <= high : (byte & 0xC0) == 0x80;
    if (!fits) return {kReplacementChar, k, false, false};
    code_point = code_point << 6 | (byte & 0x3Fu);
  }
  return {code_point, length, true, false};
}

bool valid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = read_utf8(text, at);
    if (!c.valid) return false;
    at += static_cast<size_t>(c.bytes);
  }
  return true;
}

void append_utf8(std::string& text, char32_t c) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F)), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  }
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = read_utf8(text, at);
    if (c.valid)
      out.append(text, at, static_cast<size_t>(c.bytes));
    else
      append_utf8(out, kReplacementChar);
    at += static_cast<size_t>(c.bytes);
  }
  return out;
}

size_t incomplete_utf8_tail(std::string_view text) {
  for (size_t length = 1; length <= 3 && length <= text.size(); ++length) {
    const size_t at = text.size() - length;
    if ((static_cast<uint8_t>(text[at]) & 0xC0) == 0x80)
      continue;  // a continuation byte: its lead is further left
    const Utf8Char c = read_utf8(text, at);
    return c.incomplete && static_cast<size_t>(c.bytes) == length ? length : 0;
  }
  return 0;
}

std::string to_normal_form(std::string_view text, NormalForm form) {
  const bool composed = form == NormalForm::nfc || form == NormalForm::nfkc;
  // Below U+0300 nothing composes with its neighbour (lead bytes up to 0xCB), and ASCII has only one form.
  const auto settled = [&](char c) {
    return static_cast<uint8_t>(c) < (form == NormalForm::nfc ? 0xCC : 0x80);
  };
  if (std::all_of(text.begin(), text.end(), settled)) return std::string(text);
  std::vector<utf8proc_int32_t> points =
      decompose(text, form == NormalForm::nfkc || form == NormalForm::nfkd);
  auto n = static_cast<utf8proc_ssize_t>(points.size());
  if (composed)
    n = utf8proc_normalize_utf32(points.data(), n,
                                 static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  if (n < 0) throw std::bad_alloc();  // the only failure left: the code points come from a valid text
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < n; ++i)
    append_utf8(out, static_cast<char32_t>(points[static_cast<size_t>(i)]));
  return out;
}

void append_lowercase(std::string& text, char32_t c) {
  if (c == 0x130) return void(text += "i\u0307");  // the one letter that becomes two characters
  append_utf8(text, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

bool is_nonspacing_mark(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_MN;
}

bool is_other(char32_t c) {
  const int category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_CO || category == UTF8PROC_CATEGORY_CS;
}

bool is_ascii_punctuation(char32_t c) {
  return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
}

size_t grapheme_bytes(std::string_view text, size_t at) {
  Utf8Char c = read_utf8(text, at);
  size_t end = at + static_cast<size_t>(c.bytes);
  for (utf8proc_int32_t state = 0; end < text.size();) {
    const Utf8Char next = read_utf8(text, end);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(c.code_point),
                                         static_cast<utf8proc_int32_t>(next.code_point), &state))
      break;
    end += static_cast<size_t>(next.bytes);
    c = next;
  }
  return end - at;
}

}  // namespace liuli
