#include "convert/gguf_keys.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "model/families/family.h"

namespace liuli {
namespace {

/// Sets keys under the architecture's prefix.
class ArchitectureKeys {
 public:
  ArchitectureKeys(GgufKeys& keys, const char* architecture) : keys_(keys), prefix_(architecture) {}
  void size(const char* key, int64_t value) { keys_.u32(name(key), static_cast<uint32_t>(value)); }
  void number(const char* key, double value) { keys_.f32(name(key), static_cast<float>(value)); }
  void flag(const char* key, bool value) { keys_.boolean(name(key), value); }
  void text(const char* key, const char* value) { keys_.text(name(key), value); }

 private:
  std::string name(const char* key) const { return fmt::format("{}.{}", prefix_, key); }

  GgufKeys& keys_;
  const char* prefix_;
};

bool uses_layer_norm(const ModelConfig& c) {
  const NormSlots& slots = c.layers.front().attn_norm;
  return slots.before == NormKind::layer || slots.after_add == NormKind::layer;
}

/// Gemma 3's windows are not stated but follow a period, which is 6 unless a key says otherwise.
void add_windows(ArchitectureKeys& a, const ModelConfig& c) {
  constexpr int64_t kUsualPeriod = 6;
  const auto is_windowed = [](const LayerPlan& layer) { return layer.sliding_window > 0; };
  const auto windowed = std::find_if(c.layers.begin(), c.layers.end(), is_windowed);
  if (windowed == c.layers.end()) return;
  a.size("attention.sliding_window", windowed->sliding_window);
  const auto global = std::find_if_not(c.layers.begin(), c.layers.end(), is_windowed);
  const int64_t period = global - c.layers.begin() + 1;
  if (global != c.layers.end() && period != kUsualPeriod) a.size("attention.sliding_window_pattern", period);
}

void add_sizes(ArchitectureKeys& a, const ModelConfig& c) {
  a.size("vocab_size", c.vocab_size);
  a.size("context_length", c.max_seq_len);
  a.size("embedding_length", c.d_model);
  a.size("block_count", c.n_layers);
  a.size("feed_forward_length", c.d_ff);
  a.size("attention.head_count", c.n_heads);
  a.number(uses_layer_norm(c) ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon",
           c.norm_eps);
  if (!c.causal) a.flag("attention.causal", false);
  if (c.pooling != Pooling::unstated) a.size("pooling_type", static_cast<int64_t>(c.pooling));
  if (c.attention_soft_cap > 0) a.number("attn_logit_softcapping", c.attention_soft_cap);
  if (c.final_soft_cap > 0) a.number("final_logit_softcapping", c.final_soft_cap);
  add_windows(a, c);
}

void add_plain_attention(ArchitectureKeys& a, const ModelConfig& c) {
  a.size("attention.head_count_kv", c.n_kv_heads);
  a.size("attention.key_length", c.head_dim);
  a.size("attention.value_length", c.head_dim);
}

/// The cached form: one kv head of the latent's width. The "_mla" widths are those of the expanded heads.
void add_latent_attention(ArchitectureKeys& a, const ModelConfig& c) {
  const LatentConfig& l = c.latent;
  a.size("attention.head_count_kv", 1);
  if (l.q_lora_rank > 0) a.size("attention.q_lora_rank", l.q_lora_rank);
  a.size("attention.kv_lora_rank", l.kv_lora_rank);
  a.size("attention.key_length", l.kv_lora_rank + l.qk_rope_head_dim);
  a.size("attention.value_length", l.kv_lora_rank);
  a.size("attention.key_length_mla", l.qk_nope_head_dim + l.qk_rope_head_dim);
  a.size("attention.value_length_mla", l.v_head_dim);
}

void add_yarn(ArchitectureKeys& a, const ModelConfig& c, const RopeConfig& rope) {
  a.size("rope.scaling.original_context_length", static_cast<int64_t>(rope.original_max_seq_len));
  if (rope.beta_fast != 32) a.number("rope.scaling.yarn_beta_fast", rope.beta_fast);
  if (rope.beta_slow != 1) a.number("rope.scaling.yarn_beta_slow", rope.beta_slow);
  if (c.is_latent()) return a.number("rope.scaling.yarn_log_multiplier", yarn_log_multiplier(c));
  // Readers apply the usual temperature themselves; the key is what comes on top.
  const double on_top = rope.attention_factor / (rope.factor > 1 ? 0.1 * std::log(rope.factor) + 1 : 1);
  if (std::fabs(on_top - 1) > 1e-9) a.number("rope.scaling.attn_factor", on_top);
}

/// Divisors are a tensor. Of several kinds of layers the first is the global one, the next windowed (Gemma 3).
void add_rope(ArchitectureKeys& a, const ModelConfig& c) {
  const RopeConfig& rope = c.ropes.front();
  if (rope.dim == 0) return;
  a.size("rope.dimension_count", rope.dim);
  a.number("rope.freq_base", rope.theta);
  if (c.ropes.size() > 1 && c.ropes[1].dim > 0) a.number("rope.freq_base_swa", c.ropes[1].theta);
  if (rope.scaling != RopeScaling::linear && rope.scaling != RopeScaling::yarn) return;
  a.text("rope.scaling.type", rope.scaling == RopeScaling::yarn ? "yarn" : "linear");
  a.number("rope.scaling.factor", rope.factor);
  if (rope.scaling == RopeScaling::yarn) add_yarn(a, c, rope);
}

/// DeepSeek's: how many experts are shared, and the steps of its choice.
void add_grouped_choice(ArchitectureKeys& a, const ModelConfig& c) {
  const ExpertConfig& e = c.experts;
  const auto first_routed =
      std::find_if(c.layers.begin(), c.layers.end(), [](const LayerPlan& l) { return l.routed; });
  a.size("leading_dense_block_count", first_routed - c.layers.begin());
  a.size("expert_shared_count", e.shared_d_ff / e.d_ff);
  a.size("expert_group_count", e.n_groups);
  a.size("expert_group_used_count", e.n_groups_kept);
  a.number("expert_weights_scale", e.weight_scale);
  a.size("expert_gating_func", e.score == ExpertConfig::Score::sigmoid ? 2 : 1);
}

void add_experts(ArchitectureKeys& a, const ModelConfig& c) {
  const ExpertConfig& e = c.experts;
  a.size("expert_count", e.n_experts);
  a.size("expert_used_count", e.n_experts_active);
  a.size("expert_feed_forward_length", e.d_ff);
  if (e.shared_gate) a.size("expert_shared_feed_forward_length", e.shared_d_ff);
  // Families without shared experts renormalise unless told otherwise; Mixtral's reader knows no such key.
  if (c.is_latent() || e.shared_gate || !e.renormalise) a.flag("expert_weights_norm", e.renormalise);
  if (c.is_latent()) add_grouped_choice(a, c);
}

}  // namespace

double yarn_log_multiplier(const ModelConfig& c) {
  const RopeConfig& rope = c.ropes.front();
  if (rope.scaling != RopeScaling::yarn || rope.factor <= 1) return 0;
  const double sharpening = c.attention_scale * std::sqrt(static_cast<double>(c.head_dim));
  return (std::sqrt(sharpening) - 1) / std::log(rope.factor);
}

void add_architecture_keys(const ModelConfig& c, GgufKeys& keys) {
  const char* architecture = family_of(c).name;
  keys.text("general.architecture", architecture).text("general.type", "model");
  ArchitectureKeys a(keys, architecture);
  add_sizes(a, c);
  c.is_latent() ? add_latent_attention(a, c) : add_plain_attention(a, c);
  add_rope(a, c);
  if (c.experts.n_experts > 0) add_experts(a, c);
}

}  // namespace liuli
