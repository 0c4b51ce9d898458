// Finds every entry of a set that begins at a place in a text, in one walk.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace liuli {

/// A trie over bytes. Edges live in one hash table keyed by (node, byte): 12 bytes each, no per-node
/// allocation.
class ByteTrie {
 public:
  static constexpr uint32_t kRoot = 0, kNone = UINT32_MAX;

  ByteTrie();
  /// Of two equal keys the first counts; an empty key is ignored. value ≥ 0.
  void add(std::string_view key, int value);
  /// The node one byte further, or kNone.
  uint32_t child(uint32_t node, char byte) const;
  /// The value of the key that ends at a node, or −1.
  int value(uint32_t node) const { return values_[node]; }

 private:
  struct Edge {
    uint64_t key = kFree;  // node · 256 + byte
    uint32_t node = kNone;
  };
  static constexpr uint64_t kFree = UINT64_MAX;
  size_t slot(uint64_t key) const;
  void grow();

  std::vector<Edge> edges_;
  std::vector<int> values_;
};

}  // namespace liuli
