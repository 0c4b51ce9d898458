// The printable spelling of bytes that byte-level vocabularies use.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace liuli {

/// Vocabulary files write bytes as printable characters: 33–126, 161–172 and 174–255 as themselves, the other
/// 68 in rising order as U+0100, U+0101, … (so a space is Ġ). Gives the character of a byte, as UTF-8.
const std::string& byte_character(uint8_t byte);

/// The bytes that a spelling stands for; a text with a character outside the alphabet is literal, as a whole.
std::string bytes_of_spelling(std::string_view spelling);

/// The value of a byte token "<0xHH>", or −1.
int byte_token_value(std::string_view token);

}  // namespace liuli
