// Qwen1.5-MoE, Qwen2-MoE: Qwen2's block; in most layers a mixture of experts beside a shared expert with a gate of its
// own.
#include <algorithm>

#include "model/families/decoder_tensors.h"
#include "model/families/expert_keys.h"
#include "model/families/window_plan.h"

namespace liuli {
namespace {

// Without "layer_types" every other one of the first max_window_layers is windowed: not Qwen2's rule.
void read_windows(ConfigReader& reader, ModelConfig& c) {
  const int64_t window = reader.count_or_zero({nullptr, "sliding_window"}, 0, 1 << 30);
  const int64_t limit = reader.count_or_zero({nullptr, "max_window_layers"}, 28, 1 << 20);
  const std::vector<bool> windowed = read_windowed_layers(reader, c.n_layers);
  if (!reader.flag_or({nullptr, "use_sliding_window"}, false)) return;
  for (int64_t i = 0; i < c.n_layers; i++) {
    const auto at = static_cast<size_t>(i);
    if (windowed.empty() ? i % 2 == 0 && i < limit : windowed[at])
      c.layers[at].sliding_window = static_cast<int>(window);
  }
}

ExpertConfig read_experts(ConfigReader& reader, const ModelConfig& c) {
  ExpertConfig e = read_softmax_experts(reader, c);
  if (!reader.has({"expert_feed_forward_length", "moe_intermediate_size"}))
    e.d_ff = std::max<int64_t>(1, c.d_ff / e.n_experts_active);  // so in older GGUF files
  e.shared_d_ff = reader.count_or({"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
                                  c.d_ff, int64_t{1} << 24);
  e.shared_gate = true;
  e.renormalise = reader.flag_or({"expert_weights_norm", "norm_topk_prob"}, false);
  return e;
}

ModelConfig read_config(ConfigReader& reader) {
  ModelConfig c = reader.common("qwen2moe");
  c.activation = reader.activation_or(Activation::silu);
  c.qkv_bias = reader.flag_or({nullptr, "qkv_bias"}, true);
  c.ropes = {reader.rope(c.head_dim)};
  c.experts = read_experts(reader, c);
  LayerPlan layer;
  layer.attn_norm.before = layer.ffn_norm.before = NormKind::rms;
  c.layers.assign(static_cast<size_t>(c.n_layers), layer);
  read_routed_layers(reader, c);
  read_windows(reader, c);
  return c;
}

std::vector<TensorSpec> list_tensors(const ModelConfig& c, Naming naming) {
  std::vector<TensorSpec> t = decoder_tensors(c, naming);
  if (c.qkv_bias) add_qkv_biases(c, t);
  return t;
}

constexpr RoleNames kNames[] = {
    {Role::shared_gate, "blk.{L}.ffn_gate_shexp.weight",
     "model.layers.{L}.mlp.shared_expert.gate_proj.weight"},
    {Role::shared_up, "blk.{L}.ffn_up_shexp.weight", "model.layers.{L}.mlp.shared_expert.up_proj.weight"},
    {Role::shared_down, "blk.{L}.ffn_down_shexp.weight",
     "model.layers.{L}.mlp.shared_expert.down_proj.weight"},
};

}  // namespace

const Family kQwen2Moe = {"qwen2moe", "qwen2_moe", read_config, list_tensors, kNames, is_rope_buffer};

}  // namespace liuli
