// Llama 2, 3, 3.x, SmolLM2, Mistral: pre-norm RMSNorm, grouped attention, SwiGLU; in Mixtral experts instead.
#include "model/families/decoder_tensors.h"
#include "model/families/expert_keys.h"

namespace liuli {
namespace {

ModelConfig read_config(ConfigReader& reader) {
  ModelConfig c = reader.common("llama");
  c.activation = reader.activation_or(Activation::silu);
  RopeConfig rope = reader.rope(c.head_dim);
  // Llama 3's frequency scaling has no key in GGUF: converters store one divisor per pair.
  rope.divisors = reader.rope_divisors(rope.dim / 2);
  if (!rope.divisors.empty()) rope.scaling = RopeScaling::divisors;
  c.ropes = {rope};
  LayerPlan layer;
  layer.attn_norm.before = layer.ffn_norm.before = NormKind::rms;
  layer.sliding_window =
      static_cast<int>(reader.count_or_zero({"attention.sliding_window", "sliding_window"}, 0, 1 << 30));
  layer.routed = reader.count_or_zero({"expert_count", "num_local_experts"}, 0, 1 << 16) > 0;
  c.layers.assign(static_cast<size_t>(c.n_layers), layer);
  if (layer.routed) c.experts = read_softmax_experts(reader, c);
  // Of no effect: counts of a file without experts, noise that only training adds.
  reader.count_or_zero({"expert_used_count", "num_experts_per_tok"}, 0, 1 << 16);
  reader.number_or({nullptr, "router_jitter_noise"}, 0);
  return c;
}

std::vector<TensorSpec> list_tensors(const ModelConfig& c, Naming naming) {
  std::vector<TensorSpec> t = decoder_tensors(c, naming);
  add_optional_biases(c, t);
  undo_interleaving(c, naming, t);
  if (c.ropes[0].scaling == RopeScaling::divisors)
    t.push_back({Role::rope_divisors, -1, {c.ropes[0].dim / 2}});
  return t;
}

// Mixtral's; its GGUF files call themselves llama and use the usual names.
constexpr RoleNames kNames[] = {
    {Role::router, "blk.{L}.ffn_gate_inp.weight", "model.layers.{L}.block_sparse_moe.gate.weight"},
    {Role::expert_gate, "blk.{L}.ffn_gate_exps.weight",
     "model.layers.{L}.block_sparse_moe.experts.{E}.w1.weight"},
    {Role::expert_up, "blk.{L}.ffn_up_exps.weight",
     "model.layers.{L}.block_sparse_moe.experts.{E}.w3.weight"},
    {Role::expert_down, "blk.{L}.ffn_down_exps.weight",
     "model.layers.{L}.block_sparse_moe.experts.{E}.w2.weight"},
};

}  // namespace

const Family kLlama = {"llama", "llama|mistral|mixtral", read_config, list_tensors, kNames, is_rope_buffer};

}  // namespace liuli
