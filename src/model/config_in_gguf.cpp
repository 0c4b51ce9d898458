#include "model/config_in_gguf.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ops/rope.h"

namespace liuli {
namespace {

constexpr double kF32Rounding = 1e-6;

RopeConfig with_divisors(RopeConfig rope) {
  RopeConfig plain;
  plain.theta = rope.theta;
  plain.dim = rope.dim;
  const std::vector<double> base = rope_frequencies(plain), scaled = rope_frequencies(rope);
  plain.scaling = RopeScaling::divisors;
  for (size_t i = 0; i < base.size(); i++) plain.divisors.push_back(static_cast<float>(base[i] / scaled[i]));
  return plain;
}

/// Keeps the first difference it is shown.
class Comparison {
 public:
  template <class T>
  void same(const char* what, T here, T there) {
    if (here != there) note(what, fmt::format("{}", here), fmt::format("{}", there));
  }
  void kind(const char* what, int here, int there) {
    if (here != there && text_.empty()) text_ = fmt::format("{}{} is of another kind", where_, what);
  }
  void near(const char* what, double here, double there) {
    if (!(std::fabs(here - there) <= kF32Rounding * std::max(std::fabs(here), std::fabs(there))))
      note(what, fmt::format("{:g}", here), fmt::format("{:g}", there));
  }
  void enter(std::string where) { where_ = std::move(where); }
  const std::string& text() const { return text_; }

 private:
  void note(const char* what, const std::string& here, const std::string& there) {
    if (text_.empty()) text_ = fmt::format("{}{} is {} here, {} there", where_, what, here, there);
  }

