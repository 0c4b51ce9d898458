#include "tokenizers/pre_tokenizer_steps.h"

#include <algorithm>

#include "tokenizers/byte_alphabet.h"
#include "tokenizers/unicode.h"

namespace liuli {

Pieces::Pieces(std::string text, bool at_start)
    : text_(std::move(text)), characters_(text_), at_start_(at_start) {
  if (characters_.size() > 0) ranges.push_back({0, characters_.size()});
}

std::string_view Pieces::view(PieceRange piece) const {
  const uint32_t begin = characters_.offsets[piece.begin], end = characters_.offsets[piece.end];
  return std::string_view(text_).substr(begin, end - begin);
}

std::vector<std::string_view> Pieces::views() const {
  std::vector<std::string_view> out;
  out.reserve(ranges.size());
  for (const PieceRange& piece : ranges) out.push_back(view(piece));
  return out;
}

void Pieces::rewrite(const std::function<std::string(std::string_view, bool)>& rewritten) {
  std::string text;
  std::vector<size_t> ends;  // bytes
  for (const PieceRange& piece : ranges) {
    text += rewritten(view(piece), piece.begin == 0);
    ends.push_back(text.size());
  }
  text_ = std::move(text);
  characters_ = Characters(text_);
  ranges.clear();
  uint32_t begin = 0, end = 0;
  for (const size_t stop : ends) {
    while (characters_.offsets[end] < stop) ++end;
    if (begin < end) ranges.push_back({begin, end});
    begin = end;
  }
}

namespace {

class ScannerPattern : public SplitPattern {
 public:
  explicit ScannerPattern(Scanner scan) : scan_(scan) {}
  void find_all(const Pieces& pieces, PieceRange piece, std::vector<PieceRange>& matches) const override {
    for (uint32_t i = piece.begin; i < piece.end;) {
      const uint32_t stop = scan_(pieces.characters(), i, piece.end);
      if (stop > i) matches.push_back({i, stop});
      i = std::max(stop, i + 1);
    }
  }

 private:
  Scanner scan_;
};

class RegexPattern : public SplitPattern {
 public:
  explicit RegexPattern(Regex regex) : regex_(std::move(regex)) {}
  // An empty match counts too (it cuts), unless it touches the match before it.
  void find_all(const Pieces& pieces, PieceRange piece, std::vector<PieceRange>& matches) const override {
    const std::vector<uint32_t>& offsets = pieces.characters().offsets;
    const std::string_view text = pieces.view(piece);
    const uint32_t base = offsets[piece.begin];
    uint32_t character = piece.begin;
    const auto character_at = [&](size_t byte) {
      while (character < piece.end && offsets[character] - base < byte) ++character;
      return character;
    };
    bool after_match = false;
    for (size_t from = 0, begin = 0, end = 0; from <= text.size() && regex_.find(text, from, begin, end);) {
      const bool touches = begin == end && after_match && begin == from;
      if (!touches) {
        const uint32_t first = character_at(begin);
        matches.push_back({first, character_at(end)});
      }
      after_match = begin < end;
      from = end;
      if (begin == end) from += end < text.size() ? static_cast<size_t>(read_utf8(text, end).bytes) : 1;
    }
  }

 private:
  Regex regex_;
};

class CharacterPattern : public SplitPattern {
 public:
  CharacterPattern(std::function<bool(char32_t)> inside, bool runs)
      : inside_(std::move(inside)), runs_(runs) {}
  void find_all(const Pieces& pieces, PieceRange piece, std::vector<PieceRange>& matches) const override {
    const std::vector<char32_t>& points = pieces.characters().points;
    for (uint32_t i = piece.begin; i < piece.end; ++i) {
      if (!inside_(points[i])) continue;
      if (runs_ && !matches.empty() && matches.back().end == i && i > piece.begin)
        matches.back().end = i + 1;
      else
        matches.push_back({i, i + 1});
    }
  }

 private:
  std::function<bool(char32_t)> inside_;
  bool runs_;
};

class WordsAndSignsPattern : public SplitPattern {
 public:
  void find_all(const Pieces& pieces, PieceRange piece, std::vector<PieceRange>& matches) const override {
    const std::vector<uint8_t>& classes = pieces.characters().classes;
    for (uint32_t i = piece.begin; i < piece.end;) {
      const uint32_t begin = i;
      const auto kind = [&](uint32_t at) { return classes[at] & (kWordChar | kSpace); };
      while (i < piece.end && kind(i) == kind(begin)) ++i;
      if (!(classes[begin] & kSpace)) matches.push_back({begin, i});
    }
  }
};

class LengthPattern : public SplitPattern {
 public:
  explicit LengthPattern(uint32_t characters) : characters_(characters) {}
  void find_all(const Pieces&, PieceRange piece, std::vector<PieceRange>& matches) const override {
    for (uint32_t i = piece.begin; i < piece.end;) {
      const uint32_t stop = piece.end - i > characters_ ? i + characters_ : piece.end;
      matches.push_back({i, stop});
      i = stop;
    }
  }

