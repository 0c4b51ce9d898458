// The merging loop both kinds of BPE share.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace liuli {

/// What two neighbours become: `order` decides who merges first (lowest, then leftmost).
struct PairMerge {
  static constexpr uint32_t kNever = UINT32_MAX;
  uint32_t order = kNever;
  int id = -1;
};

/// A stretch of a text; stretches are linked in order. A stretch that was merged into its left neighbour has
/// length 0.
struct MergeSymbol {
  int id;
  uint32_t begin, length;  ///< bytes
  int previous, next;      ///< −1 at the ends
  PairMerge pair = {};     ///< with the next
};

/// Merges neighbours until no pair is left. Symbols come filled in and linked; find_pair(left, right) gives
/// their PairMerge. O(n log n): a heap of (order, position), where an entry is stale when its position's pair
/// has another order now. (If the pair changed and the order is the same, merging it now is right all the
/// same.)
template <class FindPair>
void merge_pairs(std::vector<MergeSymbol>& symbols, std::vector<uint64_t>& heap, FindPair find_pair) {
  const auto refresh = [&](int at) {
    MergeSymbol& symbol = symbols[static_cast<size_t>(at)];
    symbol.pair =
        symbol.next < 0 ? PairMerge{} : find_pair(symbol, symbols[static_cast<size_t>(symbol.next)]);
    return symbol.pair.order != PairMerge::kNever;
  };
  const auto entry = [&](int at) {
    return uint64_t{symbols[static_cast<size_t>(at)].pair.order} << 32 | static_cast<uint32_t>(at);
  };
  const auto push = [&](int at) {
    if (at < 0 || !refresh(at)) return;
    heap.push_back(entry(at));
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };

  heap.clear();
  for (int at = 0; at < static_cast<int>(symbols.size()); ++at)
    if (refresh(at)) heap.push_back(entry(at));
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const auto order = static_cast<uint32_t>(heap.back() >> 32);
    const auto at = static_cast<int>(heap.back() & UINT32_MAX);
    heap.pop_back();
    MergeSymbol& left = symbols[static_cast<size_t>(at)];
    if (left.pair.order != order) continue;
    MergeSymbol& right = symbols[static_cast<size_t>(left.next)];
    left.id = left.pair.id;
    left.length += right.length;
    left.next = right.next;
    if (right.next >= 0) symbols[static_cast<size_t>(right.next)].previous = at;
    right.length = 0;
    right.pair = {};
    push(left.previous);
    push(at);
  }
}

}  // namespace liuli
