// Control and user-defined tokens: found in the raw text before anything else looks at it.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/byte_trie.h"
#include "tokenizers/tokenizer.h"

namespace liuli {

/// One text for splitting and merging that remembers, byte by byte, what the user wrote.
struct MarkedText {
  std::string text;       ///< valid UTF-8
  std::string from_user;  ///< as long as text; '\1' where a byte came from the user
};
/// Joins spans; ill-formed UTF-8 (judged after joining, so a span may end inside a character) becomes U+FFFD.
MarkedText join_spans(const std::vector<TextSpan>& spans);

/// A token, or a stretch of text between tokens.
struct Fragment {
  int id;  ///< −1: text
  size_t begin, end;
};

/// How a token is matched; the flags are tokenizer.json's.
struct MatchRule {
  int id = -1;
  bool control = false;      ///< counts only where no byte came from the user
  bool single_word = false;  ///< not beside a word character
  bool left_strip = false;   ///< takes the white space before it along
  bool right_strip = false;  ///< … and behind it
  bool alone = false;        ///< only between white space (or the ends)
};

/// The set of tokens that are matched as whole units.
class SpecialTokens {
 public:
  void add(std::string_view text, int id, bool control) { add(text, MatchRule{id, control}); }
  void add(std::string_view text, const MatchRule& rule);
  bool empty() const { return rules_.empty(); }
  bool has_control() const { return has_control_; }

  /// Cuts a text at its special tokens: leftmost first, of several at one place the longest. A control token
  /// counts only when none of its bytes came from the user (no marks at all: nothing did). Stretches of text
  /// are never empty.
  std::vector<Fragment> split(const MarkedText& marked) const;

 private:
  const MatchRule* match(const MarkedText& marked, size_t at, size_t next_user, size_t& length) const;

  ByteTrie trie_;  // value = place in rules_
  std::vector<MatchRule> rules_;
  std::array<bool, 256> begins_{};
  bool has_control_ = false;
};

/// A tokenizer that knows the types of its tokens.
class TypedTokenizer : public Tokenizer {
 public:
  int vocab_size() const final { return static_cast<int>(data_.tokens.size()); }
  bool is_control(int id) const final { return has_type(id, TokenType::control); }

 protected:
  explicit TypedTokenizer(TokenizerData data);

  TokenType type(size_t id) const { return data_.types.empty() ? TokenType::normal : data_.types[id]; }
  bool has_type(int id, TokenType wanted) const {
    return known(id) && type(static_cast<size_t>(id)) == wanted;
  }
  bool known(int id) const { return id >= 0 && static_cast<size_t>(id) < data_.tokens.size(); }
};

/// A tokenizer that cuts at special tokens and encodes the stretches between: what the SentencePiece models
/// share.
class SplittingTokenizer : public TypedTokenizer {
 public:
  std::vector<int> encode_spans(const std::vector<TextSpan>& spans) const final;

 protected:
  using TypedTokenizer::TypedTokenizer;
  /// Appends the ids of a non-empty stretch, which stands at the start of the text or behind a special token.
  virtual void encode_text(std::string_view text, std::vector<int>& ids) const = 0;

  SpecialTokens special_;  // filled by the model, which knows how its file spells them
};

}  // namespace liuli
