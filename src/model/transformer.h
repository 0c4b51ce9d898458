// The whole tower: embedding, N blocks, final norm, output matrix.
#pragma once
#include <span>

#include "model/step.h"
#include "model/weights.h"

namespace liuli {

/// Some tokens of one sequence, to be appended at its cache's end. A model that reads both ways gets a text whole, with
/// an empty cache.
struct SequenceInput {
  KvCache* cache;
  std::span<const int> tokens;
  KvCache* source = nullptr;              ///< of an encoder-decoder: what encode_source() filled
  std::span<const int> token_types = {};  ///< the segment of each token (BERT); empty: all 0
};

/// What a step should compute beyond the caches.
struct StepOptions {
  ProductClass product_class = ProductClass::prompt;
  Probe* listener = nullptr;  ///< watches a step of one sequence
  bool every_logit = false;   ///< otherwise only each sequence's last row's
  bool hidden = false;        ///< rows after the final norm in place of logits
  bool no_logits = false;     ///< a prompt's chunks but the last
  int stop_at_layer = -1;     ///< run the first so many blocks only, and no logits; −1: all
};

/// Scratch memory and threads of whoever runs the model; one at a time.
struct Runner {
  explicit Runner(int n_threads) : pool(n_threads) {}
  ThreadPool pool;
  Arena scratch;
  StepLists lists;
  bool int8_prompts = false;   ///< see OpContext
  bool bf16_products = false;  ///< of plain f32 weights: see OpContext
};

/// Runs the tokens through the model, extends the caches, returns the logits: rows of [vocab_size], one per
/// wanted row, in order; hidden rows [d_model] if asked for or if the model has no output matrix. They stay valid
/// until the runner's scratch is used again. REQUIRES: tokens within the vocabulary, positions within the context
/// (checked by the caller).
Rows transformer_forward(const Model& model, Runner& runner, std::span<const SequenceInput> inputs,
                         const StepOptions& options);

/// Runs a source text through the encoder and fills `source` (emptied first) with the keys and values that every decoder
/// layer's cross-attention forms of it.
void encode_source(const Model& model, Runner& runner, std::span<const int> tokens, KvCache& source,
                   const StepOptions& options);

/// Everything the ops need for one class of products.
OpContext make_context(Runner& runner, ProductClass product_class, CacheType form = CacheType::bf16);

/// The final norm and the output matrix on rows of the residual stream: logits, or what a lens would say of a
/// middle layer.
Rows unembed(const Model& model, Step& s, Rows x);
/// The same with some rows of the output matrix: [n, output.d_out()].
Rows unembed(const Model& model, Step& s, Rows x, const Matrix& output);

/// The cache's type in a class: f32 and exact use f32 pages, the others those of the model's form.
CacheType cache_type_in(ProductClass product_class, CacheType form);
/// The kernels of that type, and its pages.
const kernels::AttentionKernels& attention_kernels(ProductClass product_class,
                                                   CacheType form = CacheType::bf16);
CacheShape cache_shape(const ModelConfig& config);
/// The keys and values of a source, for every decoder layer.
CacheShape source_cache_shape(const ModelConfig& config);

}  // namespace liuli
