#include "model/families/decoder_tensors.h"

namespace liuli {

void add_feed_forward(const ModelConfig& c, int layer, std::vector<TensorSpec>& t) {
  if (c.gated_ffn) t.push_back({Role::ffn_gate, layer, {c.d_ff, c.d_model}});
  t.push_back({Role::ffn_up, layer, {c.d_ff, c.d_model}});
  t.push_back({Role::ffn_down, layer, {c.d_model, c.d_ff}});
}

void add_expert_tensors(const ModelConfig& c, int layer, Naming naming, std::vector<TensorSpec>& t) {
  const ExpertConfig& e = c.experts;
  auto add = [&](Role role, std::vector<int64_t> shape) { t.push_back({role, layer, std::move(shape)}); };
  // GGUF stacks the experts of a layer in one tensor, Hugging Face folders keep each by itself.
  auto add_experts = [&](Role role, int64_t d_out, int64_t d_in) {
    if (naming == Naming::gguf) return add(role, {e.n_experts, d_out, d_in});
    for (int expert = 0; expert < e.n_experts; expert++) {
      TensorSpec spec{role, layer, {d_out, d_in}};
      spec.expert = expert;
      t.push_back(std::move(spec));
    }
  };
  add(Role::router, {e.n_experts, c.d_model});
  if (e.choice_bias) add(Role::router_choice_bias, {e.n_experts});
  add_experts(Role::expert_gate, e.d_ff, c.d_model);
  add_experts(Role::expert_up, e.d_ff, c.d_model);
  add_experts(Role::expert_down, c.d_model, e.d_ff);
  if (e.shared_d_ff == 0) return;
  add(Role::shared_gate, {e.shared_d_ff, c.d_model});
  add(Role::shared_up, {e.shared_d_ff, c.d_model});
  add(Role::shared_down, {c.d_model, e.shared_d_ff});
  if (e.shared_gate)  // a matrix of one row, a vector in GGUF
    add(Role::shared_expert_gate,
        naming == Naming::gguf ? std::vector<int64_t>{c.d_model} : std::vector<int64_t>{1, c.d_model});
}

std::vector<TensorSpec> decoder_tensors(const ModelConfig& c, Naming naming) {
  const int64_t q = c.n_heads * c.head_dim, kv = c.n_kv_heads * c.head_dim;
  std::vector<TensorSpec> t = {{Role::token_embedding, -1, {c.vocab_size, c.d_model}},
                               {Role::output_norm, -1, {c.d_model}}};
  if (!c.tied_embeddings) t.push_back({Role::output_matrix, -1, {c.vocab_size, c.d_model}});
  for (int layer = 0; layer < c.n_layers; layer++) {
    auto add = [&](Role role, std::vector<int64_t> shape) { t.push_back({role, layer, std::move(shape)}); };
    auto add_norm = [&](NormKind kind, Role role) {
      if (kind != NormKind::none) add(role, {c.d_model});
    };
    const LayerPlan& plan = c.layers[static_cast<size_t>(layer)];
    add_norm(plan.attn_norm.before, Role::attn_norm);
    add(Role::attn_q, {q, c.d_model});
    add(Role::attn_k, {kv, c.d_model});
    add(Role::attn_v, {kv, c.d_model});
    add(Role::attn_o, {c.d_model, q});
    if (c.qk_norm != QkNorm::none) {
      add(Role::attn_q_norm, {c.qk_norm == QkNorm::per_head ? c.head_dim : q});
      add(Role::attn_k_norm, {c.qk_norm == QkNorm::per_head ? c.head_dim : kv});
    }
    add_norm(plan.attn_norm.on_output, Role::attn_output_norm);
    add_norm(plan.ffn_norm.before, Role::ffn_norm);
    if (plan.routed)
      add_expert_tensors(c, layer, naming, t);
    else
      add_feed_forward(c, layer, t);
    add_norm(plan.ffn_norm.on_output, Role::ffn_output_norm);
  }
  return t;
}

void add_qkv_biases(const ModelConfig& c, std::vector<TensorSpec>& t) {
  for (int layer = 0; layer < c.n_layers; layer++) {
    t.push_back({Role::attn_q_bias, layer, {c.n_heads * c.head_dim}});
    t.push_back({Role::attn_k_bias, layer, {c.n_kv_heads * c.head_dim}});
    t.push_back({Role::attn_v_bias, layer, {c.n_kv_heads * c.head_dim}});
  }
}

void add_optional_biases(const ModelConfig& c, std::vector<TensorSpec>& t) {
  const size_t first = t.size();
  add_qkv_biases(c, t);
  for (int layer = 0; layer < c.n_layers; layer++) {
    t.push_back({Role::attn_o_bias, layer, {c.d_model}});
    if (c.layers[static_cast<size_t>(layer)].routed) continue;
    t.push_back({Role::ffn_gate_bias, layer, {c.d_ff}});
    t.push_back({Role::ffn_up_bias, layer, {c.d_ff}});
    t.push_back({Role::ffn_down_bias, layer, {c.d_model}});
  }
  for (size_t i = first; i < t.size(); i++) t[i].optional = true;
}

void undo_interleaving(const ModelConfig& c, Naming naming, std::vector<TensorSpec>& t) {
  if (naming != Naming::gguf) return;
  for (TensorSpec& spec : t) {
    if (spec.role == Role::attn_q || spec.role == Role::attn_q_bias) spec.order = {c.n_heads, c.head_dim};
    if (spec.role == Role::attn_k || spec.role == Role::attn_k_bias) spec.order = {c.n_kv_heads, c.head_dim};
  }
}

bool is_rope_buffer(const ModelConfig&, const std::string& name) {
  return name.find("rotary_emb.inv_freq") != std::string::npos;
}

}  // namespace liuli
