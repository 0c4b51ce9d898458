// A loaded model: the weights of every part, in the block's order.
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "formats/weight_source.h"
#include "liuli/config.h"
#include "ops/matrix.h"
#include "ops/norm.h"

namespace liuli {

/// y = W x + b; bias may be null.
struct Linear {
  Matrix weight;
  const float* bias = nullptr;
};

/// The norms around one half of a block; kind none where the family has none.
struct BlockNorms {
  Norm before, on_output, after_add;
};

struct Attention {
  Linear q, k, v, o;
  QkNorm qk_norm = QkNorm::none;
  Norm q_norm, k_norm;
  int64_t n_heads = 0, n_kv_heads = 0, head_dim = 0;
  int rope = 0;  ///< index into ModelConfig::ropes
  int sliding_window = 0;
  float scale = 0, soft_cap = 0;
  bool causal = true;
  /// [n_kv_heads · head_dim] or null: taken off every key before it is rounded to bf16. Softmax does not
  /// notice (q·c is the same for all keys of a query), the rounding does: see key_offset() in load.cpp.
  const float* key_offset = nullptr;
};

struct FeedForward {
  Linear gate, up, down;  ///< gate is empty when the family has no gate
  Activation activation = Activation::silu;
};

struct Block {
  BlockNorms attn_norm;
  Attention attention;
  BlockNorms ffn_norm;
  FeedForward ffn;
  float residual_scale = 1;
};

/// Immutable once loaded; any number of sequences and threads may run on it.
struct Model {
  ModelConfig config;
  Matrix token_embedding;     ///< [vocab_size, d_model]
  Matrix position_embedding;  ///< [max_seq_len, d_model], or empty
  Matrix output_matrix;       ///< empty when tied to token_embedding
  Norm final_norm;
  std::vector<Block> blocks;
  std::vector<std::vector<double>> rope_frequencies;  ///< per ModelConfig::ropes
  std::deque<std::vector<float>> vectors;             ///< storage of norms and biases
  std::shared_ptr<WeightSource> source;               ///< keeps mapped rows alive (file-row form)

  const Matrix& output() const { return output_matrix.empty() ? token_embedding : output_matrix; }
  /// Calls f(matrix) for every matrix, in the order a token meets them.
  template <class F>
  void for_each_matrix(F&& f) const;
  template <class F>
  void for_each_matrix(F&& f);
};

namespace detail {
template <class M, class F>
void visit_matrices(M& model, F&& f) {
  f(model.token_embedding);
  if (!model.position_embedding.empty()) f(model.position_embedding);
  for (auto& b : model.blocks)
    for (auto* linear : {&b.attention.q, &b.attention.k, &b.attention.v, &b.attention.o, &b.ffn.gate,
                         &b.ffn.up, &b.ffn.down})
      if (!linear->weight.empty()) f(linear->weight);
  if (!model.output_matrix.empty()) f(model.output_matrix);
}
}  // namespace detail

template <class F>
void Model::for_each_matrix(F&& f) const {
  detail::visit_matrices(*this, f);
}
template <class F>
void Model::for_each_matrix(F&& f) {
  detail::visit_matrices(*this, f);
}

}  // namespace liuli
