// Gemma 3 (text): sandwich norms, q/k norms, GeGLU, five windowed layers to one global. Converters have added the 1 of
// Gemma's (1 + w) to every norm weight already.
#include <cmath>

#include "model/families/decoder_tensors.h"

namespace liuli {
namespace {

constexpr int64_t kGlobalEvery = 6;   // not stored in Gemma 3's files: layers 5, 11, 17, … are global
constexpr int64_t kLayersOf27B = 62;  // the one size whose queries are scaled by d_model / n_heads

ModelConfig read_config(ConfigReader& reader) {
  ModelConfig c = reader.common("gemma3");
  c.activation = Activation::gelu_tanh;
  c.qk_norm = QkNorm::per_head;
  c.embedding_scale = std::sqrt(static_cast<double>(c.d_model));
  if (c.n_layers == kLayersOf27B)
    c.attention_scale = 1 / std::sqrt(static_cast<double>(c.d_model) / static_cast<double>(c.n_heads));
  c.attention_soft_cap = reader.number_or("attn_logit_softcapping", 0);
  c.final_soft_cap = reader.number_or("final_logit_softcapping", 0);

  RopeConfig global = reader.rope(c.head_dim), local;
  local.dim = global.dim;
  local.theta = reader.number_or("rope.freq_base_swa", 10000);  // windowed layers are never scaled
  c.ropes = {global, local};

  const int window = static_cast<int>(reader.count_or("attention.sliding_window", 0, int64_t{1} << 30));
  const int64_t period = reader.count_or("attention.sliding_window_pattern", kGlobalEvery, 1024);
  for (int64_t i = 0; i < c.n_layers; i++) {
    const bool is_global = i % period == period - 1;
    LayerPlan layer;
    layer.attn_norm.before = layer.ffn_norm.before = NormKind::rms;
    layer.attn_norm.on_output = layer.ffn_norm.on_output = NormKind::rms;
    layer.sliding_window = is_global ? 0 : window;
    layer.rope = is_global ? 0 : 1;
    c.layers.push_back(layer);
  }
  return c;
}

}  // namespace

const Family kGemma3 = {"gemma3", read_config, decoder_tensors};

}  // namespace liuli