 private:
  uint32_t characters_;
};

// A stretch of a piece, matched or between matches.
struct Stretch {
  PieceRange range;
  bool match;
};

std::vector<Stretch> stretches_of(PieceRange piece, const std::vector<PieceRange>& matches, bool invert) {
  std::vector<Stretch> stretches;
  uint32_t at = piece.begin;
  for (const PieceRange& match : matches) {
    if (at < match.begin) stretches.push_back({{at, match.begin}, invert});
    stretches.push_back({match, !invert});
    at = match.end;
  }
  if (at < piece.end) stretches.push_back({{at, piece.end}, invert});
  return stretches;
}

class SplitStep : public PreTokenizerStep {
 public:
  SplitStep(SplitPatternPtr pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void apply(Pieces& pieces) const override {
    std::vector<PieceRange> out, matches;
    for (const PieceRange& piece : pieces.ranges) {
      matches.clear();
      pattern_->find_all(pieces, piece, matches);
      if (behavior_ == SplitBehavior::isolated)
        isolate(piece, matches, out);
      else
        append(stretches_of(piece, matches, invert_), out);
    }
    pieces.ranges = std::move(out);
  }

 private:
  static void add(PieceRange range, std::vector<PieceRange>& out) {
    if (range.begin < range.end) out.push_back(range);
  }

  static void isolate(PieceRange piece, const std::vector<PieceRange>& matches,
                      std::vector<PieceRange>& out) {
    uint32_t at = piece.begin;
    for (const PieceRange& match : matches) {
      add({at, match.begin}, out);
      add(match, out);
      at = match.end;
    }
    add({at, piece.end}, out);
  }

  void append(const std::vector<Stretch>& stretches, std::vector<PieceRange>& out) const {
    std::vector<PieceRange> kept;
    bool before = false;  // whether the neighbour on the side that is looked at was a match
    if (behavior_ == SplitBehavior::merged_with_next) {
      for (auto s = stretches.rbegin(); s != stretches.rend(); ++s) {
        if (s->match && !before && !kept.empty())
          kept.back().begin = s->range.begin;
        else
          kept.push_back(s->range);
        before = s->match;
      }
      std::reverse(kept.begin(), kept.end());
    } else {
      for (const Stretch& s : stretches) {
        if (s.match && behavior_ == SplitBehavior::removed) continue;
        const bool joins = behavior_ == SplitBehavior::merged_with_previous ? s.match && !before
                           : behavior_ == SplitBehavior::contiguous         ? s.match == before
                                                                            : false;
        if (joins && !kept.empty())
          kept.back().end = s.range.end;
        else
          kept.push_back(s.range);
        before = s.match;
      }
    }
    for (const PieceRange& range : kept) add(range, out);
  }

  SplitPatternPtr pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

class RewriteStep : public PreTokenizerStep {
 public:
  using Rewritten = std::function<std::string(std::string_view piece, bool at_start)>;
  explicit RewriteStep(Rewritten rewritten) : rewritten_(std::move(rewritten)) {}
  void apply(Pieces& pieces) const override {
    const bool at_start = pieces.at_start();
    pieces.rewrite([&](std::string_view piece, bool first) { return rewritten_(piece, first && at_start); });
  }

 private:
  Rewritten rewritten_;
};

}  // namespace

SplitPatternPtr scanner_pattern(Scanner scanner) { return std::make_unique<ScannerPattern>(scanner); }
SplitPatternPtr regex_pattern(Regex regex) { return std::make_unique<RegexPattern>(std::move(regex)); }
SplitPatternPtr character_pattern(std::function<bool(char32_t)> inside, bool runs) {
  return std::make_unique<CharacterPattern>(std::move(inside), runs);
}
SplitPatternPtr words_and_signs_pattern() { return std::make_unique<WordsAndSignsPattern>(); }
SplitPatternPtr length_pattern(uint32_t characters) { return std::make_unique<LengthPattern>(characters); }

PreTokenizerStepPtr split_step(SplitPatternPtr pattern, SplitBehavior behavior, bool invert) {
  return std::make_unique<SplitStep>(std::move(pattern), behavior, invert);
}

PreTokenizerStepPtr prefix_space_step() {
  return std::make_unique<RewriteStep>([](std::string_view piece, bool) {
    return piece.starts_with(' ') ? std::string(piece) : std::string(1, ' ').append(piece);
  });
}

PreTokenizerStepPtr byte_spelling_step() {
  return std::make_unique<RewriteStep>([](std::string_view piece, bool) {
    std::string out;
    for (const char byte : piece) out += byte_character(static_cast<uint8_t>(byte));
    return out;
  });
}

PreTokenizerStepPtr space_mark_step(std::string mark, PrependScheme scheme) {
  return std::make_unique<RewriteStep>(
      [mark = std::move(mark), scheme](std::string_view piece, bool at_start) {
        std::string marked;
        for (const char c : piece) {
          if (c == ' ')
            marked += mark;
          else
            marked += c;
        }
        const bool wanted = scheme == PrependScheme::always || (scheme == PrependScheme::first && at_start);
        return wanted && !marked.starts_with(mark) ? mark + marked : marked;
      });
}

}  // namespace liuli
