// GPT-2: LayerNorm with biases, one matrix for q, k and v, learned positions, GELU without a gate.
#include "model/families/family.h"

namespace liuli {
namespace {

ModelConfig read_config(ConfigReader& reader) {
  ModelConfig c = reader.common("gpt2", {.norm = NormKind::layer, .embedding = "wte.weight"});
  c.activation = reader.activation_or(Activation::gelu_tanh);
  c.gated_ffn = false;
  c.positions = PositionTable::learned;
  c.ropes = {RopeConfig{}};  // dim 0: nothing turns
  if (!reader.flag_or({nullptr, "scale_attn_weights"}, true)) c.attention_scale = 1;
  LayerPlan layer;
  layer.attn_norm.before = layer.ffn_norm.before = NormKind::layer;
  c.layers.assign(static_cast<size_t>(c.n_layers), layer);
  return c;
}

std::vector<TensorSpec> list_tensors(const ModelConfig& c, Naming naming) {
  const int64_t d = c.d_model, qkv = (c.n_heads + 2 * c.n_kv_heads) * c.head_dim;
  std::vector<TensorSpec> t = {{Role::token_embedding, -1, {c.vocab_size, d}},
                               {Role::position_embedding, -1, {c.max_seq_len, d}},
                               {Role::output_norm, -1, {d}},
                               {Role::output_norm_bias, -1, {d}}};
  if (!c.tied_embeddings) t.push_back({Role::output_matrix, -1, {c.vocab_size, d}});
  for (int layer = 0; layer < c.n_layers; layer++) {
    auto add = [&](Role weight, Role bias, std::vector<int64_t> shape) {
      t.push_back({bias, layer, {shape[0]}});
      TensorSpec spec{weight, layer, std::move(shape)};
      spec.transposed =
          naming == Naming::hugging_face && spec.shape.size() == 2;  // its Conv1D keeps [d_in, d_out]
      t.push_back(std::move(spec));
    };
    add(Role::attn_norm, Role::attn_norm_bias, {d});
    add(Role::attn_qkv, Role::attn_qkv_bias, {qkv, d});
    add(Role::attn_o, Role::attn_o_bias, {d, c.n_heads * c.head_dim});
    add(Role::ffn_norm, Role::ffn_norm_bias, {d});
    add(Role::ffn_up, Role::ffn_up_bias, {c.d_ff, d});
    add(Role::ffn_down, Role::ffn_down_bias, {d, c.d_ff});
  }
  return t;
}

constexpr RoleNames kNames[] = {
    {Role::token_embedding, "token_embd.weight", "wte.weight"},
    {Role::position_embedding, "position_embd.weight", "wpe.weight"},
    {Role::output_norm, "output_norm.weight", "ln_f.weight"},
    {Role::output_norm_bias, "output_norm.bias", "ln_f.bias"},
    {Role::attn_norm, "blk.{L}.attn_norm.weight", "h.{L}.ln_1.weight"},
    {Role::attn_norm_bias, "blk.{L}.attn_norm.bias", "h.{L}.ln_1.bias"},
    {Role::attn_qkv, "blk.{L}.attn_qkv.weight", "h.{L}.attn.c_attn.weight"},
    {Role::attn_qkv_bias, "blk.{L}.attn_qkv.bias", "h.{L}.attn.c_attn.bias"},
    {Role::attn_o, "blk.{L}.attn_output.weight", "h.{L}.attn.c_proj.weight"},
    {Role::attn_o_bias, "blk.{L}.attn_output.bias", "h.{L}.attn.c_proj.bias"},
    {Role::ffn_norm, "blk.{L}.ffn_norm.weight", "h.{L}.ln_2.weight"},
    {Role::ffn_norm_bias, "blk.{L}.ffn_norm.bias", "h.{L}.ln_2.bias"},
    {Role::ffn_up, "blk.{L}.ffn_up.weight", "h.{L}.mlp.c_fc.weight"},
    {Role::ffn_up_bias, "blk.{L}.ffn_up.bias", "h.{L}.mlp.c_fc.bias"},
    {Role::ffn_down, "blk.{L}.ffn_down.weight", "h.{L}.mlp.c_proj.weight"},
    {Role::ffn_down_bias, "blk.{L}.ffn_down.bias", "h.{L}.mlp.c_proj.bias"},
};

// Causal masks that old checkpoints store.
bool is_mask(const ModelConfig&, const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

}  // namespace

const Family kGpt2 = {"gpt2", "gpt2", read_config, list_tensors, kNames, is_mask};

}  // namespace liuli
