#include "convert/synth_keys.h"

#include <fmt/core.h>

#include "convert/made_up_vocabulary.h"

namespace liuli {
namespace {

/// Sets keys under the architecture's prefix.
class ArchitectureKeys {
 public:
  ArchitectureKeys(GgufKeys& keys, const KnownModel& model)
      : keys_(keys), prefix_(model.family->architecture) {}
  void size(const char* key, int64_t value) { keys_.u32(name(key), static_cast<uint32_t>(value)); }
  void number(const char* key, double value) { keys_.f32(name(key), static_cast<float>(value)); }
  void flag(const char* key, bool value) { keys_.boolean(name(key), value); }
  void text(const char* key, const char* value) { keys_.text(name(key), value); }

 private:
  std::string name(const char* key) const { return fmt::format("{}.{}", prefix_, key); }

  GgufKeys& keys_;
  const char* prefix_;
};

void add_sizes(ArchitectureKeys& a, const KnownModel& m, int64_t context) {
  a.size("vocab_size", m.vocab_size);
  a.size("context_length", context);
  a.size("embedding_length", m.d_model);
  a.size("block_count", m.n_layers);
  a.size("feed_forward_length", m.d_ff);
  a.size("attention.head_count", m.n_heads);
  a.number(m.family->layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon",
           m.family->norm_eps);
  if (m.rope_theta > 0) a.number("rope.freq_base", m.rope_theta);
  if (m.sliding_window > 0) a.size("attention.sliding_window", m.sliding_window);
}

void add_plain_attention(ArchitectureKeys& a, const KnownModel& m) {
  a.size("attention.head_count_kv", m.n_kv_heads);
  a.size("attention.key_length", m.head_dim);
  a.size("attention.value_length", m.head_dim);
  if (m.rope_theta > 0) a.size("rope.dimension_count", m.head_dim);
}

/// The cached form: one kv head of the latent's width. The "_mla" widths are those of the expanded heads.
void add_latent_attention(ArchitectureKeys& a, const KnownModel& m) {
  const KnownLatent& l = *m.latent;
  a.size("attention.head_count_kv", 1);
  a.size("attention.q_lora_rank", l.q_lora_rank);
  a.size("attention.kv_lora_rank", l.kv_lora_rank);
  a.size("attention.key_length", l.kv_lora_rank + l.qk_rope_head_dim);
  a.size("attention.value_length", l.kv_lora_rank);
  a.size("attention.key_length_mla", m.key_width());
  a.size("attention.value_length_mla", m.value_width());
  a.size("rope.dimension_count", l.qk_rope_head_dim);
}

void add_yarn(ArchitectureKeys& a, const KnownYarn& yarn) {
  a.text("rope.scaling.type", "yarn");
  a.number("rope.scaling.factor", yarn.factor);
  a.size("rope.scaling.original_context_length", yarn.original_context);
  a.number("rope.scaling.yarn_log_multiplier", yarn.attention_log_factor);
}

void add_experts(ArchitectureKeys& a, const KnownExperts& e) {
  constexpr int64_t kSigmoid = 2;
  a.size("leading_dense_block_count", e.n_dense_layers);
  a.size("expert_count", e.n_experts);
  a.size("expert_used_count", e.n_experts_active);
  a.size("expert_shared_count", e.n_shared);
  a.size("expert_feed_forward_length", e.d_ff);
  a.size("expert_group_count", e.n_groups);
  a.size("expert_group_used_count", e.n_groups_kept);
  a.number("expert_weights_scale", e.weight_scale);
  a.flag("expert_weights_norm", true);
  a.size("expert_gating_func", kSigmoid);
}

void add_vocabulary(GgufKeys& keys, const KnownModel& m) {
  const MadeUpVocabulary v = made_up_vocabulary(m.vocab_size, m.bos, m.eos);
  keys.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", m.family->pre_tokenizer);
  keys.texts("tokenizer.ggml.tokens", v.tokens);
  keys.i32s("tokenizer.ggml.token_type", v.types);
  keys.texts("tokenizer.ggml.merges", v.merges);
  if (m.bos >= 0) keys.u32("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(m.bos));
  keys.u32("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(m.eos));
  keys.boolean("tokenizer.ggml.add_bos_token", m.family->adds_bos && m.bos >= 0);
}

}  // namespace

GgufKeys synth_keys(const KnownModel& m, const TypeMix& mix, int64_t context,
                    const std::string& description) {
  constexpr uint32_t kQuantisationVersion = 2;
  GgufKeys keys;
  keys.text("general.architecture", m.family->architecture).text("general.type", "model");
  keys.text("general.name", fmt::format("{} (random weights)", m.title));
  keys.text("general.description", description);
  keys.u32("general.file_type", mix.file_type).u32("general.quantization_version", kQuantisationVersion);
  ArchitectureKeys a(keys, m);
  add_sizes(a, m, context);
  m.latent != nullptr ? add_latent_attention(a, m) : add_plain_attention(a, m);
  if (m.yarn != nullptr) add_yarn(a, *m.yarn);
  if (m.experts.n_experts > 0) add_experts(a, m.experts);
  add_vocabulary(keys, m);
  return keys;
}

}  // namespace liuli
