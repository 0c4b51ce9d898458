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

/// The set of tokens that are matched as whole units.
class SpecialTokens {
 public:
  void add(std::string_view text, int id, bool control);

  /// Cuts a text at its special tokens: leftmost first, of several at one place the longest. A control token
  /// counts only when none of its bytes came from the user. Stretches of text are never empty.
  std::vector<Fragment> split(const MarkedText& marked) const;

 private:
  int match(const MarkedText& marked, size_t at, size_t next_user, size_t& length) const;

  ByteTrie trie_;  // value = 2 · id + control
  std::array<bool, 256> begins_{};
};

/// A tokenizer that cuts at special tokens and encodes the stretches between: what the three models share.
class SplittingTokenizer : public Tokenizer {
 public:
  std::vector<int> encode_spans(const std::vector<TextSpan>& spans) const final;
  int vocab_size() const final { return static_cast<int>(data_.tokens.size()); }
  bool is_control(int id) const final { return has_type(id, TokenType::control); }

 protected:
  explicit SplittingTokenizer(TokenizerData data);
  /// Appends the ids of a non-empty stretch, which stands at the start of the text or behind a special token.
  virtual void encode_text(std::string_view text, std::vector<int>& ids) const = 0;

  TokenType type(size_t id) const { return data_.types.empty() ? TokenType::normal : data_.types[id]; }
  bool has_type(int id, TokenType wanted) const {
    return known(id) && type(static_cast<size_t>(id)) == wanted;
  }
  bool known(int id) const { return id >= 0 && static_cast<size_t>(id) < data_.tokens.size(); }

  SpecialTokens special_;  // filled by the model, which knows how its file spells them
};

}  // namespace liuli
