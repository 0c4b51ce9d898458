// Qwen2, Qwen2.5: Llama's block with biases on q, k and v.
#include "model/families/decoder_tensors.h"

namespace liuli {
namespace {

ModelConfig read_config(ConfigReader& reader) {
  ModelConfig c = reader.common("qwen2");
  c.qkv_bias = true;
  c.ropes = {reader.rope(c.head_dim)};
  LayerPlan layer;
  layer.attn_norm.before = layer.ffn_norm.before = NormKind::rms;
  c.layers.assign(static_cast<size_t>(c.n_layers), layer);
  return c;
}

std::vector<TensorSpec> list_tensors(const ModelConfig& c) {
  std::vector<TensorSpec> t = decoder_tensors(c);
  for (int layer = 0; layer < c.n_layers; layer++) {
    t.push_back({Role::attn_q_bias, layer, {c.n_heads * c.head_dim}});
    t.push_back({Role::attn_k_bias, layer, {c.n_kv_heads * c.head_dim}});
    t.push_back({Role::attn_v_bias, layer, {c.n_kv_heads * c.head_dim}});
  }
  return t;
}

}  // namespace

const Family kQwen2 = {"qwen2", read_config, list_tensors};

}  // namespace liuli
