// Byte-pair encoding by a list of merges: over bytes (GPT-2, Llama 3, Qwen, SmolLM2, DeepSeek-V3) or over
// characters with bytes as a fallback (Llama 2, Gemma, as tokenizer.json has them).
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tokenizers/pair_merge.h"
#include "tokenizers/token_index.h"
#include "tokenizers/token_model.h"
#include "tokenizers/tokenizer.h"

namespace liuli {

/// Which two tokens merge, when, and into what: open addressing, 24 bytes per slot.
class MergeTable {
 public:
  explicit MergeTable(size_t merges);
  void add(int left, int right, PairMerge merge);  ///< of two equal pairs the last counts
  PairMerge find(int left, int right) const;

 private:
  struct Slot {
    uint64_t pair = UINT64_MAX;
    PairMerge merge;
  };
  size_t slot(uint64_t pair) const;

  std::vector<Slot> slots_;
  int shift_;
};

struct BpeSettings {
  bool byte_level = false;     ///< pieces are raw bytes, tokens are spelled in the byte alphabet
  bool ignore_merges = false;  ///< a piece that is a token is taken as it is
  bool byte_fallback =
      false;                  ///< a character without a token becomes <0xHH> tokens, if there are all of them
  bool fuse_unknown = false;  ///< neighbouring unknown characters become one unknown token
  int unknown = -1;           ///< −1: what has no token is dropped, as Hugging Face does
  std::string prefix;         ///< in front of every token of a piece but the first
  std::string suffix;         ///< behind the last token of a piece
};

/// What merges a vocabulary has, in rank order.
using MergeList = std::vector<std::pair<std::string, std::string>>;

class Bpe : public TokenModel {
 public:
  /// Views the vocabulary's tokens, which must stay where they are. Control tokens are never made by merging.
  /// Errors: corrupt_file (a merge whose halves, or whose result, are no tokens).
  Bpe(const TokenizerData& vocabulary, const MergeList& merges, BpeSettings settings);
  /// For vocabularies that are ranks themselves (tiktoken): two tokens merge when together they are a token,
  /// lowest id first.
  Bpe(const TokenizerData& vocabulary, BpeSettings settings);

  void encode(const std::vector<std::string_view>& pieces, std::vector<int>& ids) const override;

 private:
  struct Scratch;
  void index_tokens(const TokenizerData& vocabulary);
  void add_merges(const TokenizerData& vocabulary, const MergeList& merges);
  void encode_piece(std::string_view piece, Scratch& scratch, std::vector<int>& ids) const;
  int whole_token(std::string_view piece, Scratch& scratch) const;
  void start_symbols(std::string_view piece, Scratch& scratch) const;
  void start_characters(std::string_view piece, Scratch& scratch) const;
  bool append_bytes(std::string_view character, Scratch& scratch) const;

  BpeSettings settings_;
  TokenIndex index_;
  MergeTable merges_;
  std::array<int, 256> byte_id_;  // −1: no token for this byte
};

}  // namespace liuli
