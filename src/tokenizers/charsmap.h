// SentencePiece's precompiled normaliser: which stretches of a text are replaced by what.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace liuli {

/// The file's table: u32 bytes of trie | trie, u32 units of a double array | replacement texts, each ended by
/// NUL. All little-endian. Nothing in it is trusted: a walk checks every index.
class Charsmap {
 public:
  Charsmap() = default;  ///< replaces nothing
  /// Errors: corrupt_file (the table is shorter than it says, or its texts are not UTF-8 ended by NUL).
  explicit Charsmap(const std::vector<uint8_t>& table);

  /// What the beginning of a non-empty text becomes, and how many of its bytes that replaces: the longest
  /// entry that matches, or else one character, unchanged.
  std::string_view replacement(std::string_view text, size_t& bytes) const;
  /// What the shortest entry that begins a text stands for; nothing if there is none.
  std::optional<std::string_view> shortest_prefix(std::string_view text) const;

 private:
  template <class Visit>
  void each_prefix(std::string_view text, Visit visit) const;

  std::vector<uint32_t> units_;
  std::string texts_;
};

}  // namespace liuli
