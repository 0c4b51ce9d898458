// DeepSeek V2, V3 and R1: multi-head latent attention, a few dense layers, then mixtures of experts.
#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "model/families/decoder_tensors.h"

namespace liuli {
namespace {

constexpr int64_t kMaxRank = 1 << 20, kMaxExperts = 1 << 16;

bool is_v2(ConfigReader& reader) { return reader.text_or({nullptr, "model_type"}, "") == "deepseek_v2"; }

// Widths of a head: [nope | rope] for queries and keys. GGUF files from before latent attention was supported
// state them as key_length and value_length, later ones those of the compressed vectors.
LatentConfig read_widths(ConfigReader& reader, const RopeConfig& rope) {
  LatentConfig l;
  l.q_lora_rank = reader.count_or_zero({"attention.q_lora_rank", "q_lora_rank"}, 0, kMaxRank);
  l.kv_lora_rank = reader.count({"attention.kv_lora_rank", "kv_lora_rank"}, kMaxRank);
  l.qk_rope_head_dim = rope.dim;
  if (!reader.is_gguf()) {
    l.qk_nope_head_dim = reader.count({nullptr, "qk_nope_head_dim"}, kMaxRank);
    l.v_head_dim = reader.count({nullptr, "v_head_dim"}, kMaxRank);
    return l;
  }
  const Key width{"attention.key_length_mla", nullptr}, old{"attention.key_length", nullptr};
  const Key& stated = reader.has(width) ? width : old;
  l.qk_nope_head_dim = reader.count(stated, kMaxRank) - rope.dim;
  if (l.qk_nope_head_dim < 1)
    reader.corrupt(stated, fmt::format("is {}, expected more than the {} rotated values",
                                       l.qk_nope_head_dim + rope.dim, rope.dim));
  const Key value_width{"attention.value_length_mla", nullptr};
  l.v_head_dim =
      reader.count(reader.has(value_width) ? value_width : Key{"attention.value_length", nullptr}, kMaxRank);
  return l;
}

// How much YaRN sharpens the scores: m² with m = 0.1 · mscale_all_dim · ln(factor) + 1. GGUF's multiplier is
// 0.1 · mscale_all_dim, and cos and sin keep their size there.
double read_sharpening(ConfigReader& reader, RopeConfig& rope) {
  const double all = reader.number_or(
      {"rope.scaling.yarn_log_multiplier", "rope_scaling.mscale_all_dim|rope_parameters.mscale_all_dim"}, 0);
  if (rope.scaling != RopeScaling::yarn) return 1;
  if (reader.is_gguf()) rope.attention_factor = 1;
  const double m = (reader.is_gguf() ? all : 0.1 * all) * std::log(std::max(rope.factor, 1.0)) + 1;
  return m * m;
}

ExpertConfig::Score read_score(ConfigReader& reader) {
  if (reader.is_gguf()) {
    const Key key{"expert_gating_func", nullptr};
    const int64_t function = reader.count_or_zero(key, 1, 1 << 20);
    if (function > 2) reader.refuse(key, fmt::format("is {}, expected 1 (softmax) or 2 (sigmoid)", function));
    return function == 2 ? ExpertConfig::Score::sigmoid : ExpertConfig::Score::softmax;
  }
  const Key key{nullptr, "scoring_func"};
  const std::string name = reader.text_or(key, is_v2(reader) ? "softmax" : "sigmoid");
  if (name == "softmax") return ExpertConfig::Score::softmax;
  if (name == "sigmoid") return ExpertConfig::Score::sigmoid;
  reader.refuse(key, fmt::format("is \"{}\", expected softmax or sigmoid", name));
}

// Only the experts of the best groups compete. V3's rule adds a bias and sums a group's two best; V2's takes the best.
void read_choice(ConfigReader& reader, const ModelConfig& c, int64_t n_dense, ExpertConfig& e) {
  const Key method_key{nullptr, "topk_method"};
  const std::string method =
      reader.text_or(method_key, is_v2(reader) || reader.is_gguf() ? "group_limited_greedy" : "noaux_tc");
  if (method != "noaux_tc" && method != "group_limited_greedy" && method != "greedy")
    reader.refuse(method_key, fmt::format("is \"{}\", a way to choose experts that is not known", method));
  const std::string bias = fmt::format("blk.{}.exp_probs_b.bias", n_dense);
  e.choice_bias =
      reader.is_gguf() ? reader.find_tensor(bias.c_str(), nullptr) != nullptr : method == "noaux_tc";
  e.group_best = e.choice_bias ? 2 : 1;
  // Older files of V3 do not state its groups, without which it chooses other experts than it was trained with.
  const bool is_v3 =
      reader.is_gguf() && c.n_layers == 61 && e.n_experts == 256 && e.score == ExpertConfig::Score::sigmoid;
  const Key groups{"expert_group_count", "n_group"}, kept{"expert_group_used_count", "topk_group"};
  e.n_groups = std::max<int64_t>(1, reader.count_or_zero(groups, is_v3 ? 8 : 1, kMaxExperts));
  e.n_groups_kept = std::max<int64_t>(1, reader.count_or_zero(kept, is_v3 ? 4 : e.n_groups, kMaxExperts));
  if (method == "greedy") e.n_groups = e.n_groups_kept = 1;
  if (e.n_experts % e.n_groups != 0)
    reader.corrupt(groups,
                   fmt::format("is {}, which does not divide the {} experts", e.n_groups, e.n_experts));
  const int64_t size = e.n_experts / e.n_groups;
  if (e.n_groups_kept > e.n_groups || e.n_experts_active > e.n_groups_kept * size)
    reader.corrupt(kept, fmt::format("is {} of {} groups of {} experts, {} are to be chosen", e.n_groups_kept,
                                     e.n_groups, size, e.n_experts_active));
  e.group_best = std::min(e.group_best, size);
}

ExpertConfig read_experts(ConfigReader& reader, const ModelConfig& c, int64_t n_dense) {
  ExpertConfig e;
  e.n_experts = reader.count({"expert_count", "n_routed_experts"}, kMaxExperts);
  e.n_experts_active = reader.count({"expert_used_count", "num_experts_per_tok"}, e.n_experts);
  e.d_ff = reader.count({"expert_feed_forward_length", "moe_intermediate_size"}, int64_t{1} << 24);
  e.shared_d_ff = e.d_ff * reader.count_or_zero({"expert_shared_count", "n_shared_experts"}, 0, kMaxExperts);
  e.score = read_score(reader);
  read_choice(reader, c, n_dense, e);
  const bool v3_folder = !reader.is_gguf() && !is_v2(reader);
  e.renormalise = reader.flag_or({"expert_weights_norm", "norm_topk_prob"}, v3_folder);
  e.weight_scale = reader.number_or({"expert_weights_scale", "routed_scaling_factor"}, 1);
  return e;
}

// Layers after the first few are mixtures of experts; those that predict further tokens are left out.
void read_layers(ConfigReader& reader, ModelConfig& c) {
  const Key predicting{"nextn_predict_layers", nullptr}, every{nullptr, "moe_layer_freq"};
  const int64_t extra = reader.count_or_zero(predicting, 0, 1 << 10);
  if (extra >= c.n_layers) reader.corrupt(predicting, fmt::format("is {} of {} layers", extra, c.n_layers));
  c.n_layers -= extra;
  if (const int64_t n = reader.count_or(every, 1, 1 << 10); n != 1)
    reader.refuse(every, fmt::format("is {}, only 1 is supported", n));
  const int64_t n_dense = std::min(
      c.n_layers,
      reader.count_or_zero({"leading_dense_block_count", "first_k_dense_replace"}, 0, int64_t{1} << 20));
  c.experts = read_experts(reader, c, n_dense);
  for (int64_t layer = 0; layer < c.n_layers; layer++) {
    LayerPlan& plan = c.layers.emplace_back();
    plan.attn_norm.before = plan.ffn_norm.before = NormKind::rms;
    plan.routed = layer >= n_dense;
  }
}

ModelConfig read_config(ConfigReader& reader) {
  ConfigReader::Common options;
  options.latent = true;
  ModelConfig c = reader.common("deepseek2", options);
  c.activation = reader.activation_or(Activation::silu);
  const Key interleaved{nullptr, "rope_interleave"};
  if (!reader.flag_or(interleaved, true)) reader.refuse(interleaved, "is false, only true is supported");
  RopeConfig rope =
      reader.rope(reader.is_gguf() ? c.head_dim : reader.count({nullptr, "qk_rope_head_dim"}, kMaxRank));
  c.latent = read_widths(reader, rope);
  c.n_kv_heads = c.n_heads;  // every head has keys and values of its own, however they are kept
  c.head_dim = c.latent.qk_nope_head_dim + c.latent.qk_rope_head_dim;
  c.attention_scale = read_sharpening(reader, rope) / std::sqrt(static_cast<double>(c.head_dim));
  c.ropes = {rope};
  read_layers(reader, c);
  return c;
}

// The rotated rows of a head come in pairs (2i, 2i + 1), in both kinds of file; RowOrder puts them i and i + half.
void add_attention(const ModelConfig& c, int layer, Naming naming, std::vector<TensorSpec>& t) {
  const LatentConfig& l = c.latent;
  auto add = [&](Role role, std::vector<int64_t> shape, RowOrder order = {}) {
    t.push_back({role, layer, std::move(shape), false, order});
  };
  const RowOrder q_order{c.n_heads, c.head_dim, l.qk_nope_head_dim};
  if (l.q_lora_rank > 0) {
    add(Role::attn_q_a, {l.q_lora_rank, c.d_model});
    add(Role::attn_q_a_norm, {l.q_lora_rank});
    add(Role::attn_q_b, {c.n_heads * c.head_dim, l.q_lora_rank}, q_order);
  } else {
    add(Role::attn_q, {c.n_heads * c.head_dim, c.d_model}, q_order);
  }
  const int64_t kept = l.kv_lora_rank + l.qk_rope_head_dim;
  add(Role::attn_kv_a, {kept, c.d_model}, {1, kept, l.kv_lora_rank});
  add(Role::attn_kv_a_norm, {l.kv_lora_rank});
  add(Role::attn_kv_b, {c.n_heads * (l.qk_nope_head_dim + l.v_head_dim), l.kv_lora_rank});
  if (naming == Naming::gguf) {  // in one piece, or the keys' part transposed and the values'
    t.back().optional = true;
    add(Role::attn_k_b, {c.n_heads, l.kv_lora_rank, l.qk_nope_head_dim});
    t.back().optional = true;
    add(Role::attn_v_b, {c.n_heads, l.v_head_dim, l.kv_lora_rank});
    t.back().optional = true;
  }
  add(Role::attn_o, {c.d_model, c.n_heads * l.v_head_dim});
}

std::vector<TensorSpec> list_tensors(const ModelConfig& c, Naming naming) {
  std::vector<TensorSpec> t = {{Role::token_embedding, -1, {c.vocab_size, c.d_model}},
                               {Role::output_norm, -1, {c.d_model}}};
  if (!c.tied_embeddings) t.push_back({Role::output_matrix, -1, {c.vocab_size, c.d_model}});
  for (int layer = 0; layer < c.n_layers; layer++) {
    t.push_back({Role::attn_norm, layer, {c.d_model}});
    add_attention(c, layer, naming, t);
    t.push_back({Role::ffn_norm, layer, {c.d_model}});
    if (c.layers[static_cast<size_t>(layer)].routed)
      add_expert_tensors(c, layer, naming, t);
    else
      add_feed_forward(c, layer, t);
  }
  return t;
}

// Layers past the last one predict further tokens (MTP); the main model does not look at them.
bool is_unused(const ModelConfig& c, const std::string& name) {
  for (const std::string_view prefix : {"model.layers.", "layers.", "blk."}) {
    if (name.rfind(prefix, 0) != 0) continue;
    int64_t layer = -1;
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), layer);
    if (layer >= c.n_layers) return true;
  }
  return is_rope_buffer(c, name);
}

}  // namespace

const Family kDeepseek = {"deepseek2", "deepseek_v3|deepseek_v2", read_config, list_tensors, {}, is_unused};

}  // namespace liuli
