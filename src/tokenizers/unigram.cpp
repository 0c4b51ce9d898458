#include "tokenizers/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "liuli/error.h"
#include "tokenizers/byte_alphabet.h"
#include "tokenizers/unicode.h"

namespace liuli {
namespace {

constexpr double kUnreached = -std::numeric_limits<double>::infinity();
constexpr double kUnknownPenalty = 10.0;  // below the worst piece, as SentencePiece has it

}  // namespace

void UnigramPaths::add(std::string_view piece, int id, double score) {
  pieces_.add(piece, id);
  if (scores_.size() <= static_cast<size_t>(id)) scores_.resize(static_cast<size_t>(id) + 1);
  scores_[static_cast<size_t>(id)] = score;
  worst_ = any_ ? std::min(worst_, score) : score;
  any_ = true;
}

// Viterbi, forwards: pieces that begin at a reached place may improve the places where they end.
void UnigramPaths::extend_from(std::string_view text, size_t at, std::vector<Best>& best) const {
  const auto offer = [&](size_t end, double score, int id) {
    const double exact = best[at].score + score;
    const double sum = sums_ == ScoreSums::f64 ? exact : double{static_cast<float>(exact)};
    if (sum > best[end].score) best[end] = {sum, static_cast<uint32_t>(at), id};
  };
  const size_t next = at + static_cast<size_t>(read_utf8(text, at).bytes);
  bool covered = false;  // some piece is exactly the next character
  uint32_t node = ByteTrie::kRoot;
  for (size_t end = at; end < text.size();) {
    node = pieces_.child(node, text[end++]);
    if (node == ByteTrie::kNone) break;
    const int id = pieces_.value(node);
    if (id < 0) continue;
    offer(end, scores_[static_cast<size_t>(id)], id);
    covered = covered || end == next;
  }
  const double unknown = worst_ - kUnknownPenalty;
  if (!covered) offer(next, sums_ == ScoreSums::f64 ? unknown : double{static_cast<float>(unknown)}, -1);
}

std::vector<UnigramSegment> UnigramPaths::best_segments(std::string_view text) const {
  std::vector<Best> best(text.size() + 1, {kUnreached, 0, -1});
  best[0].score = 0;
  for (size_t at = 0; at < text.size(); at += static_cast<size_t>(read_utf8(text, at).bytes))
    if (best[at].score > kUnreached) extend_from(text, at, best);
  std::vector<UnigramSegment> segments;
  for (size_t end = text.size(); end > 0; end = best[end].begin)
    segments.push_back({best[end].begin, end, best[end].id});
  std::reverse(segments.begin(), segments.end());
  return segments;
}

Unigram::Unigram(TokenizerData data) : PieceTokenizer(std::move(data)), paths_(ScoreSums::f32) {
  for (size_t id = 0; id < data_.tokens.size(); ++id)
    if (type(id) == TokenType::normal)
      paths_.add(data_.tokens[id], static_cast<int>(id), double{data_.scores[id]});
}

void Unigram::encode_text(std::string_view raw, std::vector<int>& ids) const {
  const std::string text = normalised(raw);
  for (const UnigramSegment& segment : paths_.best_segments(text)) {
    if (segment.id < 0)
      append_unknown(std::string_view(text).substr(segment.begin, segment.end - segment.begin), ids);
    else
      ids.push_back(segment.id);
  }
}

UnigramModel::UnigramModel(const TokenizerData& vocabulary, const std::vector<double>& scores,
                           bool byte_fallback)
    : paths_(ScoreSums::f64), unknown_(vocabulary.unknown) {
  byte_id_.fill(-1);
  for (size_t id = 0; id < scores.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    if (vocabulary.types[id] != TokenType::control) paths_.add(token, static_cast<int>(id), scores[id]);
    const int byte = byte_fallback ? byte_token_value(token) : -1;
    if (byte >= 0) byte_id_[static_cast<size_t>(byte)] = static_cast<int>(id);
  }
}

void UnigramModel::append_unknown(std::string_view text, std::vector<int>& ids) const {
  const auto missing = [&](char c) { return byte_id_[static_cast<uint8_t>(c)] < 0; };
  if (std::none_of(text.begin(), text.end(), missing)) {
    for (const char c : text) ids.push_back(byte_id_[static_cast<uint8_t>(c)]);
    return;
  }
  if (unknown_ < 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("\"{}\" has no token, and the vocabulary has none for unknown text", text));
  ids.push_back(unknown_);
}

// Neighbouring unknown characters are one unknown text.
void UnigramModel::encode(const std::vector<std::string_view>& pieces, std::vector<int>& ids) const {
  for (const std::string_view piece : pieces) {
    size_t unknown_begin = 0, unknown_end = 0;
    const auto end_unknown = [&] {
      if (unknown_begin < unknown_end)
        append_unknown(piece.substr(unknown_begin, unknown_end - unknown_begin), ids);
      unknown_begin = unknown_end;
    };
    for (const UnigramSegment& segment : paths_.best_segments(piece)) {
      if (segment.id < 0 || segment.id == unknown_) {
        if (unknown_begin == unknown_end) unknown_begin = segment.begin;
        unknown_end = segment.end;
        continue;
      }
      end_unknown();
      ids.push_back(segment.id);
    }
    end_unknown();
  }
}

}  // namespace liuli
