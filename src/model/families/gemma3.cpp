// Gemma 3 (text): sandwich norms, q/k norms, GeGLU, windowed layers with a global one now and then. Weights of norms are
// stored as γ − 1; GGUF's converters have added the 1 already.
#include <cmath>

#include "model/families/decoder_tensors.h"
#include "model/families/window_plan.h"

namespace liuli {
namespace {

constexpr int64_t kGlobalEvery = 6;   // not stored in Gemma 3's GGUF files: layers 5, 11, 17, … are global
constexpr int64_t kLayersOf27B = 62;  // the one size whose queries are scaled by d_model / n_heads

void read_layers(ConfigReader& reader, ModelConfig& c) {
  const int64_t window =
      reader.count_or_zero({"attention.sliding_window", "sliding_window"}, 0, int64_t{1} << 30);
  const Key pattern{"attention.sliding_window_pattern", "_sliding_window_pattern|sliding_window_pattern"};
  const int64_t period = reader.count_or(pattern, kGlobalEvery, 1024);
  std::vector<bool> windowed = read_windowed_layers(reader, c.n_layers);
  for (int64_t i = static_cast<int64_t>(windowed.size()); i < c.n_layers; i++)
    windowed.push_back(i % period != period - 1);
  for (const bool local : windowed) {
    LayerPlan layer;
    layer.attn_norm.before = layer.ffn_norm.before = NormKind::rms;
    layer.attn_norm.on_output = layer.ffn_norm.on_output = NormKind::rms;
    layer.sliding_window = local ? static_cast<int>(window) : 0;
    layer.rope = local ? 1 : 0;
    c.layers.push_back(layer);
  }
}

ModelConfig read_config(ConfigReader& reader) {
  ModelConfig c = reader.common("gemma3");
  c.activation = reader.activation_or(Activation::gelu_tanh);
  c.qk_norm = QkNorm::per_head;
  c.embedding_scale = std::sqrt(static_cast<double>(c.d_model));
  double scalar = static_cast<double>(c.head_dim);
  if (reader.is_gguf() && c.n_layers == kLayersOf27B)
    scalar = static_cast<double>(c.d_model) / static_cast<double>(c.n_heads);
  c.attention_scale = 1 / std::sqrt(reader.number_or({nullptr, "query_pre_attn_scalar"}, scalar));
  c.attention_soft_cap = reader.number_or({"attn_logit_softcapping", "attn_logit_softcapping"}, 0);
  c.final_soft_cap = reader.number_or({"final_logit_softcapping", "final_logit_softcapping"}, 0);

  RopeConfig global = reader.rope(c.head_dim, "full_attention"), local;
  local.dim = global.dim;  // windowed layers are never scaled
  local.theta = reader.number_or(
      {"rope.freq_base_swa", "rope_local_base_freq|rope_parameters.sliding_attention.rope_theta"}, 10000);
  reader.text_or({nullptr, "rope_parameters.sliding_attention.rope_type"}, "");
  c.ropes = {global, local};
  read_layers(reader, c);
  return c;
}

std::vector<TensorSpec> list_tensors(const ModelConfig& c, Naming naming) {
  std::vector<TensorSpec> t = decoder_tensors(c, naming);
  for (TensorSpec& spec : t) spec.plus_one = naming == Naming::hugging_face && spec.shape.size() == 1;
  return t;
}

constexpr RoleNames kNames[] = {
    {Role::ffn_norm, "blk.{L}.ffn_norm.weight", "model.layers.{L}.pre_feedforward_layernorm.weight"},
};

}  // namespace

const Family kGemma3 = {"gemma3", "gemma3_text", read_config, list_tensors, kNames};

}  // namespace liuli
