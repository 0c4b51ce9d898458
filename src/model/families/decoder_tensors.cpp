#include "model/families/decoder_tensors.h"

namespace liuli {

std::vector<TensorSpec> decoder_tensors(const ModelConfig& c) {
  const int64_t q = c.n_heads * c.head_dim, kv = c.n_kv_heads * c.head_dim;
  std::vector<TensorSpec> t = {{Role::token_embedding, -1, {c.vocab_size, c.d_model}},
                               {Role::output_norm, -1, {c.d_model}}};
  if (!c.tied_embeddings) t.push_back({Role::output_matrix, -1, {c.vocab_size, c.d_model}});
  for (int layer = 0; layer < c.n_layers; layer++) {
    auto add = [&](Role role, std::vector<int64_t> shape) { t.push_back({role, layer, std::move(shape)}); };
    add(Role::attn_norm, {c.d_model});
    add(Role::attn_q, {q, c.d_model});
    add(Role::attn_k, {kv, c.d_model});
    add(Role::attn_v, {kv, c.d_model});
    add(Role::attn_o, {c.d_model, q});
    add(Role::ffn_norm, {c.d_model});
    add(Role::ffn_gate, {c.d_ff, c.d_model});
    add(Role::ffn_up, {c.d_ff, c.d_model});
    add(Role::ffn_down, {c.d_model, c.d_ff});
  }
  return t;
}

}  // namespace liuli
