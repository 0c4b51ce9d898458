// A bare stack of blocks whose norms stand where its configuration says: what experiments are made of. Pre-norm,
// post-norm, sandwich and DeepNorm (post-norm with residual_scale = α, arXiv:2203.00555) are values of the same keys.
// There is no such GGUF file; names are Liuli's own.
#include "model/families/family.h"

namespace liuli {
namespace {

NormKind read_norm_kind(ConfigReader& reader) {
  const Key key{nullptr, "norm"};
  const std::string kind = reader.text_or(key, "layer");
  if (kind == "layer") return NormKind::layer;
  if (kind == "rms") return NormKind::rms;
  reader.refuse(key, "is \"" + kind + "\"; Liuli knows \"layer\" and \"rms\"");
}

NormSlots read_slots(ConfigReader& reader, NormKind kind) {
  const Key key{nullptr, "norm_slots"};
  NormSlots slots;
  for (const std::string& slot : reader.texts_or_none(key)) {
    if (slot == "before")
      slots.before = kind;
    else if (slot == "on_output")
      slots.on_output = kind;
    else if (slot == "after_add")
      slots.after_add = kind;
    else
      reader.refuse(key, "names \"" + slot + "\"; Liuli knows \"before\", \"on_output\" and \"after_add\"");
  }
  return slots;
}

RopeConfig read_positions(ConfigReader& reader, int64_t head_dim) {
  const Key key{nullptr, "positions"};
  const std::string kind = reader.text_or(key, "none");
  if (kind == "rope") return reader.rope(head_dim);
  if (kind != "none") reader.refuse(key, "is \"" + kind + "\"; Liuli knows \"none\" and \"rope\"");
  return RopeConfig{};  // dim 0: nothing turns
}

ModelConfig read_config(ConfigReader& reader) {
  const NormKind kind = read_norm_kind(reader);
  ModelConfig c =
      reader.common("liuli_stack", {.norm = kind, .embedding = "embed.weight", .output = "head.weight"});
  c.activation = reader.activation_or(Activation::relu);
  c.gated_ffn = reader.flag_or({nullptr, "gated"}, false);
  c.causal = reader.flag_or({nullptr, "causal"}, true);
  c.residual_scale = reader.number_or({nullptr, "residual_scale"}, 1);
  if (!reader.flag_or({nullptr, "final_norm"}, true)) c.final_norm = NormKind::none;
  c.ropes = {read_positions(reader, c.head_dim)};
  LayerPlan layer;
  layer.attn_norm = layer.ffn_norm = read_slots(reader, kind);
  c.layers.assign(static_cast<size_t>(c.n_layers), layer);
  return c;
}

// γ, and β where a LayerNorm has one; a norm on a branch's output has none (as in the block).
struct SlotRoles {
  NormKind kind;
  Role gamma;
  std::optional<Role> beta;
};

std::vector<TensorSpec> list_tensors(const ModelConfig& c, Naming) {
  const int64_t d = c.d_model, q = c.n_heads * c.head_dim, kv = c.n_kv_heads * c.head_dim;
  std::vector<TensorSpec> t = {{Role::token_embedding, -1, {c.vocab_size, d}}};
  auto add_norm = [&](int layer, const SlotRoles& slot) {
    if (slot.kind == NormKind::none) return;
    t.push_back({slot.gamma, layer, {d}});
    if (slot.kind == NormKind::layer && slot.beta) t.push_back({*slot.beta, layer, {d}});
  };
  for (int layer = 0; layer < c.n_layers; layer++) {
    const LayerPlan& plan = c.layers[static_cast<size_t>(layer)];
    auto add = [&](Role role, std::vector<int64_t> shape) { t.push_back({role, layer, std::move(shape)}); };
    add_norm(layer, {plan.attn_norm.before, Role::attn_norm, Role::attn_norm_bias});
    add(Role::attn_q, {q, d});
    add(Role::attn_k, {kv, d});
    add(Role::attn_v, {kv, d});
    add(Role::attn_o, {d, q});
    add_norm(layer, {plan.attn_norm.on_output, Role::attn_output_norm, std::nullopt});
    add_norm(layer, {plan.attn_norm.after_add, Role::attn_after_norm, Role::attn_after_norm_bias});
    add_norm(layer, {plan.ffn_norm.before, Role::ffn_norm, Role::ffn_norm_bias});
    if (c.gated_ffn) add(Role::ffn_gate, {c.d_ff, d});
    add(Role::ffn_up, {c.d_ff, d});
    add(Role::ffn_down, {d, c.d_ff});
    add_norm(layer, {plan.ffn_norm.on_output, Role::ffn_output_norm, std::nullopt});
    add_norm(layer, {plan.ffn_norm.after_add, Role::ffn_after_norm, Role::ffn_after_norm_bias});
  }
  add_norm(-1, {c.final_norm, Role::output_norm, Role::output_norm_bias});
  if (!c.tied_embeddings) t.push_back({Role::output_matrix, -1, {c.vocab_size, d}});
  return t;
}

constexpr RoleNames kNames[] = {
    {Role::token_embedding, nullptr, "embed.weight"},
    {Role::output_norm, nullptr, "final_norm.weight"},
    {Role::output_norm_bias, nullptr, "final_norm.bias"},
    {Role::output_matrix, nullptr, "head.weight"},
    {Role::attn_norm, nullptr, "blocks.{L}.attn_norm.before.weight"},
    {Role::attn_norm_bias, nullptr, "blocks.{L}.attn_norm.before.bias"},
    {Role::attn_q, nullptr, "blocks.{L}.attn.q.weight"},
    {Role::attn_k, nullptr, "blocks.{L}.attn.k.weight"},
    {Role::attn_v, nullptr, "blocks.{L}.attn.v.weight"},
    {Role::attn_o, nullptr, "blocks.{L}.attn.o.weight"},
    {Role::attn_output_norm, nullptr, "blocks.{L}.attn_norm.on_output.weight"},
    {Role::attn_after_norm, nullptr, "blocks.{L}.attn_norm.after_add.weight"},
    {Role::attn_after_norm_bias, nullptr, "blocks.{L}.attn_norm.after_add.bias"},
    {Role::ffn_norm, nullptr, "blocks.{L}.ffn_norm.before.weight"},
    {Role::ffn_norm_bias, nullptr, "blocks.{L}.ffn_norm.before.bias"},
    {Role::ffn_gate, nullptr, "blocks.{L}.ffn.gate.weight"},
    {Role::ffn_up, nullptr, "blocks.{L}.ffn.up.weight"},
    {Role::ffn_down, nullptr, "blocks.{L}.ffn.down.weight"},
    {Role::ffn_output_norm, nullptr, "blocks.{L}.ffn_norm.on_output.weight"},
    {Role::ffn_after_norm, nullptr, "blocks.{L}.ffn_norm.after_add.weight"},
    {Role::ffn_after_norm_bias, nullptr, "blocks.{L}.ffn_norm.after_add.bias"},
};

}  // namespace

const Family kStack = {"", "liuli_stack", read_config, list_tensors, kNames};

}  // namespace liuli
