#include "tokenizers/charsmap.h"

#include <fmt/format.h>

#include "liuli/error.h"
#include "tokenizers/unicode.h"

namespace liuli {
namespace {

// A unit of the double array (Darts-clone): bits 0–7 and 31 label, bit 8 "has a leaf", bit 9 scales the
// offset by 256, bits 10–30 offset. A leaf's unit has bit 31 set and the value below it.
uint32_t label(uint32_t unit) { return unit & 0x800000FFu; }
bool has_leaf(uint32_t unit) { return unit >> 8 & 1; }
uint32_t offset(uint32_t unit) { return unit >> 10 << ((unit & 0x200u) >> 6); }
uint32_t value(uint32_t unit) { return unit & 0x7FFFFFFFu; }

uint32_t read_u32(const uint8_t* p) {
  return uint32_t{p[0]} | uint32_t{p[1]} << 8 | uint32_t{p[2]} << 16 | uint32_t{p[3]} << 24;
}

}  // namespace

Charsmap::Charsmap(const std::vector<uint8_t>& table) {
  if (table.empty()) return;
  const size_t trie_bytes = table.size() < 4 ? 0 : read_u32(table.data());
  if (trie_bytes < 4 || trie_bytes % 4 != 0 || trie_bytes > table.size() - 4)
    throw Error(ErrorCode::corrupt_file,
                fmt::format("precompiled_charsmap: a trie of {} bytes in a table of {} bytes", trie_bytes,
                            table.size()));
  for (size_t at = 4; at < 4 + trie_bytes; at += 4) units_.push_back(read_u32(&table[at]));
  texts_.assign(table.begin() + static_cast<std::ptrdiff_t>(4 + trie_bytes), table.end());
  if (!texts_.empty() && (texts_.back() != '\0' || !valid_utf8(texts_)))
    throw Error(
        ErrorCode::corrupt_file,
        fmt::format("precompiled_charsmap: its {} bytes of text are not UTF-8 ended by NUL", texts_.size()));
}

std::string_view Charsmap::replacement(std::string_view text, size_t& bytes) const {
  bytes = 0;
  size_t found = texts_.size();
  uint32_t at = units_.empty() ? 0 : offset(units_[0]);
  for (size_t i = 0; i < text.size() && !units_.empty(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    at ^= byte;
    if (at >= units_.size() || label(units_[at]) != byte) break;
    const uint32_t unit = units_[at];
    at ^= offset(unit);
    if (!has_leaf(unit)) continue;
    if (at >= units_.size()) break;
    // An entry that ends inside a character or points outside the texts is no entry.
    if (value(units_[at]) < texts_.size() && valid_utf8(text.substr(0, i + 1))) {
      found = value(units_[at]);
      bytes = i + 1;
    }
  }
  if (bytes > 0 && valid_utf8(texts_.data() + found)) return texts_.data() + found;
  bytes = static_cast<size_t>(read_utf8(text, 0).bytes);
  return text.substr(0, bytes);
}

}  // namespace liuli
