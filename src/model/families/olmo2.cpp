// OLMo 2: norms on the branches' outputs instead of their inputs, and over whole q and k vectors.
#include "model/families/decoder_tensors.h"

namespace liuli {
namespace {

ModelConfig read_config(ConfigReader& reader) {
  ModelConfig c = reader.common("olmo2");
  c.activation = reader.activation_or(Activation::silu);
  c.qk_norm = QkNorm::whole;
  c.ropes = {reader.rope(c.head_dim)};
  LayerPlan layer;
  layer.attn_norm.on_output = layer.ffn_norm.on_output = NormKind::rms;
  c.layers.assign(static_cast<size_t>(c.n_layers), layer);
  return c;
}

}  // namespace

const Family kOlmo2 = {"olmo2", "olmo2", read_config, decoder_tensors, {}, is_rope_buffer};

}  // namespace liuli
