// One sequence of tokens running through a model: tokens, cache, and the classes of its two kinds of
// positions.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "model/transformer.h"

namespace liuli {

/// The classes of a run: prompt tokens, also a chunk of one, in the first; generated tokens in the second.
struct RunClasses {
  ProductClass prompt = ProductClass::prompt, generated = ProductClass::decode;
};

struct FeedOptions {
  int chunk =
      0;  ///< tokens per pass, 0: as suits the model; changes no bit (one that reads both ways takes all at once)
  Probe* listener = nullptr;  ///< watches every chunk
  bool every_logit = false;
  int stop_at_layer =
      -1;  ///< run the first so many blocks only: no logits, and a cache to throw away; −1: all
  std::span<const int> token_types = {};  ///< the segment of each token (BERT); empty: all 0
  std::function<void(int done, int total)>
      on_chunk;  ///< after each chunk; may throw to stop (the cache stays consistent)
  std::function<void(int first, Rows logits)> on_logits;  ///< of every chunk, with every_logit
};

class Sequence {
 public:
  Sequence(const Model& model, RunClasses classes);

  const std::vector<int>& tokens() const { return tokens_; }
  int length() const { return static_cast<int>(tokens_.size()); }
  KvCache& cache() { return cache_; }
  const KvCache& cache() const { return cache_; }

  /// Of an encoder-decoder: reads the source text, which every later token looks at, and forgets all tokens.
  void read_source(Runner& runner, std::span<const int> tokens, Probe* listener = nullptr);
  const std::vector<int>& source() const { return source_tokens_; }

  /// Appends prompt tokens; logits of the last one (of every one of the last chunk with every_logit).
  Rows feed(Runner& runner, std::span<const int> tokens, const FeedOptions& options = {});
  /// Appends generated tokens (or guesses of them), one pass; logits of the last one, or of every one.
  Rows feed_generated(Runner& runner, std::span<const int> tokens, Probe* listener = nullptr,
                      bool every_logit = false);
  /// One generated token for each of several sequences of one model, in one pass; one row of logits each.
  static Rows feed_together(Runner& runner, std::span<Sequence* const> sequences,
                            std::span<const int> tokens);
  /// Several prompts, each the beginning of its own empty sequence, in one pass: every weight is read once for all of them.
  /// Logits of each one's last token. The listener must see batches. REQUIRES: one model without an encoder.
  static Rows feed_prompts_together(Runner& runner, std::span<Sequence* const> sequences,
                                    std::span<const std::vector<int>* const> prompts, Probe* listener);
  void truncate(int length);

 private:
  SequenceInput input(std::span<const int> tokens);
  size_t pass_length(size_t n, const FeedOptions& options) const;

  const Model* model_;
  RunClasses classes_;
  KvCache cache_;
  std::vector<int> tokens_;
  std::optional<KvCache> source_;  ///< keys and values of the source, for every decoder layer
  std::vector<int> source_tokens_;
};

}  // namespace liuli
