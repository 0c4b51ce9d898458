// Qwen3 dense: Llama's block with a norm on every query and key head, no biases.
#include "model/families/decoder_tensors.h"
#include "model/families/window_plan.h"

namespace liuli {
namespace {

ModelConfig read_config(ConfigReader& reader) {
  ModelConfig c = reader.common("qwen3");
  c.activation = reader.activation_or(Activation::silu);
  c.qk_norm = QkNorm::per_head;
  c.ropes = {reader.rope(c.head_dim)};
  LayerPlan layer;
  layer.attn_norm.before = layer.ffn_norm.before = NormKind::rms;
  c.layers.assign(static_cast<size_t>(c.n_layers), layer);
  read_optional_window(reader, c);
  return c;
}

}  // namespace

const Family kQwen3 = {"qwen3", "qwen3", read_config, decoder_tensors};

}  // namespace liuli
