#include "model/tensor_roles.h"

#include "core/check.h"

namespace liuli {
namespace {

struct GgufName {
  const char* name;
  bool in_block;
};

GgufName gguf_name(Role role) {
  switch (role) {
    case Role::token_embedding:
      return {"token_embd.weight", false};
    case Role::position_embedding:
      return {"position_embd.weight", false};
    case Role::output_norm_bias:
      return {"output_norm.bias", false};
    case Role::attn_norm_bias:
      return {"attn_norm.bias", true};
    case Role::attn_qkv:
      return {"attn_qkv.weight", true};
    case Role::attn_qkv_bias:
      return {"attn_qkv.bias", true};
    case Role::ffn_norm_bias:
      return {"ffn_norm.bias", true};
    case Role::output_norm:
      return {"output_norm.weight", false};
    case Role::output_matrix:
      return {"output.weight", false};
    case Role::rope_divisors:
      return {"rope_freqs.weight", false};
    case Role::attn_norm:
      return {"attn_norm.weight", true};
    case Role::attn_q:
      return {"attn_q.weight", true};
    case Role::attn_k:
      return {"attn_k.weight", true};
    case Role::attn_v:
      return {"attn_v.weight", true};
    case Role::attn_q_bias:
      return {"attn_q.bias", true};
    case Role::attn_k_bias:
      return {"attn_k.bias", true};
    case Role::attn_v_bias:
      return {"attn_v.bias", true};
    case Role::attn_o:
      return {"attn_output.weight", true};
    case Role::attn_o_bias:
      return {"attn_output.bias", true};
    case Role::attn_q_norm:
      return {"attn_q_norm.weight", true};
    case Role::attn_k_norm:
      return {"attn_k_norm.weight", true};
    case Role::attn_output_norm:
      return {"post_attention_norm.weight", true};
    case Role::ffn_norm:
      return {"ffn_norm.weight", true};
    case Role::ffn_gate:
      return {"ffn_gate.weight", true};
    case Role::ffn_up:
      return {"ffn_up.weight", true};
    case Role::ffn_down:
      return {"ffn_down.weight", true};
    case Role::ffn_gate_bias:
      return {"ffn_gate.bias", true};
    case Role::ffn_up_bias:
      return {"ffn_up.bias", true};
    case Role::ffn_down_bias:
      return {"ffn_down.bias", true};
    case Role::ffn_output_norm:
      return {"post_ffw_norm.weight", true};
  }
  LIULI_CHECK(false);
}

}  // namespace

std::string gguf_tensor_name(Role role, int layer) {
  const GgufName name = gguf_name(role);
  return name.in_block ? "blk." + std::to_string(layer) + "." + name.name : name.name;
}

}  // namespace liuli
