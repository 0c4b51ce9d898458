#include "convert/synth_keys.h"

#include <cmath>

#include <fmt/core.h>

#include "convert/gguf_keys.h"
#include "convert/made_up_vocabulary.h"
#include "model/config_in_gguf.h"

namespace liuli {
namespace {

NormKind norm_if(bool wanted, const KnownFamily& family) {
  if (!wanted) return NormKind::none;
  return family.layer_norm ? NormKind::layer : NormKind::rms;
}

LayerPlan layer_of(const KnownModel& m, int64_t index) {
  LayerPlan layer;
  layer.attn_norm.before = layer.ffn_norm.before = norm_if(m.family->norm_before, *m.family);
  layer.attn_norm.on_output = layer.ffn_norm.on_output = norm_if(m.family->norm_after, *m.family);
  layer.routed = !m.dense(index);
  layer.sliding_window = m.windowed(index) ? static_cast<int>(m.sliding_window) : 0;
  return layer;
}

void set_rope(ModelConfig& c, const KnownModel& m) {
  RopeConfig rope;
  if (m.rope_theta > 0) {
    rope.theta = m.rope_theta;
    rope.dim = static_cast<int>(m.latent ? m.latent->qk_rope_head_dim : m.head_dim);
  }
  if (m.yarn != nullptr) {
    rope.scaling = RopeScaling::yarn;
    rope.factor = m.yarn->factor;
    rope.original_max_seq_len = static_cast<double>(m.yarn->original_context);
    const double sharpening = 1 + m.yarn->attention_log_factor * std::log(rope.factor);
    c.attention_scale *= sharpening * sharpening;
  }
  if (m.rope_scaling != nullptr) {
    const KnownRopeScaling& s = *m.rope_scaling;
    rope.scaling = RopeScaling::llama3;
    rope.factor = s.factor;
    rope.low_freq_factor = s.low_frequency_factor;
    rope.high_freq_factor = s.high_frequency_factor;
    rope.original_max_seq_len = static_cast<double>(s.original_context);
  }
  c.ropes = {rope};
}

void set_experts(ModelConfig& c, const KnownModel& m) {
  const KnownExperts& e = m.experts;
  if (e.n_experts == 0) return;
  c.experts.n_experts = e.n_experts;
  c.experts.n_experts_active = e.n_experts_active;
  c.experts.d_ff = e.d_ff;
  c.experts.shared_d_ff = e.n_shared * e.d_ff;
  c.experts.score = e.sigmoid ? ExpertConfig::Score::sigmoid : ExpertConfig::Score::softmax;
  c.experts.n_groups = e.n_groups;
  c.experts.n_groups_kept = e.n_groups_kept;
  c.experts.weight_scale = e.weight_scale;
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

ModelConfig config_of(const KnownModel& m, int64_t context) {
  ModelConfig c;
  c.family = m.family->architecture;
  c.vocab_size = m.vocab_size;
  c.d_model = m.d_model;
  c.d_ff = m.d_ff;
  c.n_layers = m.n_layers;
  c.n_heads = m.n_heads;
  c.n_kv_heads = m.n_kv_heads;
  c.head_dim = m.head_dim;
  c.max_seq_len = context;
  c.norm_eps = m.family->norm_eps;
  c.tied_embeddings = m.tied_embeddings;
  c.attention_scale = 1 / std::sqrt(static_cast<double>(m.head_dim));
  for (int64_t i = 0; i < m.n_layers; i++) c.layers.push_back(layer_of(m, i));
  if (m.latent != nullptr) {
    const KnownLatent& l = *m.latent;
    c.latent = {l.q_lora_rank, l.kv_lora_rank, l.qk_nope_head_dim, l.qk_rope_head_dim, l.v_head_dim};
  }
  set_rope(c, m);
  set_experts(c, m);
  return c;
}

GgufKeys synth_keys(const KnownModel& m, const TypeMix& mix, int64_t context,
                    const std::string& description) {
  constexpr uint32_t kQuantisationVersion = 2;
  GgufKeys keys;
  add_architecture_keys(config_in_gguf(config_of(m, context)), keys);
  keys.text("general.name", fmt::format("{} (random weights)", m.title));
  keys.text("general.description", description);
  keys.u32("general.file_type", mix.file_type).u32("general.quantization_version", kQuantisationVersion);
  add_vocabulary(keys, m);
  return keys;
}

}  // namespace liuli
