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

void SpecialTokens::add(std::string_view text, const MatchRule& rule) {
  // A token that is no valid text cannot occur in one; matching it could cut a character in two.
  if (text.empty() || !valid_utf8(text)) return;
  trie_.add(text, static_cast<int>(rules_.size()));
  rules_.push_back(rule);
  begins_[static_cast<uint8_t>(text[0])] = true;
  has_control_ = has_control_ || rule.control;
}

namespace {

// The class of the character that ends just before a place; 0 at the beginning.
uint8_t class_before(std::string_view text, size_t at) {
  if (at == 0) return 0;
  size_t begin = at - 1;
  while (begin > 0 && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
  return char_class(read_utf8(text, begin).code_point);
}

uint8_t class_at(std::string_view text, size_t at) {
  return at < text.size() ? char_class(read_utf8(text, at).code_point) : 0;
}

bool stands_well(const MatchRule& rule, std::string_view text, size_t begin, size_t end) {
  if (rule.single_word && ((class_before(text, begin) | class_at(text, end)) & kWordChar)) return false;
  return !rule.alone || ((begin == 0 || (class_before(text, begin) & kSpace)) &&
                         (end == text.size() || (class_at(text, end) & kSpace)));
}

// Moves a match's bounds over the white space beside it, not further left than `least`.
void strip(const MatchRule& rule, std::string_view text, size_t least, size_t& begin, size_t& end) {
  while (rule.left_strip && begin > least && (class_before(text, begin) & kSpace)) {
    do --begin;
    while (begin > least && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80);
  }
  while (rule.right_strip && (class_at(text, end) & kSpace))
    end += static_cast<size_t>(read_utf8(text, end).bytes);
}

}  // namespace

// The longest allowed token at a place, or null.
const MatchRule* SpecialTokens::match(const MarkedText& marked, size_t at, size_t next_user,
                                      size_t& length) const {
  const MatchRule* found = nullptr;
  uint32_t node = ByteTrie::kRoot;
  for (size_t end = at; end < marked.text.size();) {
    node = trie_.child(node, marked.text[end++]);
    if (node == ByteTrie::kNone) break;
    const int value = trie_.value(node);
    if (value < 0) continue;
    const MatchRule& rule = rules_[static_cast<size_t>(value)];
    if (rule.control && end > next_user) continue;
    found = &rule;
    length = end - at;
  }
  return found;
}

std::vector<Fragment> SpecialTokens::split(const MarkedText& marked) const {
  std::vector<Fragment> fragments;
  const size_t size = marked.text.size();
  size_t text_begin = 0, next_user = 0;
  for (size_t at = 0; at < size && !rules_.empty();) {
    size_t length = 0;
    const MatchRule* rule = nullptr;
    if (begins_[static_cast<uint8_t>(marked.text[at])]) {
      if (next_user <= at) next_user = std::min(marked.from_user.find('\1', at), size + 1);
      rule = match(marked, at, next_user, length);
    }
    if (rule == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + length;
    at = end;
    if (!stands_well(*rule, marked.text, begin, end)) continue;
    strip(*rule, marked.text, text_begin, begin, end);
    if (text_begin < begin) fragments.push_back({-1, text_begin, begin});
    fragments.push_back({rule->id, begin, end});
    text_begin = at = end;
  }
  if (text_begin < size) fragments.push_back({-1, text_begin, size});
  return fragments;
}

TypedTokenizer::TypedTokenizer(TokenizerData data) : Tokenizer(std::move(data)) {
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
