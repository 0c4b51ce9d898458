#include "tokenizers/sentencepiece.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "liuli/error.h"
#include "tokenizers/byte_alphabet.h"
#include "tokenizers/unicode.h"

namespace liuli {
namespace {

// Replaces every `from` by `to`.
std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  size_t begin = 0;
  for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from, begin)) {
    out.append(text, begin, at - begin).append(to);
    begin = at + from.size();
  }
  return out.append(text, begin);
}

// Maps a score to an integer that rises as the score falls. The bits of an IEEE number rise with its
// magnitude.
uint32_t falling_order(float score) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // −0 becomes +0
  const uint32_t rising = bits >> 31 ? ~bits : bits | 0x80000000u;
  return ~rising;
}

}  // namespace

PieceTokenizer::PieceTokenizer(TokenizerData data)
    : SplittingTokenizer(std::move(data)), charsmap_(data_.precompiled_charsmap) {
  byte_id_.fill(-1);
  for (size_t id = 0; id < data_.tokens.size(); ++id) {
    const TokenType t = type(id);
    const std::string& token = data_.tokens[id];
    if (t == TokenType::byte) {
      const int byte = byte_token_value(token);
      if (byte < 0)
        throw Error(ErrorCode::corrupt_file,
                    fmt::format("byte token {} is \"{}\", not \"<0xHH>\"", id, token));
      if (byte_id_[static_cast<size_t>(byte)] < 0) byte_id_[static_cast<size_t>(byte)] = static_cast<int>(id);
    } else if (t == TokenType::control) {
      special_.add(token, static_cast<int>(id), true);
    } else if (t == TokenType::user_defined) {
      // Files spell runs of spaces with spaces (Gemma) or with ▁; the text that is searched has spaces.
      special_.add(replaced(token, kSpaceMark, " "), static_cast<int>(id), false);
    }
  }
  const auto missing = std::count(byte_id_.begin(), byte_id_.end(), -1);
  byte_fallback_ = missing == 0;
  if (!byte_fallback_ && data_.unknown < 0)
    throw Error(ErrorCode::corrupt_file,
                fmt::format("{} of 256 byte tokens and the unknown token are missing: some texts have no ids",
                            missing));
}

std::string PieceTokenizer::normalised(std::string_view text) const {
  const bool collapse = data_.remove_extra_whitespaces;
  std::string out;
  // A text of which nothing is left still gets its prefix, unless spaces are stripped.
  if (!collapse && data_.add_space_prefix && !text.empty()) out = kSpaceMark;
  bool after_space = collapse;  // spaces are swallowed while this holds
  for (size_t at = 0, bytes = 0; at < text.size(); at += bytes) {
    for (const char c : charsmap_.replacement(text.substr(at), bytes)) {
      if (c == ' ' && after_space) continue;
      if (out.empty() && collapse && data_.add_space_prefix) out += kSpaceMark;
      if (c == ' ')
        out += kSpaceMark;
      else
        out += c;
      after_space = collapse && c == ' ';
    }
  }
  while (collapse && out.ends_with(kSpaceMark)) out.resize(out.size() - kSpaceMark.size());
  return out;
}

void PieceTokenizer::append_unknown(std::string_view text, std::vector<int>& ids) const {
  if (byte_fallback_) {
    for (const char c : text) ids.push_back(byte_id_[static_cast<uint8_t>(c)]);
  } else if (ids.empty() || ids.back() != data_.unknown) {
    ids.push_back(data_.unknown);
  }
}

std::string PieceTokenizer::token_bytes(int id) const {
  if (!known(id)) return "";
  const auto at = static_cast<size_t>(id);
  switch (type(at)) {
    case TokenType::unused:
      return "";
    case TokenType::byte:
      return std::string(1, static_cast<char>(byte_token_value(data_.tokens[at])));
    case TokenType::control:
    case TokenType::unknown:
      return data_.tokens[at];
    default:
      return replaced(data_.tokens[at], kSpaceMark, " ");
  }
}

std::string PieceTokenizer::decode(const std::vector<int>& ids) const {
  std::string text, run;  // run: the bytes of neighbouring byte tokens
  const auto end_run = [&] {
    if (valid_utf8(run))
      text += run;
    else
      for (size_t i = 0; i < run.size(); ++i) append_utf8(text, kReplacementChar);
    run.clear();
  };
  bool at_start = data_.add_space_prefix;
  for (const int id : ids) {
    if (has_type(id, TokenType::byte)) {
      run += token_bytes(id);
      at_start = false;
      continue;
    }
    end_run();
    std::string piece = token_bytes(id);
    if (at_start && !is_control(id)) {
      if (!piece.empty() && piece[0] == ' ') piece.erase(0, 1);
      at_start = false;
    }
    text += piece;
  }
  end_run();
  return replace_invalid_utf8(text);
}

SentencePieceBpe::SentencePieceBpe(TokenizerData data)
    : PieceTokenizer(std::move(data)), index_(data_.tokens.size()), order_(data_.tokens.size()) {
  for (size_t id = 0; id < data_.tokens.size(); ++id) {
    order_[id] = falling_order(data_.scores[id]);
    if (type(id) == TokenType::normal || type(id) == TokenType::unused)
      index_.add(data_.tokens[id], static_cast<int>(id));
  }
}

PairMerge SentencePieceBpe::find_pair(std::string_view text, const MergeSymbol& left,
                                      const MergeSymbol& right, Halves& halves) const {
  const size_t length = size_t{left.length} + right.length;
  if (length > index_.longest()) return {};
  const int id = index_.find(text.substr(left.begin, length));
  if (id < 0) return {};
  if (has_type(id, TokenType::unused)) halves[id] = left.length;
  return {order_[static_cast<size_t>(id)], id};
}

// Unused pieces take part in merging, and are then taken apart again: this is how SentencePiece does it.
void SentencePieceBpe::append_symbol(std::string_view text, int id, const Halves& halves,
                                     std::vector<int>& ids) const {
  if (id < 0) return append_unknown(text, ids);
  if (!has_type(id, TokenType::unused)) return ids.push_back(id);
  const auto half = halves.find(id);
  if (half == halves.end()) return append_unknown(text, ids);
  const std::string_view left = text.substr(0, half->second), right = text.substr(half->second);
  append_symbol(left, index_.find(left), halves, ids);
  append_symbol(right, index_.find(right), halves, ids);
}

void SentencePieceBpe::encode_text(std::string_view raw, std::vector<int>& ids) const {
  const std::string text = normalised(raw);
  if (text.empty()) return;
  std::vector<MergeSymbol> symbols;
  symbols.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const auto bytes = static_cast<size_t>(read_utf8(text, at).bytes);
    const auto n = static_cast<int>(symbols.size());
    const int id = index_.find(std::string_view(text).substr(at, bytes));
    symbols.push_back({id, static_cast<uint32_t>(at), static_cast<uint32_t>(bytes), n - 1, n + 1});
    at += bytes;
  }
  symbols.back().next = -1;
  std::vector<uint64_t> heap;
  Halves halves;
  merge_pairs(symbols, heap,
              [&](const auto& left, const auto& right) { return find_pair(text, left, right, halves); });
  for (int at = 0; at >= 0; at = symbols[static_cast<size_t>(at)].next) {
    const MergeSymbol& symbol = symbols[static_cast<size_t>(at)];
    append_symbol(std::string_view(text).substr(symbol.begin, symbol.length), symbol.id, halves, ids);
  }
}

}  // namespace liuli
