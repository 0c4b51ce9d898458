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

/// What is added to a token's embedding to say where it stands; RoPE needs none.
enum class PositionTable {
  none,
  learned,     ///< a stored row per position: GPT-2, BERT
  sinusoidal,  ///< sin(t · 10000^(−2i/d)), cos(…) interleaved: the 2017 Transformer
};

/// A mixture of experts in place of one feed-forward; n_experts = 0: none.
/// scores = score(W_router h); chosen by score (+ bias) within the best groups; weights = the chosen scores, perhaps
/// renormalised, times weight_scale; y = Σ weight_e · expert_e(h) + shared(h).
struct ExpertConfig {
  enum class Score { softmax, sigmoid };  ///< softmax over all experts; sigmoid of each
  int64_t n_experts = 0, n_experts_active = 0;
  int64_t d_ff = 0;         ///< inner width of one expert
  int64_t shared_d_ff = 0;  ///< of all shared experts together; 0: none
  Score score = Score::softmax;
  bool choice_bias = false;  ///< a stored bias is added to the scores for the choice only (DeepSeek-V3)
  bool shared_gate = false;  ///< the shared expert's output is scaled by sigmoid(w · h) (Qwen2-MoE)
  /// Experts are cut into n_groups equal runs; a group's score is the sum of its `group_best` largest biased scores;
  /// only the n_groups_kept best groups compete.
  int64_t n_groups = 1, n_groups_kept = 1, group_best = 2;
  bool renormalise = true;
  double weight_scale = 1;
};

/// Multi-head latent attention (DeepSeek): keys and values are kept as one compressed vector per token;
/// kv_lora_rank = 0: plain attention.
struct LatentConfig {
  int64_t q_lora_rank = 0;  ///< 0: queries are projected directly
  int64_t kv_lora_rank = 0;
  int64_t qk_nope_head_dim = 0, qk_rope_head_dim = 0, v_head_dim = 0;
};

/// How the rows of a text become one vector, where a file says so.
enum class Pooling {
  unstated,  ///< mean for models that read both ways, last for decoders
  mean,      ///< of all rows, [CLS] and [SEP] too
  cls,       ///< the first row
  last,
};

/// Where one half of a block (attention or feed-forward) is normalised; `none` passes its input through.
struct NormSlots {
  NormKind before = NormKind::none;     ///< pre-norm: Llama, Qwen, GPT-2, Gemma 3
  NormKind on_output = NormKind::none;  ///< of the branch, before it is added: Gemma 3, OLMo 2
  NormKind after_add = NormKind::none;  ///< post-norm: BERT, the 2017 Transformer
};

/// One storey of the tower.
struct LayerPlan {
  NormSlots attn_norm, cross_norm, ffn_norm;
  bool cross_attention = false;  ///< also attends to the encoder's output
  bool routed = false;           ///< ModelConfig::experts in place of one feed-forward
  int sliding_window = 0;        ///< 0: full attention
  int rope = 0;                  ///< index into ModelConfig::ropes
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
  PositionTable positions = PositionTable::none;
  int64_t n_token_types = 0;                 ///< rows of a table of segments added to each embedding (BERT)
  NormKind embedding_norm = NormKind::none;  ///< of the summed embeddings (BERT)
  double embedding_scale = 1;
  double residual_scale = 1;  ///< x = residual_scale · x + branch: DeepNorm's α; 0 takes the fast lane away
  double attention_scale = 0;                         ///< score = scale · q·k
  double attention_soft_cap = 0, final_soft_cap = 0;  ///< 0: off
  bool causal = true;
  NormKind final_norm = NormKind::rms;
  std::vector<RopeConfig> ropes;
  std::vector<LayerPlan> layers;          ///< of the decoder, or of an encoder that stands alone
  std::vector<LayerPlan> encoder_layers;  ///< not empty: an encoder-decoder
  bool has_output = true;                 ///< false: gives hidden states, not logits (BERT)
  bool has_pooler = false;                ///< tanh(W x + b) of the first row is stored as well (BERT)
  Pooling pooling = Pooling::unstated;
  int64_t decoder_start_token = -1;  ///< where an encoder-decoder's answer begins; −1: not stated
  ExpertConfig experts;
  LatentConfig latent;

  bool is_encoder_decoder() const { return !encoder_layers.empty(); }
  bool is_latent() const { return latent.kv_lora_rank > 0; }
};

}  // namespace liuli
