// Llama 2, 3, 3.x, SmolLM2, Mistral: pre-norm RMSNorm, grouped attention, SwiGLU.
#include "model/families/decoder_tensors.h"

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
  c.layers.assign(static_cast<size_t>(c.n_layers), layer);
  return c;
}

std::vector<TensorSpec> list_tensors(const ModelConfig& c, Naming naming) {
  std::vector<TensorSpec> t = decoder_tensors(c, naming);
  // GGUF's converters interleave the two halves of every q and k head (and of their biases); RowOrder undoes it.
  const bool interleaved = naming == Naming::gguf;
  const RowOrder q_order = interleaved ? RowOrder{c.n_heads, c.head_dim} : RowOrder{};
  const RowOrder k_order = interleaved ? RowOrder{c.n_kv_heads, c.head_dim} : RowOrder{};
  for (TensorSpec& spec : t) {
    if (spec.role == Role::attn_q) spec.order = q_order;
    if (spec.role == Role::attn_k) spec.order = k_order;
  }
  const int64_t q = c.n_heads * c.head_dim, kv = c.n_kv_heads * c.head_dim;
  for (int layer = 0; layer < c.n_layers; layer++) {
    t.push_back({Role::attn_q_bias, layer, {q}, true, q_order});
    t.push_back({Role::attn_k_bias, layer, {kv}, true, k_order});
    t.push_back({Role::attn_v_bias, layer, {kv}, true});
    t.push_back({Role::attn_o_bias, layer, {c.d_model}, true});
    t.push_back({Role::ffn_gate_bias, layer, {c.d_ff}, true});
    t.push_back({Role::ffn_up_bias, layer, {c.d_ff}, true});
    t.push_back({Role::ffn_down_bias, layer, {c.d_model}, true});
  }
  if (c.ropes[0].scaling == RopeScaling::divisors)
    t.push_back({Role::rope_divisors, -1, {c.ropes[0].dim / 2}});
  return t;
}

}  // namespace

const Family kLlama = {"llama", "llama|mistral", read_config, list_tensors, {}, is_rope_buffer};

}  // namespace liuli
