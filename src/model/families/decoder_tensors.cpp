#include "model/families/decoder_tensors.h"

namespace liuli {

std::vector<TensorSpec> decoder_tensors(const ModelConfig& c) {
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
    add(Role::ffn_gate, {c.d_ff, c.d_model});
    add(Role::ffn_up, {c.d_ff, c.d_model});
    add(Role::ffn_down, {c.d_model, c.d_ff});
    add_norm(plan.ffn_norm.on_output, Role::ffn_output_norm);
  }
  return t;
}

}  // namespace liuli
