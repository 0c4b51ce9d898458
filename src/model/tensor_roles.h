// What a stored tensor is for, independent of how a file names it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ops/matrix.h"

namespace liuli {

enum class Role : uint8_t {
  token_embedding,
  position_embedding,
  output_norm,
  output_norm_bias,
  output_matrix,
  rope_divisors,
  attn_norm,
  attn_norm_bias,
  attn_qkv,
  attn_qkv_bias,
  attn_q,
  attn_k,
  attn_v,
  attn_q_bias,
  attn_k_bias,
  attn_v_bias,
  attn_o,
  attn_o_bias,
  attn_q_norm,
  attn_k_norm,
  attn_output_norm,
  ffn_norm,
  ffn_norm_bias,
  ffn_gate,
  ffn_up,
  ffn_down,
  ffn_gate_bias,
  ffn_up_bias,
  ffn_down_bias,
  ffn_output_norm,
};

/// GGUF's name of a role: "blk.3.attn_q.weight"; layer is ignored for roles outside the blocks.
std::string gguf_tensor_name(Role role, int layer);

/// One tensor a family expects, with the shape it must have.
struct TensorSpec {
  Role role;
  int layer = -1;
  std::vector<int64_t> shape;
  bool optional = false;
  RowOrder order = {};
};

}  // namespace liuli
