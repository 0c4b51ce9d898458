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

// Calls visit(bytes, place in texts_) for the entries that begin a text, shortest first, until it says false.
template <class Visit>
void Charsmap::each_prefix(std::string_view text, Visit visit) const {
  uint32_t at = units_.empty() ? 0 : offset(units_[0]);
  for (size_t i = 0; i < text.size() && !units_.empty(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    at ^= byte;
    if (at >= units_.size() || label(units_[at]) != byte) return;
    const uint32_t unit = units_[at];
    at ^= offset(unit);
    if (!has_leaf(unit)) continue;
    if (at >= units_.size()) return;
    // An entry that ends inside a character or points outside the texts is no entry.
    const uint32_t place = value(units_[at]);
    if (place < texts_.size() && valid_utf8(text.substr(0, i + 1)) && valid_utf8(texts_.data() + place) &&
        !visit(i + 1, place))
      return;
  }
}

std::string_view Charsmap::replacement(std::string_view text, size_t& bytes) const {
  bytes = 0;
  size_t found = 0;
  each_prefix(text, [&](size_t length, size_t place) {
    bytes = length;
    found = place;
    return true;
  });
  if (bytes > 0) return texts_.data() + found;
  bytes = static_cast<size_t>(read_utf8(text, 0).bytes);
  return text.substr(0, bytes);
}

std::optional<std::string_view> Charsmap::shortest_prefix(std::string_view text) const {
  std::optional<std::string_view> found;
  each_prefix(text, [&](size_t, size_t place) {
    found = texts_.data() + place;
    return false;
  });
  return found;
}

}  // namespace liuli
