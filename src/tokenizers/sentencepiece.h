// SentencePiece vocabularies: pieces with scores, ▁ for a space, bytes as a fallback. Llama 2, Mistral,
// Gemma.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizers/charsmap.h"
#include "tokenizers/pair_merge.h"
#include "tokenizers/special_tokens.h"
#include "tokenizers/token_index.h"

namespace liuli {

constexpr std::string_view kSpaceMark = "▁";  // U+2581

/// What both SentencePiece models share: spelling, fallback to bytes, decoding.
class PieceTokenizer : public SplittingTokenizer {
 public:
  std::string token_bytes(int id) const override;
  /// ▁ becomes a space; neighbouring byte tokens are one UTF-8 text, or, if that is ill-formed, one U+FFFD
  /// per byte; the space that encoding put before the text is taken away again.
  std::string decode(const std::vector<int>& ids) const override;

 protected:
  /// Errors: corrupt_file (a byte token that is not <0xHH>; neither all bytes nor an unknown token).
  explicit PieceTokenizer(TokenizerData data);
  /// Appends the bytes of a text that no piece covers; or an unknown token, one for all neighbouring such
  /// texts.
  void append_unknown(std::string_view text, std::vector<int>& ids) const;
  /// Character replacements; a space before the text; runs of spaces collapsed and stripped if the file wants
  /// it; ▁ for spaces.
  std::string normalised(std::string_view text) const;

 private:
  Charsmap charsmap_;
  std::array<int, 256> byte_id_;
  bool byte_fallback_ = true;  // every byte has a token
};

/// Merges neighbours whose concatenation is a piece, best score first, over the whole text between special
/// tokens.
class SentencePieceBpe : public PieceTokenizer {
 public:
  explicit SentencePieceBpe(TokenizerData data);

 protected:
  void encode_text(std::string_view text, std::vector<int>& ids) const override;

 private:
  /// Unused piece → bytes of the left half it was last made of.
  using Halves = std::unordered_map<int, uint32_t>;
  PairMerge find_pair(std::string_view text, const MergeSymbol& left, const MergeSymbol& right,
                      Halves& halves) const;
  void append_symbol(std::string_view text, int id, const Halves& halves, std::vector<int>& ids) const;

  TokenIndex index_;             // normal and unused pieces
  std::vector<uint32_t> order_;  // of merging into a piece: falling score
};

}  // namespace liuli
