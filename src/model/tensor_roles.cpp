#include "model/tensor_roles.h"

#include "core/check.h"

namespace liuli {
namespace {

// GGUF has one name per role; in Hugging Face folders these are Llama's, which most families share.
constexpr RoleNames kUsualNames[] = {
    {Role::token_embedding, "token_embd.weight", "model.embed_tokens.weight"},
    {Role::position_embedding, "position_embd.weight", nullptr},
    {Role::token_types, "token_types.weight", nullptr},
    {Role::embedding_norm, "token_embd_norm.weight", nullptr},
    {Role::embedding_norm_bias, "token_embd_norm.bias", nullptr},
    {Role::output_norm, "output_norm.weight", "model.norm.weight"},
    {Role::output_norm_bias, "output_norm.bias", "model.norm.bias"},
    {Role::output_matrix, "output.weight", "lm_head.weight"},
    {Role::rope_divisors, "rope_freqs.weight", nullptr},
    {Role::attn_norm, "blk.{L}.attn_norm.weight", "model.layers.{L}.input_layernorm.weight"},
    {Role::attn_norm_bias, "blk.{L}.attn_norm.bias", "model.layers.{L}.input_layernorm.bias"},
    {Role::attn_qkv, "blk.{L}.attn_qkv.weight", "model.layers.{L}.self_attn.qkv_proj.weight"},
    {Role::attn_qkv_bias, "blk.{L}.attn_qkv.bias", "model.layers.{L}.self_attn.qkv_proj.bias"},
    {Role::attn_q, "blk.{L}.attn_q.weight", "model.layers.{L}.self_attn.q_proj.weight"},
    {Role::attn_k, "blk.{L}.attn_k.weight", "model.layers.{L}.self_attn.k_proj.weight"},
    {Role::attn_v, "blk.{L}.attn_v.weight", "model.layers.{L}.self_attn.v_proj.weight"},
    {Role::attn_o, "blk.{L}.attn_output.weight", "model.layers.{L}.self_attn.o_proj.weight"},
    {Role::attn_q_bias, "blk.{L}.attn_q.bias", "model.layers.{L}.self_attn.q_proj.bias"},
    {Role::attn_k_bias, "blk.{L}.attn_k.bias", "model.layers.{L}.self_attn.k_proj.bias"},
    {Role::attn_v_bias, "blk.{L}.attn_v.bias", "model.layers.{L}.self_attn.v_proj.bias"},
    {Role::attn_o_bias, "blk.{L}.attn_output.bias", "model.layers.{L}.self_attn.o_proj.bias"},
    {Role::attn_q_norm, "blk.{L}.attn_q_norm.weight", "model.layers.{L}.self_attn.q_norm.weight"},
    {Role::attn_k_norm, "blk.{L}.attn_k_norm.weight", "model.layers.{L}.self_attn.k_norm.weight"},
    {Role::attn_q_a, "blk.{L}.attn_q_a.weight", "model.layers.{L}.self_attn.q_a_proj.weight"},
    {Role::attn_q_a_norm, "blk.{L}.attn_q_a_norm.weight", "model.layers.{L}.self_attn.q_a_layernorm.weight"},
    {Role::attn_q_b, "blk.{L}.attn_q_b.weight", "model.layers.{L}.self_attn.q_b_proj.weight"},
    {Role::attn_kv_a, "blk.{L}.attn_kv_a_mqa.weight", "model.layers.{L}.self_attn.kv_a_proj_with_mqa.weight"},
    {Role::attn_kv_a_norm, "blk.{L}.attn_kv_a_norm.weight",
     "model.layers.{L}.self_attn.kv_a_layernorm.weight"},
    {Role::attn_kv_b, "blk.{L}.attn_kv_b.weight", "model.layers.{L}.self_attn.kv_b_proj.weight"},
    {Role::attn_k_b, "blk.{L}.attn_k_b.weight", nullptr},
    {Role::attn_v_b, "blk.{L}.attn_v_b.weight", nullptr},
    {Role::attn_output_norm, "blk.{L}.post_attention_norm.weight",
     "model.layers.{L}.post_attention_layernorm.weight"},
    {Role::attn_after_norm, "blk.{L}.attn_output_norm.weight", nullptr},
    {Role::attn_after_norm_bias, "blk.{L}.attn_output_norm.bias", nullptr},
    {Role::ffn_norm, "blk.{L}.ffn_norm.weight", "model.layers.{L}.post_attention_layernorm.weight"},
    {Role::ffn_norm_bias, "blk.{L}.ffn_norm.bias", "model.layers.{L}.post_attention_layernorm.bias"},
    {Role::ffn_gate_up, "blk.{L}.ffn_up.weight", "model.layers.{L}.mlp.gate_up_proj.weight"},
    {Role::ffn_gate, "blk.{L}.ffn_gate.weight", "model.layers.{L}.mlp.gate_proj.weight"},
    {Role::ffn_up, "blk.{L}.ffn_up.weight", "model.layers.{L}.mlp.up_proj.weight"},
    {Role::ffn_down, "blk.{L}.ffn_down.weight", "model.layers.{L}.mlp.down_proj.weight"},
    {Role::ffn_gate_bias, "blk.{L}.ffn_gate.bias", "model.layers.{L}.mlp.gate_proj.bias"},
    {Role::ffn_up_bias, "blk.{L}.ffn_up.bias", "model.layers.{L}.mlp.up_proj.bias"},
    {Role::ffn_down_bias, "blk.{L}.ffn_down.bias", "model.layers.{L}.mlp.down_proj.bias"},
    {Role::router, "blk.{L}.ffn_gate_inp.weight", "model.layers.{L}.mlp.gate.weight"},
    {Role::router_choice_bias, "blk.{L}.exp_probs_b.bias",
     "model.layers.{L}.mlp.gate.e_score_correction_bias"},
    {Role::expert_gate, "blk.{L}.ffn_gate_exps.weight", "model.layers.{L}.mlp.experts.{E}.gate_proj.weight"},
    {Role::expert_up, "blk.{L}.ffn_up_exps.weight", "model.layers.{L}.mlp.experts.{E}.up_proj.weight"},
    {Role::expert_down, "blk.{L}.ffn_down_exps.weight", "model.layers.{L}.mlp.experts.{E}.down_proj.weight"},
    {Role::shared_gate, "blk.{L}.ffn_gate_shexp.weight",
     "model.layers.{L}.mlp.shared_experts.gate_proj.weight"},
    {Role::shared_up, "blk.{L}.ffn_up_shexp.weight", "model.layers.{L}.mlp.shared_experts.up_proj.weight"},
    {Role::shared_down, "blk.{L}.ffn_down_shexp.weight",
     "model.layers.{L}.mlp.shared_experts.down_proj.weight"},
    {Role::shared_expert_gate, "blk.{L}.ffn_gate_inp_shexp.weight",
     "model.layers.{L}.mlp.shared_expert_gate.weight"},
    {Role::ffn_output_norm, "blk.{L}.post_ffw_norm.weight",
     "model.layers.{L}.post_feedforward_layernorm.weight"},
    {Role::ffn_after_norm, "blk.{L}.layer_output_norm.weight", nullptr},
    {Role::ffn_after_norm_bias, "blk.{L}.layer_output_norm.bias", nullptr},
};

const char* pattern_of(Naming naming, std::span<const RoleNames> names, Role role) {
  for (const RoleNames& n : names)
    if (n.role == role) return naming == Naming::gguf ? n.gguf : n.hugging_face;
  return nullptr;
}

void fill(std::string& text, std::string_view placeholder, const std::string& value) {
  const size_t at = text.find(placeholder);
  if (at != std::string::npos) text.replace(at, placeholder.size(), value);
}

}  // namespace

std::string tensor_name(Naming naming, std::span<const RoleNames> own_names, const TensorSpec& spec) {
  const char* pattern = pattern_of(naming, own_names, spec.role);
  if (pattern == nullptr) pattern = pattern_of(naming, kUsualNames, spec.role);
  LIULI_CHECK(pattern != nullptr);  // a family that lists a tensor knows its name
  std::string name = pattern;
  fill(name, "{S}", spec.encoder ? "enc" : "dec");
  fill(name, "{L}", std::to_string(spec.layer));
  fill(name, "{E}", std::to_string(spec.expert));
  return name;
}

}  // namespace liuli