  std::string where_, text_;
};

void compare_sizes(Comparison& c, const ModelConfig& a, const ModelConfig& b) {
  c.same("vocab_size", a.vocab_size, b.vocab_size);
  c.same("d_model", a.d_model, b.d_model);
  c.same("n_layers", a.n_layers, b.n_layers);
  c.same("d_ff", a.d_ff, b.d_ff);
  c.same("n_heads", a.n_heads, b.n_heads);
  c.same("n_kv_heads", a.n_kv_heads, b.n_kv_heads);
  c.same("head_dim", a.head_dim, b.head_dim);
  c.same("max_seq_len", a.max_seq_len, b.max_seq_len);
  c.same("n_token_types", a.n_token_types, b.n_token_types);
  c.same("tied_embeddings", a.tied_embeddings, b.tied_embeddings);
  c.same("has_output", a.has_output, b.has_output);
}

void compare_choices(Comparison& c, const ModelConfig& a, const ModelConfig& b) {
  c.near("norm_eps", a.norm_eps, b.norm_eps);
  c.kind("the activation", static_cast<int>(a.activation), static_cast<int>(b.activation));
  c.same("gated_ffn", a.gated_ffn, b.gated_ffn);
  c.kind("the norm of queries and keys", static_cast<int>(a.qk_norm), static_cast<int>(b.qk_norm));
  c.same("qkv_bias", a.qkv_bias, b.qkv_bias);
  c.kind("the position table", static_cast<int>(a.positions), static_cast<int>(b.positions));
  c.kind("embedding_norm", static_cast<int>(a.embedding_norm), static_cast<int>(b.embedding_norm));
  c.kind("final_norm", static_cast<int>(a.final_norm), static_cast<int>(b.final_norm));
  c.near("embedding_scale", a.embedding_scale, b.embedding_scale);
  c.near("residual_scale", a.residual_scale, b.residual_scale);
  c.near("attention_scale", a.attention_scale, b.attention_scale);
  c.near("attention_soft_cap", a.attention_soft_cap, b.attention_soft_cap);
  c.near("final_soft_cap", a.final_soft_cap, b.final_soft_cap);
  c.same("causal", a.causal, b.causal);
}

void compare_ropes(Comparison& c, const ModelConfig& a, const ModelConfig& b) {
  c.same("the number of RoPE kinds", a.ropes.size(), b.ropes.size());
  for (size_t i = 0; i < std::min(a.ropes.size(), b.ropes.size()); i++) {
    c.enter(fmt::format("rope {}: ", i));
    c.same("dim", a.ropes[i].dim, b.ropes[i].dim);
    if (a.ropes[i].dim == 0 || a.ropes[i].dim != b.ropes[i].dim) continue;
    c.near("the factor of cos and sin", a.ropes[i].attention_factor, b.ropes[i].attention_factor);
    const std::vector<double> fa = rope_frequencies(a.ropes[i]), fb = rope_frequencies(b.ropes[i]);
    for (size_t pair = 0; pair < fa.size(); pair++) c.near("a frequency", fa[pair], fb[pair]);
  }
  c.enter("");
}

void compare_slots(Comparison& c, const NormSlots& a, const NormSlots& b) {
  c.kind("a norm before a branch", static_cast<int>(a.before), static_cast<int>(b.before));
  c.kind("a norm on a branch's output", static_cast<int>(a.on_output), static_cast<int>(b.on_output));
  c.kind("a norm of a sum", static_cast<int>(a.after_add), static_cast<int>(b.after_add));
}

void compare_layers(Comparison& c, const ModelConfig& a, const ModelConfig& b) {
  c.same("the number of layers", a.layers.size(), b.layers.size());
  for (size_t i = 0; i < std::min(a.layers.size(), b.layers.size()); i++) {
    const LayerPlan &x = a.layers[i], &y = b.layers[i];
    c.enter(fmt::format("layer {}: ", i));
    compare_slots(c, x.attn_norm, y.attn_norm);
    compare_slots(c, x.ffn_norm, y.ffn_norm);
    c.same("routed", x.routed, y.routed);
    c.same("sliding_window", x.sliding_window, y.sliding_window);
    c.same("the kind of RoPE", x.rope, y.rope);
  }
  c.enter("");
}

void compare_experts(Comparison& c, const ExpertConfig& a, const ExpertConfig& b) {
  c.same("n_experts", a.n_experts, b.n_experts);
  if (a.n_experts == 0) return;
  c.same("n_experts_active", a.n_experts_active, b.n_experts_active);
  c.same("the experts' d_ff", a.d_ff, b.d_ff);
  c.same("the shared experts' d_ff", a.shared_d_ff, b.shared_d_ff);
  c.kind("the experts' score", static_cast<int>(a.score), static_cast<int>(b.score));
  c.same("choice_bias", a.choice_bias, b.choice_bias);
  c.same("shared_gate", a.shared_gate, b.shared_gate);
  c.same("n_groups", a.n_groups, b.n_groups);
  c.same("n_groups_kept", a.n_groups_kept, b.n_groups_kept);
  if (a.n_groups > 1) c.same("group_best", a.group_best, b.group_best);
  c.same("the experts' renormalise", a.renormalise, b.renormalise);
  c.near("the experts' weight_scale", a.weight_scale, b.weight_scale);
}

void compare_latents(Comparison& c, const LatentConfig& a, const LatentConfig& b) {
  c.same("q_lora_rank", a.q_lora_rank, b.q_lora_rank);
  c.same("kv_lora_rank", a.kv_lora_rank, b.kv_lora_rank);
  c.same("qk_nope_head_dim", a.qk_nope_head_dim, b.qk_nope_head_dim);
  c.same("qk_rope_head_dim", a.qk_rope_head_dim, b.qk_rope_head_dim);
  c.same("v_head_dim", a.v_head_dim, b.v_head_dim);
}

}  // namespace

ModelConfig config_in_gguf(ModelConfig config) {
  config.has_pooler = false;
  for (RopeConfig& rope : config.ropes)
    if (rope.dim > 0 && rope.scaling == RopeScaling::llama3) rope = with_divisors(rope);
  return config;
}

std::string first_difference(const ModelConfig& here, const ModelConfig& there) {
  Comparison c;
  compare_sizes(c, here, there);
  compare_choices(c, here, there);
  compare_latents(c, here.latent, there.latent);
  compare_ropes(c, here, there);
  compare_layers(c, here, there);
  compare_experts(c, here.experts, there.experts);
  return c.text();
}

}  // namespace liuli
