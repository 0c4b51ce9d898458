#include "tokenizers/wordpiece.h"

#include <fmt/format.h>

#include <algorithm>

#include "liuli/error.h"
#include "tokenizers/unicode.h"

namespace liuli {
namespace {

TokenIndex index_of(const TokenizerData& vocabulary) {
  TokenIndex index(vocabulary.tokens.size());
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
    if (vocabulary.types.empty() || vocabulary.types[id] != TokenType::control)
      index.add(vocabulary.tokens[id], static_cast<int>(id));
  return index;
}

bool continues_character(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

}  // namespace

WordPiece::WordPiece(const TokenizerData& vocabulary, std::string prefix, size_t longest_word)
    : index_(index_of(vocabulary)),
      prefix_(std::move(prefix)),
      longest_word_(longest_word),
      unknown_(vocabulary.unknown) {}

bool WordPiece::append_word(std::string_view word, std::string& candidate, std::vector<int>& ids) const {
  for (size_t begin = 0; begin < word.size();) {
    int id = -1;
    size_t end = std::min(word.size(), begin + index_.longest());
    for (; end > begin; --end) {
      if (end < word.size() && continues_character(word[end])) continue;
      candidate.assign(begin > 0 ? prefix_ : "").append(word, begin, end - begin);
      id = index_.find(candidate);
      if (id >= 0) break;
    }
    if (id < 0) return false;
    ids.push_back(id);
    begin = end;
  }
  return true;
}

void WordPiece::encode(const std::vector<std::string_view>& pieces, std::vector<int>& ids) const {
  std::string candidate;
  for (const std::string_view word : pieces) {
    const size_t before = ids.size();
    const auto characters = static_cast<size_t>(
        std::count_if(word.begin(), word.end(), [](char c) { return !continues_character(c); }));
    if (characters <= longest_word_ && append_word(word, candidate, ids)) continue;
    ids.resize(before);
    ids.push_back(unknown_);
  }
}

WordLevel::WordLevel(const TokenizerData& vocabulary)
    : index_(index_of(vocabulary)), unknown_(vocabulary.unknown) {}

void WordLevel::encode(const std::vector<std::string_view>& pieces, std::vector<int>& ids) const {
  for (const std::string_view piece : pieces) {
    const int id = index_.find(piece);
    if (id < 0 && unknown_ < 0)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("\"{}\" is no word of the vocabulary, which has no token for unknown ones", piece));
    ids.push_back(id >= 0 ? id : unknown_);
  }
}

}  // namespace liuli
