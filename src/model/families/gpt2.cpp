// GPT-2: LayerNorm with biases, one matrix for q, k and v, learned positions, GELU without a gate.
#include "model/families/family.h"

namespace liuli {
namespace {

ModelConfig read_config(ConfigReader& reader) {
  ModelConfig c = reader.common("gpt2", NormKind::layer);
  c.activation = Activation::gelu_tanh;
  c.gated_ffn = false;
  c.learned_positions = true;
  c.ropes = {RopeConfig{}};  // dim 0: nothing turns
  LayerPlan layer;
  layer.attn_norm.before = layer.ffn_norm.before = NormKind::layer;
  c.layers.assign(static_cast<size_t>(c.n_layers), layer);
  return c;
}

std::vector<TensorSpec> list_tensors(const ModelConfig& c) {
  const int64_t d = c.d_model, qkv = (c.n_heads + 2 * c.n_kv_heads) * c.head_dim;
  std::vector<TensorSpec> t = {{Role::token_embedding, -1, {c.vocab_size, d}},
                               {Role::position_embedding, -1, {c.max_seq_len, d}},
                               {Role::output_norm, -1, {d}},
                               {Role::output_norm_bias, -1, {d}}};
  if (!c.tied_embeddings) t.push_back({Role::output_matrix, -1, {c.vocab_size, d}});
  for (int layer = 0; layer < c.n_layers; layer++) {
    auto add = [&](Role weight, Role bias, std::vector<int64_t> shape) {
      t.push_back({bias, layer, {shape[0]}});
      t.push_back({weight, layer, std::move(shape)});
    };
    add(Role::attn_norm, Role::attn_norm_bias, {d});
    add(Role::attn_qkv, Role::attn_qkv_bias, {qkv, d});
    add(Role::attn_o, Role::attn_o_bias, {d, c.n_heads * c.head_dim});
    add(Role::ffn_norm, Role::ffn_norm_bias, {d});
    add(Role::ffn_up, Role::ffn_up_bias, {c.d_ff, d});
    add(Role::ffn_down, Role::ffn_down_bias, {d, c.d_ff});
  }
  return t;
}

}  // namespace

const Family kGpt2 = {"gpt2", read_config, list_tensors};

}  // namespace liuli
