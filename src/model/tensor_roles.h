// What a stored tensor is for, independent of how a file names it.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/weight_source.h"
#include "ops/matrix.h"

namespace liuli {

enum class Role : uint8_t {
  token_embedding,
  position_embedding,
  token_types,
  embedding_norm,
  embedding_norm_bias,
  output_norm,
  output_norm_bias,
  output_matrix,
  pooler,
  pooler_bias,
  rope_divisors,
  attn_norm,
  attn_norm_bias,
  attn_qkv,
  attn_qkv_bias,
  attn_q,
  attn_k,
  attn_v,
  attn_o,
  attn_q_bias,
  attn_k_bias,
  attn_v_bias,
  attn_o_bias,
  attn_q_norm,
  attn_k_norm,
  attn_q_a,
  attn_q_a_norm,
  attn_q_b,
  attn_kv_a,
  attn_kv_a_norm,
  attn_kv_b,
  attn_k_b,
  attn_v_b,
  attn_output_norm,
  attn_after_norm,
  attn_after_norm_bias,
  cross_q,
  cross_k,
  cross_v,
  cross_o,
  cross_q_bias,
  cross_k_bias,
  cross_v_bias,
  cross_o_bias,
  cross_after_norm,
  cross_after_norm_bias,
  ffn_norm,
  ffn_norm_bias,
  ffn_gate_up,
  ffn_gate,
  ffn_up,
  ffn_down,
  ffn_gate_bias,
  ffn_up_bias,
  ffn_down_bias,
  router,
  router_choice_bias,
  expert_gate,
  expert_up,
  expert_down,
  shared_gate,
  shared_up,
  shared_down,
  shared_expert_gate,
  ffn_output_norm,
  ffn_after_norm,
  ffn_after_norm_bias,
};

/// How files call a role. "{L}" stands for the layer, "{E}" for the expert, "{S}" for "enc" or "dec"; null: not known
/// in that kind of file.
struct RoleNames {
  Role role;
  const char* gguf;
  const char* hugging_face;
};

/// One tensor a family expects, with the shape it must have.
struct TensorSpec {
  Role role;
  int layer = -1;
  std::vector<int64_t> shape;
  bool optional = false;
  RowOrder order = {};
  int expert = -1;  ///< files that keep every expert's matrix by itself; −1: not an expert's, or all stacked
  bool encoder = false;     ///< of the encoder's tower
  bool plus_one = false;    ///< the file holds γ − 1 (Gemma in safetensors)
  bool transposed = false;  ///< the file holds [d_in, d_out] (GPT-2 in safetensors); `shape` is ours
};

/// The name of a spec's tensor: a family's own names win over the usual ones.
std::string tensor_name(Naming naming, std::span<const RoleNames> own_names, const TensorSpec& spec);

}  // namespace liuli
