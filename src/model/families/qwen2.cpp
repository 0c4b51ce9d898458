// Qwen2, Qwen2.5: Llama's block with biases on q, k and v.
#include "model/families/decoder_tensors.h"
#include "model/families/window_plan.h"

namespace liuli {
namespace {

ModelConfig read_config(ConfigReader& reader) {
  ModelConfig c = reader.common("qwen2");
  c.activation = reader.activation_or(Activation::silu);
  c.qkv_bias = true;
  c.ropes = {reader.rope(c.head_dim)};
  LayerPlan layer;
  layer.attn_norm.before = layer.ffn_norm.before = NormKind::rms;
  c.layers.assign(static_cast<size_t>(c.n_layers), layer);
  read_optional_window(reader, c);
  return c;
}

std::vector<TensorSpec> list_tensors(const ModelConfig& c, Naming naming) {
  std::vector<TensorSpec> t = decoder_tensors(c, naming);
  add_qkv_biases(c, t);
  return t;
}

}  // namespace

const Family kQwen2 = {"qwen2", "qwen2", read_config, list_tensors, {}, is_rope_buffer};

}  // namespace liuli
