// Cuts a text into the pieces that byte-level BPE may not merge across: the published patterns as
// hand-written scanners.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace liuli {

/// A text taken apart once, so that scanners look at classes and not at bytes.
struct Characters {
  std::vector<char32_t> points;
  std::vector<uint8_t> classes;  ///< CharClass bits
  std::vector<uint32_t>
      offsets;  ///< of each character's first byte; one more than characters, the last = text.size()

  explicit Characters(std::string_view text);
  uint32_t size() const { return static_cast<uint32_t>(points.size()); }
};

/// Where the match that starts at character i ends; i itself when there is none. `end` is the end of the
/// piece, which a pattern cannot look beyond.
using Scanner = uint32_t (*)(const Characters& text, uint32_t i, uint32_t end);

/// How one kind of vocabulary splits. Each pass isolates its matches inside the pieces the pass before left.
struct PreTokenizer {
  std::vector<Scanner> passes;
  bool nfc = false;            ///< the text is normalised first
  bool ignore_merges = false;  ///< a piece that is a token is taken as it is
};

/// The rules of a name as GGUF's tokenizer.ggml.pre has it. Errors: unsupported, listing the known names.
const PreTokenizer& pre_tokenizer(std::string_view name);

/// The hand-written scanner of a published pattern, spelled as tokenizer.json has it; null for any other.
Scanner scanner_of_pattern(std::string_view pattern);

/// Both together, normalisation included: for showing and testing. Errors: as pre_tokenizer.
std::vector<std::string> pre_tokenize(std::string_view name, std::string_view text);

}  // namespace liuli
