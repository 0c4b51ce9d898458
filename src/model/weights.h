// A loaded model: the weights of every part, in the block's order.
#pragma once
#include <deque>
#include <memory>
#include <variant>
#include <vector>

#include "formats/weight_source.h"
#include "liuli/cache_type.h"
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
  int64_t value_dim = 0;  ///< of z and v: as head_dim but for latent attention
  int rope = 0;           ///< index into ModelConfig::ropes
  int sliding_window = 0;
  float scale = 0, soft_cap = 0;
  bool causal = true;
  /// [n_kv_heads · head_dim] or null: taken off every key before it is rounded to 16 bits. Softmax does not
  /// notice (q·c is the same for all keys of a query), the rounding does: see key_offset() in load.cpp.
  const float* key_offset = nullptr;
};

/// Multi-head latent attention: keys and values come from a compressed vector c per token.
struct LatentAttention {
  Linear q_a, q_b;  ///< q = W_qb · norm(W_qa h); q_a is empty when q = W_qb h
  Norm q_norm;
  Linear kv_a;  ///< [kv_lora_rank + qk_rope_head_dim, d_model]: c and the one rotated key of all heads
  Norm kv_norm;
  /// Per head, for the expanded form: k_nope = k_up · c, v = v_up · c; for the absorbed one: q̃ = k_up_t · q_nope,
  /// out = v_up · (Σ pattern · c).
  std::vector<Matrix> k_up;    ///< [qk_nope_head_dim, kv_lora_rank]
  std::vector<Matrix> k_up_t;  ///< [kv_lora_rank, qk_nope_head_dim]
  std::vector<Matrix> v_up;    ///< [v_head_dim, kv_lora_rank]
  Linear o;
  LatentConfig shape;
  int64_t n_heads = 0;
  int rope = 0;
  float scale = 0;
};

struct FeedForward {
  Linear gate, up, down;  ///< gate is empty when the family has no gate
  Activation activation = Activation::silu;
};

struct MixtureOfExperts {
  Linear router;                       ///< [n_experts, d_model]
  const float* choice_bias = nullptr;  ///< [n_experts] or null
  std::vector<FeedForward> experts;
  FeedForward shared;                  ///< `up` is empty when there is none
  const float* shared_gate = nullptr;  ///< [d_model] or null: shared · sigmoid(shared_gate · h)
  ExpertConfig shape;
};

struct Block {
  BlockNorms attn_norm;
  std::variant<Attention, LatentAttention> attention;
  BlockNorms cross_norm;
  std::unique_ptr<Attention> cross;  ///< over the encoder's output; null in every other model
  BlockNorms ffn_norm;
  std::variant<FeedForward, MixtureOfExperts> ffn;
  float residual_scale = 1;
};

/// Immutable once loaded; any number of sequences and threads may run on it.
struct Model {
  ModelConfig config;
  CacheType cache_form = CacheType::bf16;  ///< of the prompt and decode classes; never automatic
  int prompt_chunk = 512;                  ///< tokens of a prompt that pass together: see prompt_chunk.h
  Matrix token_embedding;                  ///< [vocab_size, d_model]
  Matrix position_embedding;               ///< [max_seq_len, d_model], or empty
  Matrix token_types;                      ///< [n_token_types, d_model], or empty
  Norm embedding_norm;
  Matrix output_matrix;  ///< empty when tied to token_embedding
  Norm final_norm;
  Linear pooler;  ///< empty unless the model has one
  std::vector<Block> blocks;
  std::vector<Block> encoder;                         ///< the encoder's, of an encoder-decoder
  std::vector<std::vector<double>> rope_frequencies;  ///< per ModelConfig::ropes
  std::deque<std::vector<float>> vectors;             ///< storage of norms and biases
  std::vector<std::string> unused_tensors;  ///< stored, but not part of the main model (DeepSeek's MTP)
  std::string panel_file;          ///< the file that the panels are mapped from; "" when they were packed
  std::string panel_file_refused;  ///< why one beside the model is not used
  std::shared_ptr<WeightSource> source;  ///< keeps mapped rows alive (file-row form)

  const Matrix& output() const { return output_matrix.empty() ? token_embedding : output_matrix; }
  /// Calls f(matrix) for every matrix, in the order a token meets them.
  template <class F>
  void for_each_matrix(F&& f) const;
  template <class F>
  void for_each_matrix(F&& f);
};

namespace detail {
// Every matrix of a part, in the order a token meets them. `f` gets also empty ones; the last overload drops them.
template <class F>
void visit(auto& a, F& f) requires requires {
  a.k;
}
{
  for (auto* linear : {&a.q, &a.k, &a.v, &a.o}) f(linear->weight);
}
template <class F>
void visit(auto& a, F& f) requires requires {
  a.kv_a;
}
{
  for (auto* linear : {&a.q_a, &a.q_b, &a.kv_a}) f(linear->weight);
  for (auto* heads : {&a.k_up, &a.k_up_t, &a.v_up})
    for (auto& matrix : *heads) f(matrix);
  f(a.o.weight);
}
template <class F>
void visit(auto& ffn, F& f) requires requires {
  ffn.down;
}
{
  for (auto* linear : {&ffn.gate, &ffn.up, &ffn.down}) f(linear->weight);
}
template <class F>
void visit(auto& moe, F& f) requires requires {
  moe.router;
}
{
  f(moe.router.weight);
  for (auto& expert : moe.experts) visit(expert, f);
  visit(moe.shared, f);
}

template <class M, class F>
void visit_matrices(M& model, F&& call) {
  auto f = [&](auto& matrix) {
    if (!matrix.empty()) call(matrix);
  };
  for (auto* table : {&model.token_embedding, &model.position_embedding, &model.token_types}) f(*table);
  for (auto* stack : {&model.encoder, &model.blocks})
    for (auto& b : *stack) {
      std::visit([&](auto& attention) { visit(attention, f); }, b.attention);
      if (b.cross) visit(*b.cross, f);
      std::visit([&](auto& ffn) { visit(ffn, f); }, b.ffn);
    }
  f(model.output_matrix);
  f(model.pooler.weight);
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
