// Published models as data: one row of sizes each, and what their families have in common. Nothing here has weights;
// it answers how large a model is, and what a file of it would hold.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace liuli {

/// What all models of a family share.
struct KnownFamily {
  enum class Biases : uint8_t { none, qkv, all };
  enum class QkNorm : uint8_t { none, per_head, whole };

  const char* architecture;  ///< GGUF's general.architecture; "" where the format has no layout for it
  bool layer_norm;           ///< LayerNorm with γ and β, or RMSNorm with γ
  bool norm_before;          ///< of each branch's input
  bool norm_after;           ///< of each branch's output, or of the sum (BERT, 2017)
  bool final_norm;
  QkNorm qk_norm;
  Biases biases;
  bool gated;      ///< three feed-forward matrices; two otherwise
  bool fused_qkv;  ///< q, k and v are stored as one matrix
  bool learned_positions;
  bool decoder;  ///< gives logits; an encoder gives vectors
  double norm_eps;
  const char* pre_tokenizer;  ///< tokenizer.ggml.pre of a byte-level vocabulary
  bool adds_bos;
};

/// Llama 3.1's change of the RoPE frequencies.
struct KnownRopeScaling {
  double factor, low_frequency_factor, high_frequency_factor;
  int64_t original_context;
};

/// YaRN: frequencies below 1/s of the original ones where a turn is longer than the original context (DeepSeek-V3).
struct KnownYarn {
  double factor, attention_log_factor;  ///< scores grow by (1 + attention_log_factor · ln factor)²
  int64_t original_context;
};

/// DeepSeek's latent attention.
struct KnownLatent {
  int64_t q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim;
};
/// A mixture of experts: sigmoid scores with a bias that decides only the choice (DeepSeek-V3), or softmax (Qwen3).
struct KnownExperts {
  int64_t n_experts, n_experts_active, d_ff, n_shared, n_dense_layers, n_groups, n_groups_kept;
  double weight_scale;
  bool sigmoid;
};

struct KnownModel {
  const char* name;   ///< "llama-3-8b"
  const char* title;  ///< "Llama 3 8B"
  const KnownFamily* family;
  int64_t vocab_size, d_model, d_ff, n_layers, n_heads, n_kv_heads, head_dim, context;
  bool tied_embeddings;
  double rope_theta;  ///< 0: no RoPE
  int64_t bos, eos;   ///< −1: none

  const KnownRopeScaling* rope_scaling = nullptr;
  const KnownYarn* yarn = nullptr;
  int64_t sliding_window = 0, window_period = 0;  ///< layer i sees everything iff i mod period = period − 1
  const KnownLatent* latent = nullptr;
  KnownExperts experts{};        ///< n_experts 0: none
  int64_t n_encoder_layers = 0;  ///< beside n_layers of the decoder
  int64_t n_token_types = 0;     ///< segments (BERT)
  bool pooler = false;           ///< a square matrix over the first position's vector (BERT)

  bool dense(int64_t layer) const { return experts.n_experts == 0 || layer < experts.n_dense_layers; }
  bool windowed(int64_t layer) const {
    return sliding_window > 0 && layer % window_period != window_period - 1;
  }
  /// Widths of one head's key and value.
  int64_t key_width() const {
    return latent ? latent->qk_nope_head_dim + latent->qk_rope_head_dim : head_dim;
  }
  int64_t value_width() const { return latent ? latent->v_head_dim : head_dim; }
};

const std::vector<KnownModel>& known_models();
/// Errors: not_found, with the names that there are.
const KnownModel& known_model(std::string_view name);

}  // namespace liuli
