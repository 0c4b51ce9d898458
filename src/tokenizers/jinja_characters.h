// Python's view of characters in UTF-8 text: what is white space, how letters change case, where characters
// begin.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace liuli::jinja {

/// Bytes of the character that starts at `at` (1 for a stray byte).
size_t character_size(std::string_view text, size_t at);
/// Code point of the character at `at`; a stray byte gives U+FFFD.
uint32_t code_point(std::string_view text, size_t at);
/// Number of characters. O(n).
size_t character_count(std::string_view text);
/// Byte offset of the n-th character, text.size() when there are fewer. O(n).
size_t byte_offset(std::string_view text, size_t n);
void append_code_point(std::string& out, uint32_t code);

/// str.isspace of one code point.
bool is_space(uint32_t code);
/// Length of the white space that text starts with; end of the text once white space at its right is dropped.
size_t strip_left(std::string_view text);
size_t strip_right(std::string_view text, size_t end);

enum class Case { upper, lower, title };
/// The character in another case, as UTF-8 (one code point to one, "ß" to "SS" aside).
std::string change_case(std::string_view character, Case to);
bool is_letter(uint32_t code);
bool is_upper(uint32_t code);
bool is_lower(uint32_t code);
bool is_decimal_digit(uint32_t code);

/// First occurrence at or after `from`, npos if none. Linear in both lengths, whatever a hostile pair looks
/// like.
size_t find_text(std::string_view text, std::string_view needle, size_t from);

}  // namespace liuli::jinja
