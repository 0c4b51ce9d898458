#include "tokenizers/token_index.h"

#include <functional>

namespace liuli {
namespace {

constexpr size_t kSmallest = 16;

size_t table_size(size_t entries) {
  size_t n = kSmallest;
  while (n < 2 * entries) n *= 2;
  return n;
}

uint32_t tag_of(size_t hash) { return static_cast<uint32_t>(hash >> 32); }

}  // namespace

TokenIndex::TokenIndex(size_t expected) : slots_(table_size(expected)) {}

void TokenIndex::add(std::string_view token, int id) {
  if (2 * (used_ + 1) > slots_.size()) grow();
  const size_t hash = std::hash<std::string_view>()(token);
  size_t at = hash & (slots_.size() - 1);
  for (; slots_[at].id >= 0; at = (at + 1) & (slots_.size() - 1))
    if (slots_[at].tag == tag_of(hash) && slots_[at].token == token) return;
  slots_[at] = {token, id, tag_of(hash)};
  ++used_;
  if (token.size() > longest_) longest_ = token.size();
}

int TokenIndex::find(std::string_view token) const {
  const size_t hash = std::hash<std::string_view>()(token);
  for (size_t at = hash & (slots_.size() - 1); slots_[at].id >= 0; at = (at + 1) & (slots_.size() - 1))
    if (slots_[at].tag == tag_of(hash) && slots_[at].token == token) return slots_[at].id;
  return -1;
}

void TokenIndex::grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  used_ = 0;
  for (const Slot& slot : old)
    if (slot.id >= 0) add(slot.token, slot.id);
}

}  // namespace liuli
