// Phi-3, Phi-3.5-mini (4k), Phi-4: Llama's block, with q, k and v in one matrix, gate and up in another, a sliding window
// and perhaps a part of each head that does not turn.
#include "model/families/decoder_tensors.h"

namespace liuli {
namespace {

// The long-context variants scale each pair by one of two lists, depending on the length: not supported.
void refuse_longrope(ConfigReader& reader, const RopeConfig& rope) {
  const Key type{"rope.scaling.type", "rope_scaling.type|rope_parameters.rope_type"};
  if (rope.scaling != RopeScaling::none)
    reader.refuse(type, "asks for longrope, a RoPE scaling that is not supported");
  if (reader.is_gguf() && reader.find_tensor("rope_factors_long.weight", nullptr) != nullptr)
    reader.refuse(
        type, "goes with tensor rope_factors_long.weight: longrope, a RoPE scaling that is not supported");
}

ModelConfig read_config(ConfigReader& reader) {
  ModelConfig c = reader.common("phi3");
  c.activation = reader.activation_or(Activation::silu);
  const RopeConfig rope = reader.rope(c.head_dim);
  refuse_longrope(reader, rope);
  c.ropes = {rope};
  LayerPlan layer;
  layer.attn_norm.before = layer.ffn_norm.before = NormKind::rms;
  layer.sliding_window =
      static_cast<int>(reader.count_or_zero({"attention.sliding_window", "sliding_window"}, 0, 1 << 30));
  c.layers.assign(static_cast<size_t>(c.n_layers), layer);
  return c;
}

std::vector<TensorSpec> list_tensors(const ModelConfig& c, Naming) {
  const int64_t d = c.d_model, q = c.n_heads * c.head_dim, kv = c.n_kv_heads * c.head_dim;
  std::vector<TensorSpec> t = {{Role::token_embedding, -1, {c.vocab_size, d}}, {Role::output_norm, -1, {d}}};
  if (!c.tied_embeddings) t.push_back({Role::output_matrix, -1, {c.vocab_size, d}});
  for (int layer = 0; layer < c.n_layers; layer++) {
    t.push_back({Role::attn_norm, layer, {d}});
    t.push_back({Role::attn_qkv, layer, {q + 2 * kv, d}});
    t.push_back({Role::attn_o, layer, {d, q}});
    t.push_back({Role::ffn_norm, layer, {d}});
    t.push_back({Role::ffn_gate_up, layer, {2 * c.d_ff, d}});
    t.push_back({Role::ffn_down, layer, {d, c.d_ff}});
  }
  return t;
}

}  // namespace

const Family kPhi3 = {"phi3", "phi3", read_config, list_tensors, {}, is_rope_buffer};

}  // namespace liuli
