// Unigram: the segmentation with the highest sum of scores. T5, XLM-R.
#pragma once
#include <string>
#include <vector>

#include "tokenizers/byte_trie.h"
#include "tokenizers/charsmap.h"
#include "tokenizers/sentencepiece.h"

namespace liuli {

class Unigram : public PieceTokenizer {
 public:
  explicit Unigram(TokenizerData data);

 protected:
  void encode_text(std::string_view text, std::vector<int>& ids) const override;

 private:
  /// The best way to reach a place in the text: its score, and the piece (−1: an unknown character) that ends
  /// there.
  struct Best {
    double score;
    uint32_t begin;
    int id;
  };
  std::string normalised(std::string_view text) const;
  std::vector<Best> best_paths(std::string_view text) const;
  void extend_from(std::string_view text, size_t at, std::vector<Best>& best) const;

  Charsmap charsmap_;
  ByteTrie pieces_;  // normal pieces
  double unknown_score_ = 0;
};

}  // namespace liuli
