// WordPiece (BERT) and WordLevel: words looked up in a vocabulary.
#pragma once
#include <string>

#include "tokenizers/token_index.h"
#include "tokenizers/token_model.h"
#include "tokenizers/tokenizer.h"

namespace liuli {

/// Greedy longest match from the left; a word that cannot be covered is one unknown token.
class WordPiece : public TokenModel {
 public:
  /// Views the vocabulary's tokens. prefix: in front of tokens that continue a word. Longer words than
  /// longest_word (characters) are unknown.
  WordPiece(const TokenizerData& vocabulary, std::string prefix, size_t longest_word);
  void encode(const std::vector<std::string_view>& pieces, std::vector<int>& ids) const override;

 private:
  bool append_word(std::string_view word, std::string& candidate, std::vector<int>& ids) const;

  TokenIndex index_;
  std::string prefix_;
  size_t longest_word_;
  int unknown_;
};

/// A piece is a token or unknown; without an unknown token it must be a token.
class WordLevel : public TokenModel {
 public:
  explicit WordLevel(const TokenizerData& vocabulary);
  /// Errors: invalid_argument (a piece that has no token, and there is no unknown token).
  void encode(const std::vector<std::string_view>& pieces, std::vector<int>& ids) const override;

 private:
  TokenIndex index_;
  int unknown_;
};

}  // namespace liuli
