#include "tokenizers/unigram.h"

#include <algorithm>
#include <limits>

#include "tokenizers/unicode.h"

namespace liuli {
namespace {

constexpr double kUnreached = -std::numeric_limits<double>::infinity();
constexpr double kUnknownPenalty = 10.0;  // below the worst piece, as SentencePiece has it

}  // namespace

Unigram::Unigram(TokenizerData data)
    : PieceTokenizer(std::move(data)), charsmap_(data_.precompiled_charsmap) {
  double worst = std::numeric_limits<double>::infinity();
  for (size_t id = 0; id < data_.tokens.size(); ++id) {
    if (type(id) != TokenType::normal) continue;
    pieces_.add(data_.tokens[id], static_cast<int>(id));
    worst = std::min(worst, double{data_.scores[id]});
  }
  unknown_score_ = (worst < std::numeric_limits<double>::infinity() ? worst : 0.0) - kUnknownPenalty;
}

// Character replacements; a space before the text; runs of spaces collapsed and stripped if the file wants
// it; ▁ for spaces.
std::string Unigram::normalised(std::string_view text) const {
  const bool collapse = data_.remove_extra_whitespaces;
  std::string out;
  bool after_space = collapse;  // spaces are swallowed while this holds
  for (size_t at = 0, bytes = 0; at < text.size(); at += bytes) {
    for (const char c : charsmap_.replacement(text.substr(at), bytes)) {
      if (c == ' ' && after_space) continue;
      if (out.empty() && data_.add_space_prefix) out += kSpaceMark;
      if (c == ' ')
        out += kSpaceMark;
      else
        out += c;
      after_space = collapse && c == ' ';
    }
  }
  const bool trailing = collapse && after_space && !out.empty();
  if (trailing) out.resize(out.size() - kSpaceMark.size());
  return out;
}

// Viterbi, forwards: pieces that begin at a reached place may improve the places where they end.
void Unigram::extend_from(std::string_view text, size_t at, std::vector<Best>& best) const {
  const auto offer = [&](size_t end, double score, int id) {
    if (best[at].score + score > best[end].score)
      best[end] = {best[at].score + score, static_cast<uint32_t>(at), id};
  };
  const size_t next = at + static_cast<size_t>(read_utf8(text, at).bytes);
  bool covered = false;  // some piece is exactly the next character
  uint32_t node = ByteTrie::kRoot;
  for (size_t end = at; end < text.size();) {
    node = pieces_.child(node, text[end++]);
    if (node == ByteTrie::kNone) break;
    const int id = pieces_.value(node);
    if (id < 0) continue;
    offer(end, double{data_.scores[static_cast<size_t>(id)]}, id);
    covered = covered || end == next;
  }
  if (!covered) offer(next, unknown_score_, -1);
}

std::vector<Unigram::Best> Unigram::best_paths(std::string_view text) const {
  std::vector<Best> best(text.size() + 1, {kUnreached, 0, -1});
  best[0].score = 0;
  for (size_t at = 0; at < text.size(); at += static_cast<size_t>(read_utf8(text, at).bytes))
    if (best[at].score > kUnreached) extend_from(text, at, best);
  return best;
}

void Unigram::encode_text(std::string_view raw, std::vector<int>& ids) const {
  const std::string text = normalised(raw);
  const std::vector<Best> best = best_paths(text);
  std::vector<size_t> ends;  // of the pieces, last piece first
  for (size_t end = text.size(); end > 0; end = best[end].begin) ends.push_back(end);
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const Best& piece = best[*end];
    if (piece.id < 0)
      append_unknown(std::string_view(text).substr(piece.begin, *end - piece.begin), ids);
    else
      ids.push_back(piece.id);
  }
}

}  // namespace liuli
