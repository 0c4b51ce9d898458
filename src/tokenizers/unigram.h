// Unigram: the segmentation with the highest sum of scores. T5, XLM-R.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tokenizers/byte_trie.h"
#include "tokenizers/sentencepiece.h"
#include "tokenizers/token_model.h"

namespace liuli {

/// A stretch of a text and the piece that covers it (−1: an unknown character).
struct UnigramSegment {
  size_t begin, end;
  int id;
};

/// How exactly scores are summed, which decides between ways that are equally good: SentencePiece does it in f32,
/// Hugging Face in f64.
enum class ScoreSums : uint8_t { f32, f64 };

/// Pieces with scores, and the best way to cover a text with them.
class UnigramPaths {
 public:
  explicit UnigramPaths(ScoreSums sums) : sums_(sums) {}
  void add(std::string_view piece, int id, double score);
  std::vector<UnigramSegment> best_segments(std::string_view text) const;

 private:
  /// The best way to reach a place in the text: its score, and the piece that ends there.
  struct Best {
    double score;
    uint32_t begin;
    int id;
  };
  void extend_from(std::string_view text, size_t at, std::vector<Best>& best) const;

  ScoreSums sums_;
  ByteTrie pieces_;
  std::vector<double> scores_;  // by id
  double worst_ = 0;
  bool any_ = false;
};

/// As GGUF and SentencePiece files have it.
class Unigram : public PieceTokenizer {
 public:
  explicit Unigram(TokenizerData data);

 protected:
  void encode_text(std::string_view text, std::vector<int>& ids) const override;

 private:
  UnigramPaths paths_;  // normal pieces
};

/// As tokenizer.json has it: the model of a pipeline.
class UnigramModel : public TokenModel {
 public:
  /// scores: of the first tokens of the vocabulary.
  UnigramModel(const TokenizerData& vocabulary, const std::vector<double>& scores, bool byte_fallback);
  /// Errors: invalid_argument (a character without a token, and there is no unknown token).
  void encode(const std::vector<std::string_view>& pieces, std::vector<int>& ids) const override;

 private:
  void append_unknown(std::string_view text, std::vector<int>& ids) const;

  UnigramPaths paths_;
  std::array<int, 256> byte_id_;  // −1: no fallback to this byte
  int unknown_;
};

}  // namespace liuli
