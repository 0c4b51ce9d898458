// Byte-level BPE: GPT-2, Llama 3, Qwen, SmolLM2, DeepSeek-V3.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tokenizers/pair_merge.h"
#include "tokenizers/pre_tokenizer.h"
#include "tokenizers/special_tokens.h"
#include "tokenizers/token_index.h"

namespace liuli {

/// Vocabulary files write bytes as printable characters: 33–126, 161–172 and 174–255 as themselves, the other
/// 68 in rising order as U+0100, U+0101, … (so a space is Ġ). Gives the character of a byte.
char32_t byte_alphabet(uint8_t byte);

/// Which two tokens merge, when, and into what: open addressing, 16 bytes per slot.
class MergeTable {
 public:
  explicit MergeTable(size_t merges);
  void add(int left, int right, PairMerge merge);  ///< of two equal pairs the first counts
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

class ByteBpe : public SplittingTokenizer {
 public:
  /// Errors: unsupported (pre-tokenizer), corrupt_file (a merge that is no "left right" of tokens making a
  /// token).
  explicit ByteBpe(TokenizerData data);

  std::string token_bytes(int id) const override;
  std::string decode(const std::vector<int>& ids) const override;

 protected:
  void encode_text(std::string_view text, std::vector<int>& ids) const override;

 private:
  struct Scratch;
  void index_tokens();
  void read_merges();
  void encode_piece(std::string_view piece, Scratch& scratch, std::vector<int>& ids) const;

  const PreTokenizer& rules_;
  TokenIndex index_;  // everything but control tokens, in the byte alphabet
  MergeTable merges_;
  std::array<int, 256> byte_id_;  // −1: no token for this byte
};

}  // namespace liuli
