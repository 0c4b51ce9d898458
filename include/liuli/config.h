// What a model is, as data: every number and choice that the one block needs to become a Llama, a Qwen or a
// Gemma.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "liuli/norm_kind.h"

namespace liuli {

enum class Activation { silu, gelu_tanh, gelu_erf, relu };
/// How queries and keys are normalised before RoPE: not at all, each head by itself, or the whole vector.
enum class QkNorm { none, per_head, whole };
enum class RopeScaling { none, linear, llama3, yarn, divisors };

/// Rotary position embedding: pair i of a head turns by position · frequency_i.
/// frequency_i = theta^(−2i / dim), then scaled; pairs are (i, i + dim / 2).
struct RopeConfig {
  double theta = 10000;
  int dim = 0;  ///< rotated values per head; 0: no RoPE
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;                                                           ///< linear, llama3, yarn
  double low_freq_factor = 1, high_freq_factor = 4, original_max_seq_len = 0;  ///< llama3, yarn (the last)
  double beta_fast = 32, beta_slow = 1;                                        ///< yarn
  double attention_factor = 1;                                                 ///< multiplies cos and sin
  std::vector<float> divisors;  ///< scaling = divisors: frequency_i / divisors[i] (llama3's tensor in GGUF)
};

/// Where one half of a block (attention or feed-forward) is normalised; `none` passes its input through.
struct NormSlots {
  NormKind before = NormKind::none;     ///< pre-norm: Llama, Qwen, GPT-2, Gemma 3
  NormKind on_output = NormKind::none;  ///< of the branch, before it is added: Gemma 3, OLMo 2
  NormKind after_add = NormKind::none;  ///< post-norm: BERT, the 2017 Transformer
};

/// One storey of the tower.
struct LayerPlan {
  NormSlots attn_norm, ffn_norm;
  int sliding_window = 0;  ///< 0: full attention
  int rope = 0;            ///< index into ModelConfig::ropes
};

/// A model's shape and choices. Names are the field's standard terms; shapes are written [d_out, d_in].
struct ModelConfig {
  std::string family;  ///< "llama", "qwen2", "gemma3", …
  std::string name;    ///< as the file calls itself
  int64_t vocab_size = 0, d_model = 0, n_layers = 0, d_ff = 0;
  int64_t n_heads = 0, n_kv_heads = 0, head_dim = 0;
  int64_t max_seq_len = 0;
  double norm_eps = 1e-5;
  Activation activation = Activation::silu;
  bool gated_ffn = true;  ///< act(gate x) ⊙ (up x); otherwise act(up x)
  QkNorm qk_norm = QkNorm::none;
  bool qkv_bias = false;  ///< biases the family requires
  bool tied_embeddings = false;
  bool learned_positions = false;  ///< a row of a table is added to each embedding (GPT-2)
  double embedding_scale = 1;
  double attention_scale = 0;                         ///< score = scale · q·k
  double attention_soft_cap = 0, final_soft_cap = 0;  ///< 0: off
  bool causal = true;
  NormKind final_norm = NormKind::rms;
  std::vector<RopeConfig> ropes;
  std::vector<LayerPlan> layers;
};

}  // namespace liuli
