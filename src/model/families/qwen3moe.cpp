// Qwen3-MoE: Qwen3's block with a mixture of experts and no shared one.
#include "model/families/decoder_tensors.h"
#include "model/families/expert_keys.h"

namespace liuli {
namespace {

ModelConfig read_config(ConfigReader& reader) {
  ModelConfig c = reader.common("qwen3moe");
  c.activation = reader.activation_or(Activation::silu);
  c.qk_norm = QkNorm::per_head;
  c.ropes = {reader.rope(c.head_dim)};
  c.experts = read_softmax_experts(reader, c);
  // GGUF files do not say it: every Qwen3-MoE was released with renormalised weights.
  c.experts.renormalise = reader.flag_or({"expert_weights_norm", "norm_topk_prob"}, reader.is_gguf());
  const int64_t window = reader.count_or_zero({nullptr, "sliding_window"}, 0, 1 << 30);
  LayerPlan layer;
  layer.attn_norm.before = layer.ffn_norm.before = NormKind::rms;
  if (reader.flag_or({nullptr, "use_sliding_window"}, false)) layer.sliding_window = static_cast<int>(window);
  c.layers.assign(static_cast<size_t>(c.n_layers), layer);
  read_routed_layers(reader, c);
  return c;
}

std::vector<TensorSpec> list_tensors(const ModelConfig& c, Naming naming) {
  std::vector<TensorSpec> t = decoder_tensors(c, naming);
  add_optional_biases(c, t);
  return t;
}

}  // namespace

const Family kQwen3Moe = {"qwen3moe", "qwen3_moe", read_config, list_tensors};

}  // namespace liuli
