#include "tokenizers/special_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "liuli/error.h"
#include "tokenizers/unicode.h"

namespace liuli {
namespace {

// Positions are 32-bit in the merging loop, and writing ▁ for spaces can make a text three times as long.
constexpr size_t kMaxTextBytes = size_t{1} << 30;

MarkedText repaired(const MarkedText& broken) {
  MarkedText out;
  for (size_t at = 0; at < broken.text.size();) {
    const Utf8Char c = read_utf8(broken.text, at);
    const auto bytes = static_cast<size_t>(c.bytes);
    append_utf8(out.text, c.code_point);
    // A character belongs to the user if any of its bytes does.
    const std::string_view marks = std::string_view(broken.from_user).substr(at, bytes);
    out.from_user.resize(out.text.size(), marks.find('\1') == std::string_view::npos ? '\0' : '\1');
    at += bytes;
  }
  return out;
}

// Some vocabularies (DeepSeek-V3) flag the markers of turns as ordinary added tokens. User text must not
// forge them.
bool looks_like_marker(std::string_view token) {
  const auto framed = [&](std::string_view open, std::string_view close) {
    return token.size() > open.size() + close.size() && token.substr(0, open.size()) == open &&
           token.substr(token.size() - close.size()) == close;
  };
  return framed("<|", "|>") || framed("<｜", "｜>");
}

}  // namespace

MarkedText join_spans(const std::vector<TextSpan>& spans) {
  MarkedText joined;
  for (const TextSpan& span : spans) {
    joined.text += span.text;
    joined.from_user.append(span.text.size(), span.from_user ? '\1' : '\0');
  }
  if (joined.text.size() > kMaxTextBytes)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a text of {} bytes; at most {} can be tokenized at once", joined.text.size(),
                            kMaxTextBytes));
  return valid_utf8(joined.text) ? joined : repaired(joined);
}

void SpecialTokens::add(std::string_view text, int id, bool control) {
  // A token that is no valid text cannot occur in one; matching it could cut a character in two.
  if (text.empty() || !valid_utf8(text)) return;
  trie_.add(text, 2 * id + (control ? 1 : 0));
  begins_[static_cast<uint8_t>(text[0])] = true;
}

// The id of the longest allowed token at a place, or −1.
int SpecialTokens::match(const MarkedText& marked, size_t at, size_t next_user, size_t& length) const {
  int id = -1;
  uint32_t node = ByteTrie::kRoot;
  for (size_t end = at; end < marked.text.size();) {
    node = trie_.child(node, marked.text[end++]);
    if (node == ByteTrie::kNone) break;
    const int value = trie_.value(node);
    if (value < 0 || (value % 2 == 1 && end > next_user)) continue;
    id = value / 2;
    length = end - at;
  }
  return id;
}

std::vector<Fragment> SpecialTokens::split(const MarkedText& marked) const {
  std::vector<Fragment> fragments;
  const size_t size = marked.text.size();
  size_t text_begin = 0, next_user = 0;
  for (size_t at = 0; at < size;) {
    size_t length = 0;
    int id = -1;
    if (begins_[static_cast<uint8_t>(marked.text[at])]) {
      if (next_user <= at) next_user = std::min(marked.from_user.find('\1', at), size + 1);
      id = match(marked, at, next_user, length);
    }
    if (id < 0) {
      ++at;
      continue;
    }
    if (text_begin < at) fragments.push_back({-1, text_begin, at});
    fragments.push_back({id, at, at + length});
    text_begin = at = at + length;
  }
  if (text_begin < size) fragments.push_back({-1, text_begin, size});
  return fragments;
}

SplittingTokenizer::SplittingTokenizer(TokenizerData data) : Tokenizer(std::move(data)) {
  for (size_t id = 0; id < data_.types.size(); ++id)
    if (data_.types[id] == TokenType::user_defined && looks_like_marker(data_.tokens[id]))
      data_.types[id] = TokenType::control;
}

std::vector<int> SplittingTokenizer::encode_spans(const std::vector<TextSpan>& spans) const {
  const MarkedText marked = join_spans(spans);
  std::vector<int> ids;
  for (const Fragment& fragment : special_.split(marked)) {
    if (fragment.id >= 0)
      ids.push_back(fragment.id);
    else
      encode_text(std::string_view(marked.text).substr(fragment.begin, fragment.end - fragment.begin), ids);
  }
  return ids;
}

}  // namespace liuli
