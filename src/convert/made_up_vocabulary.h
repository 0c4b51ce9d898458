// A byte-level BPE vocabulary of any size, for models without words of their own.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace liuli {

/// Every byte has a token, and merges build lower-case words letter by letter ("t" + "h", "th" + "e", "Ġ" + "a"), so that
/// ordinary text comes out as pieces of three or four letters, as with a real vocabulary.
struct MadeUpVocabulary {
  std::vector<std::string> tokens;  ///< in GPT-2's alphabet of visible bytes, by id
  std::vector<int32_t> types;       ///< 1 normal, 3 control
  std::vector<std::string>
      merges;  ///< "left right", first is applied first; both halves and the result are tokens
};

/// `bos` and `eos` are the ids of the control tokens; −1: none. Both may be one.
/// Errors: invalid_argument when size has no room for 256 bytes and the control tokens, or an id is outside.
MadeUpVocabulary made_up_vocabulary(int64_t size, int64_t bos, int64_t eos);

}  // namespace liuli
