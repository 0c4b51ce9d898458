// How a text falls into the pieces that a model encodes one by one: steps that cut, drop and rewrite.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/pre_tokenizer.h"
#include "tokenizers/regex.h"

namespace liuli {

/// Characters [begin, end) of a text.
struct PieceRange {
  uint32_t begin, end;
};

/// A text and the pieces it has fallen into so far, in order, none of them empty.
class Pieces {
 public:
  /// at_start: the text is the beginning of what is encoded, not a stretch behind a special token.
  Pieces(std::string text, bool at_start);

  const std::string& text() const { return text_; }
  const Characters& characters() const { return characters_; }
  bool at_start() const { return at_start_; }
  std::string_view view(PieceRange piece) const;
  std::vector<std::string_view> views() const;

  std::vector<PieceRange> ranges;
  /// Gives every piece another text: rewritten(piece, is the first of the text).
  void rewrite(const std::function<std::string(std::string_view piece, bool first)>& rewritten);

 private:
  std::string text_;
  Characters characters_;
  bool at_start_;
};

/// Finds stretches in a piece. Immutable.
class SplitPattern {
 public:
  virtual ~SplitPattern() = default;
  /// Appends the matches inside a piece, in order, not overlapping.
  virtual void find_all(const Pieces& pieces, PieceRange piece, std::vector<PieceRange>& matches) const = 0;
};
using SplitPatternPtr = std::unique_ptr<SplitPattern>;

SplitPatternPtr scanner_pattern(Scanner scanner);
SplitPatternPtr regex_pattern(Regex regex);
/// Single characters, or (runs) maximal runs of them.
SplitPatternPtr character_pattern(std::function<bool(char32_t)> inside, bool runs);
/// \w+ and [^\w\s]+.
SplitPatternPtr words_and_signs_pattern();
SplitPatternPtr length_pattern(uint32_t characters);

/// What happens to matches: dropped; pieces of their own; joined to the piece before or behind; joined to
/// neighbouring matches.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

class PreTokenizerStep {
 public:
  virtual ~PreTokenizerStep() = default;
  virtual void apply(Pieces& pieces) const = 0;
};
using PreTokenizerStepPtr = std::unique_ptr<PreTokenizerStep>;

/// invert: what is between the matches counts as match, and the other way round.
PreTokenizerStepPtr split_step(SplitPatternPtr pattern, SplitBehavior behavior, bool invert = false);
/// A space in front of every piece that has none.
PreTokenizerStepPtr prefix_space_step();
/// Bytes written in the byte alphabet.
PreTokenizerStepPtr byte_spelling_step();

enum class PrependScheme { always, first, never };
/// Spaces become `mark`; a mark in front of every piece, or of the first of the whole text.
PreTokenizerStepPtr space_mark_step(std::string mark, PrependScheme scheme);

}  // namespace liuli
