#include "tokenizers/byte_trie.h"

namespace liuli {
namespace {

uint64_t edge_key(uint32_t node, char byte) { return uint64_t{node} << 8 | static_cast<uint8_t>(byte); }

}  // namespace

ByteTrie::ByteTrie() : edges_(64), values_(1, -1) {}

// Where a key is, or the free slot where it belongs.
size_t ByteTrie::slot(uint64_t key) const {
  const size_t mask = edges_.size() - 1;
  size_t at = (key * 0x9E3779B97F4A7C15u) >> 20 & mask;
  while (edges_[at].key != key && edges_[at].key != kFree) at = (at + 1) & mask;
  return at;
}

uint32_t ByteTrie::child(uint32_t node, char byte) const { return edges_[slot(edge_key(node, byte))].node; }

void ByteTrie::add(std::string_view key, int value) {
  if (key.empty()) return;
  uint32_t node = kRoot;
  for (const char byte : key) {
    const uint64_t edge = edge_key(node, byte);
    Edge& found = edges_[slot(edge)];
    if (found.key == kFree) {
      found = {edge, static_cast<uint32_t>(values_.size())};
      values_.push_back(-1);
      node = found.node;
      if (2 * values_.size() > edges_.size()) grow();
    } else {
      node = found.node;
    }
  }
  if (values_[node] < 0) values_[node] = value;
}

void ByteTrie::grow() {
  std::vector<Edge> old(2 * edges_.size());
  old.swap(edges_);
  for (const Edge& edge : old)
    if (edge.key != kFree) edges_[slot(edge.key)] = edge;
}

}  // namespace liuli
