// Vocabularies made from text: byte-level BPE, and single characters.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace liuli {

struct TokenizerTraining {
  int64_t vocab_size = 4096;  ///< special tokens, bytes and everything else together
  int64_t min_count = 2;      ///< pairs (characters) seen less often become no token
  /// Cut before merging: "gpt-2" or "qwen2" (pre_tokenizer.h). "characters": no merging, one token per character.
  std::string kind = "qwen2";
  std::vector<std::string> special = {"<|endoftext|>"};          ///< ids from 0; the first ends a text
  std::function<void(int64_t done, int64_t total)> on_progress;  ///< merges; may throw to stop
};

/// What a text is cut into, with how often: all that learning merges needs to know.
class WordCounts {
 public:
  /// Errors: unsupported (a kind nobody knows).
  explicit WordCounts(const std::string& kind) : kind_(kind) {}
  void add(std::string_view text);
  const std::map<std::string, int64_t>& words() const { return words_; }

 private:
  std::string kind_;
  std::map<std::string, int64_t> words_;
};

/// A finished vocabulary; tokens in the order of their ids.
struct TrainedVocabulary {
  std::vector<std::string> tokens;  ///< BPE: spelled in the byte alphabet
  std::vector<std::pair<std::string, std::string>> merges;
};

/// Begins with the special tokens and the 256 bytes and merges the most frequent pair of neighbours until the vocabulary
/// is full; of equally frequent ones the pair with the smaller ids. The same tokens, ids and merges as Hugging Face's
/// BpeTrainer with the byte alphabet. Errors: invalid_argument (a vocabulary smaller than its beginning).
/// Source: Sennrich et al. 2016, arXiv 1508.07909.
TrainedVocabulary train_bpe(const WordCounts& counts, const TokenizerTraining& settings);

/// Special tokens, <unk>, the bytes as <0xHH>, then the most frequent characters (equally frequent ones by code point):
/// any other character becomes its bytes. Spaces are written ▁, as SentencePiece does. Errors: as train_bpe.
TrainedVocabulary train_characters(const WordCounts& counts, const TokenizerTraining& settings);

/// The tokenizer.json of such a vocabulary.
std::string tokenizer_json(const TrainedVocabulary& vocabulary, const TokenizerTraining& settings);
/// Its tokenizer_config.json: the first special token ends a text and stands for padding. context: the most tokens a
/// model takes; 0: not known.
std::string tokenizer_config_json(const TokenizerTraining& settings, int64_t context);

}  // namespace liuli
