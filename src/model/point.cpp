#include "model/point.h"

#include <array>

#include <fmt/format.h>

#include "core/check.h"

namespace liuli {
namespace {

constexpr Axis kResid[] = {Axis::token, Axis::d_model};
constexpr Axis kQ[] = {Axis::token, Axis::head, Axis::head_dim};
constexpr Axis kK[] = {Axis::token, Axis::kv_head, Axis::head_dim};
constexpr Axis kV[] = {Axis::token, Axis::kv_head, Axis::value_dim};
constexpr Axis kZ[] = {Axis::token, Axis::head, Axis::value_dim};
constexpr Axis kRope[] = {Axis::token, Axis::rope_pair};
constexpr Axis kScores[] = {Axis::head, Axis::token, Axis::key};
constexpr Axis kQLatent[] = {Axis::token, Axis::q_rank};
constexpr Axis kKvLatent[] = {Axis::token, Axis::kv_rank};
constexpr Axis kHidden[] = {Axis::token, Axis::d_ff};
constexpr Axis kExperts[] = {Axis::token, Axis::expert};
constexpr Axis kActive[] = {Axis::token, Axis::active_expert};
constexpr Axis kGroups[] = {Axis::token, Axis::group};
constexpr Axis kExpertHidden[] = {Axis::token, Axis::expert_d_ff};
constexpr Axis kSharedHidden[] = {Axis::token, Axis::shared_d_ff};
constexpr Axis kScalar[] = {Axis::token, Axis::one};
constexpr Axis kLogits[] = {Axis::token, Axis::vocab};
constexpr Axis kFirstRow[] = {Axis::one, Axis::d_model};

using Exists = bool (*)(const ModelConfig&, const LayerPlan*);
constexpr Exists kAlways = [](const ModelConfig&, const LayerPlan*) { return true; };
constexpr Exists kQkNormed = [](const ModelConfig& c, const LayerPlan*) { return c.qk_norm != QkNorm::none; };
constexpr Exists kQCompressed = [](const ModelConfig& c, const LayerPlan*) {
  return c.latent.q_lora_rank > 0;
};
// A layer's RoPE; dim 0: nothing turns.
const RopeConfig* rope_of(const ModelConfig& c, const LayerPlan& layer) {
  const auto rope = static_cast<size_t>(layer.rope);
  return rope < c.ropes.size() && c.ropes[rope].dim > 0 ? &c.ropes[rope] : nullptr;
}
constexpr Exists kTurned = [](const ModelConfig& c, const LayerPlan* l) { return rope_of(c, *l) != nullptr; };
constexpr Exists kLatent = [](const ModelConfig& c, const LayerPlan*) { return c.is_latent(); };
constexpr Exists kCross = [](const ModelConfig&, const LayerPlan* l) { return l->cross_attention; };
constexpr Exists kDense = [](const ModelConfig&, const LayerPlan* l) { return !l->routed; };
constexpr Exists kGated = [](const ModelConfig& c, const LayerPlan* l) { return !l->routed && c.gated_ffn; };
constexpr Exists kRouted = [](const ModelConfig&, const LayerPlan* l) { return l->routed; };
constexpr Exists kBiasedChoice = [](const ModelConfig& c, const LayerPlan* l) {
  return l->routed && c.experts.choice_bias;
};
constexpr Exists kGrouped = [](const ModelConfig& c, const LayerPlan* l) {
  return l->routed && c.experts.n_groups > 1;
};
constexpr Exists kShared = [](const ModelConfig& c, const LayerPlan* l) {
  return l->routed && c.experts.shared_d_ff > 0;
};

struct StageText {
  const char* name;
  const char* formula;
  const char* alias;
};
constexpr StageText kStages[kNormStages] = {
    {"mean", "layer: Σx / n; rms: 0", ""},
    {"var", "layer: Σ(x − mean)² / n; rms: Σx² / n", ""},
    {"sigma", "√(var + eps)", "hook_scale"},
    {"centered", "x − mean", ""},
    {"normalized", "centered / sigma", "hook_normalized"},
    {"scaled", "normalized · γ", ""},
    {"out", "scaled + β", ""},
};

struct Site {
  const char* name;
  bool in_block;
  Exists exists;
};
constexpr Site kSites[kNormSites] = {
    {"embed_ln", false,
     [](const ModelConfig& c, const LayerPlan*) { return c.embedding_norm != NormKind::none; }},
    {"ln1", true,
     [](const ModelConfig&, const LayerPlan* l) {
       return l->attn_norm.before != NormKind::none || l->attn_norm.after_add != NormKind::none;
     }},
    {"ln1_post", true,
     [](const ModelConfig&, const LayerPlan* l) { return l->attn_norm.on_output != NormKind::none; }},
    {"ln_cross", true, kCross},
    {"ln2", true,
     [](const ModelConfig&, const LayerPlan* l) {
       return l->ffn_norm.before != NormKind::none || l->ffn_norm.after_add != NormKind::none;
     }},
    {"ln2_post", true,
     [](const ModelConfig&, const LayerPlan* l) { return l->ffn_norm.on_output != NormKind::none; }},
    {"ln_final", false,
     [](const ModelConfig& c, const LayerPlan*) { return c.final_norm != NormKind::none; }},
};

// The table while it is written, in the order a token meets the points.
class Table {
 public:
  std::vector<PointInfo> rows;

  void add(Point p, const char* name, std::span<const Axis> shape, const char* formula,
           const char* alias = "", Exists exists = kAlways) {
    rows.push_back({p, name, true, shape, formula, alias, exists});
  }
  void add_outside(Point p, const char* name, std::span<const Axis> shape, const char* formula,
                   const char* alias, Exists exists = kAlways) {
    rows.push_back({p, name, false, shape, formula, alias, exists});
  }
  void add_norm(NormSite which) {
    const Site& site = kSites[static_cast<size_t>(which)];
    for (int stage = 0; stage < kNormStages; stage++) {
      const StageText& text = kStages[stage];
      const bool scalar = stage <= static_cast<int>(NormStage::sigma);
      rows.push_back({norm_point(which, static_cast<NormStage>(stage)),
                      fmt::format("{}.{}", site.name, text.name), site.in_block,
                      scalar ? std::span<const Axis>(kScalar) : std::span<const Axis>(kResid), text.formula,
                      *text.alias == '\0' ? "" : fmt::format("{}.{}", site.name, text.alias), site.exists});
    }
  }
};

void add_embedding(Table& t) {
  t.add_outside(Point::embed, "embed", kResid,
                "embedding_scale · W_E[token]; the 2017 Transformer's enc. and dec. also + pos_embed",
                "hook_embed");
  t.add_outside(Point::pos_embed, "pos_embed", kResid, "W_pos[position], or sin and cos of it",
                "hook_pos_embed",
                [](const ModelConfig& c, const LayerPlan*) { return c.positions != PositionTable::none; });
  t.add_outside(Point::type_embed, "type_embed", kResid, "W_type[segment]", "hook_token_type_embed",
                [](const ModelConfig& c, const LayerPlan*) { return c.n_token_types > 0; });
  t.add_outside(Point::embed_sum, "embed_sum", kResid, "embed + pos_embed + type_embed", "",
                [](const ModelConfig& c, const LayerPlan*) { return c.embedding_norm != NormKind::none; });
  t.add_norm(NormSite::embed_ln);
}

void add_attention(Table& t) {
  t.add(Point::attn_q_latent, "attn.q_latent", kQLatent, "norm(W_qa · ln1.out)", "", kQCompressed);
  t.add(Point::attn_kv_latent, "attn.kv_latent", kKvLatent,
        "norm of the first kv_rank values of W_kva · ln1.out", "", kLatent);
  t.add(Point::attn_q, "attn.q", kQ, "W_q · ln1.out + b_q, before norm and RoPE", "attn.hook_q");
  t.add(Point::attn_k, "attn.k", kK, "W_k · ln1.out + b_k, before norm and RoPE", "attn.hook_k");
  t.add(Point::attn_v, "attn.v", kV, "W_v · ln1.out + b_v", "attn.hook_v");
  t.add(Point::attn_q_normed, "attn.q_normed", kQ, "norm of q", "", kQkNormed);
  t.add(Point::attn_k_normed, "attn.k_normed", kK, "norm of k", "", kQkNormed);
  t.add(Point::attn_rope_angle, "attn.rope_angle", kRope,
        "position · frequency of each pair, in radians; frequency = θ^(−2i / dim), then the scaling of long "
        "contexts",
        "", kTurned);
  t.add(Point::attn_rope_cos, "attn.rope_cos", kRope, "attention factor · cos(rope_angle)", "", kTurned);
  t.add(Point::attn_rope_sin, "attn.rope_sin", kRope, "attention factor · sin(rope_angle)", "", kTurned);
  t.add(Point::attn_rot_q, "attn.rot_q", kQ, "q turned by its position's angles", "attn.hook_rot_q");
  t.add(Point::attn_rot_k, "attn.rot_k", kK, "k turned by its position's angles", "attn.hook_rot_k");
  t.add(Point::attn_scores_raw, "attn.scores_raw", kScores, "rot_q · rot_k");
  t.add(Point::attn_scores, "attn.scores", kScores,
        "scale · scores_raw (then the soft cap), before the mask");
  t.add(Point::attn_attn_scores, "attn.attn_scores", kScores, "scores, −inf where the mask hides a key",
        "attn.hook_attn_scores");
  t.add(Point::attn_pattern, "attn.pattern", kScores, "softmax of attn_scores over the keys",
        "attn.hook_pattern");
  t.add(Point::attn_z, "attn.z", kZ, "Σ pattern · v", "attn.hook_z");
  t.add(Point::attn_out_proj, "attn.out_proj", kResid, "W_o · z, before a norm on the branch");
}

void add_experts(Table& t) {
  t.add(Point::mlp_router_logits, "mlp.router_logits", kExperts, "W_router · ln2.out", "", kRouted);
  t.add(Point::mlp_router_scores, "mlp.router_scores", kExperts, "sigmoid or softmax of router_logits", "",
        kRouted);
  t.add(Point::mlp_router_biased, "mlp.router_biased", kExperts, "router_scores + bias, for the choice only",
        "", kBiasedChoice);
  t.add(Point::mlp_group_scores, "mlp.group_scores", kGroups, "sum of a group's best biased scores", "",
        kGrouped);
  t.add(Point::mlp_groups_kept, "mlp.groups_kept", kGroups, "1 for the groups whose experts compete", "",
        kGrouped);
  t.add(Point::mlp_expert_ids, "mlp.expert_ids", kActive, "the chosen experts, ascending", "", kRouted);
  t.add(Point::mlp_expert_weights, "mlp.expert_weights", kActive, "what their outputs are multiplied with",
        "", kRouted);
  t.add(Point::mlp_expert_pre, "mlp.experts.E.pre", kExpertHidden, "W_gate · ln2.out of one expert", "",
        kRouted);
  t.add(Point::mlp_expert_pre_linear, "mlp.experts.E.pre_linear", kExpertHidden,
        "W_up · ln2.out of one expert", "", kRouted);
  t.add(Point::mlp_expert_post, "mlp.experts.E.post", kExpertHidden, "act(pre) · pre_linear of one expert",
        "", kRouted);
  t.add(Point::mlp_expert_out, "mlp.experts.E.out", kResid, "W_down · post of one expert, before its weight",
        "", kRouted);
  t.add(Point::mlp_routed_out, "mlp.routed_out", kResid, "Σ expert_weights · experts.E.out", "", kRouted);
  t.add(Point::mlp_shared_pre, "mlp.shared.pre", kSharedHidden, "W_gate · ln2.out of the shared expert", "",
        kShared);
  t.add(Point::mlp_shared_pre_linear, "mlp.shared.pre_linear", kSharedHidden,
        "W_up · ln2.out of the shared expert", "", kShared);
  t.add(Point::mlp_shared_post, "mlp.shared.post", kSharedHidden,
        "act(pre) · pre_linear of the shared expert", "", kShared);
  t.add(Point::mlp_shared_out, "mlp.shared_out", kResid, "what the shared expert adds", "", kShared);
}

void add_feed_forward(Table& t) {
  t.add(Point::mlp_pre, "mlp.pre", kHidden, "W_gate · ln2.out", "mlp.hook_pre", kDense);
  t.add(Point::mlp_pre_linear, "mlp.pre_linear", kHidden, "W_up · ln2.out", "mlp.hook_pre_linear", kGated);
  t.add(Point::mlp_post, "mlp.post", kHidden, "act(pre) · pre_linear", "mlp.hook_post", kDense);
  add_experts(t);
  t.add(Point::mlp_out_raw, "mlp.out", kResid, "W_down · post, before a norm on the branch");
}

std::vector<PointInfo> make_table() {
  constexpr Exists post_attn = [](const ModelConfig&, const LayerPlan* l) {
    return l->attn_norm.after_add != NormKind::none;
  };
  constexpr Exists post_cross = [](const ModelConfig&, const LayerPlan* l) {
    return l->cross_attention && l->cross_norm.after_add != NormKind::none;
  };
  constexpr Exists post_ffn = [](const ModelConfig&, const LayerPlan* l) {
    return l->ffn_norm.after_add != NormKind::none;
  };
  Table t;
  add_embedding(t);
  t.add(Point::resid_pre, "resid_pre", kResid, "the residual stream entering the block", "hook_resid_pre");
  t.add_norm(NormSite::ln1);
  add_attention(t);
  t.add_norm(NormSite::ln1_post);
  t.add(Point::attn_out, "attn_out", kResid, "what attention adds to the residual stream", "hook_attn_out");
  t.add(Point::resid_mid, "resid_mid", kResid, "resid_pre + attn_out", "hook_resid_mid");
  t.add(Point::normalized_resid_mid, "normalized_resid_mid", kResid, "norm of resid_mid (post-norm)", "",
        post_attn);
  t.add(Point::cross_attn_out, "cross_attn_out", kResid, "what cross-attention adds to the residual stream",
        "", kCross);
  t.add(Point::resid_cross, "resid_cross", kResid, "the stream after cross-attention was added", "", kCross);
  t.add_norm(NormSite::ln_cross);
  t.add(Point::normalized_resid_cross, "normalized_resid_cross", kResid, "norm of resid_cross (post-norm)",
        "", post_cross);
  t.add_norm(NormSite::ln2);
  add_feed_forward(t);
  t.add_norm(NormSite::ln2_post);
  t.add(Point::mlp_out, "mlp_out", kResid, "what feed-forward adds to the residual stream", "hook_mlp_out");
  t.add(Point::resid_post, "resid_post", kResid, "the residual stream after feed-forward was added",
        "hook_resid_post");
  t.add(Point::normalized_resid_post, "normalized_resid_post", kResid, "norm of resid_post (post-norm)",
        "hook_normalized_resid_post", post_ffn);
  t.add_norm(NormSite::ln_final);
  t.add_outside(Point::pooler, "pooler", kFirstRow, "tanh(W_pooler · the first token's last row + b)", "",
                [](const ModelConfig& c, const LayerPlan*) { return c.has_pooler; });
  t.add_outside(Point::logits, "logits", kLogits, "W_U · ln_final.out (then the soft cap)", "",
                [](const ModelConfig& c, const LayerPlan*) { return c.has_output; });
  LIULI_CHECK(t.rows.size() == static_cast<size_t>(kPointCount));
  return t.rows;
}

const std::vector<PointInfo>& table() {
  static const std::vector<PointInfo> rows = make_table();
  return rows;
}

void replace(std::string& text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
}

std::string name_of(const Place& place, std::string_view layer, std::string_view expert) {
  const PointInfo& info = point_info(place.point);
  const bool is_final = place.point == Point::logits || info.name.rfind("ln_final.", 0) == 0;
  std::string name = info.name;
  replace(name, ".E.", fmt::format(".{}.", expert));
  if (place.stack == Stack::cross) replace(name, "attn.", "cross_attn.");
  if (info.in_block) name = fmt::format("blocks.{}.{}", layer, name);
  if (place.stack == Stack::blocks || is_final) return name;
  const bool encoder = place.stack == Stack::encoder;
  if (!info.in_block) return (encoder ? "enc." : "dec.") + name;
  return (encoder ? "encoder." : "decoder.") + name;
}

}  // namespace

std::span<const PointInfo> point_table() { return table(); }

const PointInfo& point_info(Point point) {
  static const auto index = [] {
    std::array<const PointInfo*, kPointCount> rows{};
    for (const PointInfo& row : table()) rows[static_cast<size_t>(row.point)] = &row;
    return rows;
  }();
  LIULI_CHECK(static_cast<int>(point) < kPointCount);
  return *index[static_cast<size_t>(point)];
}

std::string Place::name() const { return name_of(*this, std::to_string(layer), std::to_string(expert)); }
std::string Place::general_name() const { return name_of(*this, "N", "E"); }

std::string Place::alias() const {
  const PointInfo& info = point_info(point);
  if (info.alias.empty() || stack != Stack::blocks) return "";
  return info.in_block ? fmt::format("blocks.{}.{}", layer, info.alias) : info.alias;
}

const char* axis_name(Axis axis) {
  constexpr const char* kNames[] = {
      "n_tokens", "n_tokens",    "n_heads",     "n_kv_heads",   "head_dim",     "v_head_dim",
      "d_model",  "d_ff",        "q_lora_rank", "kv_lora_rank", "n_experts",    "n_experts_active",
      "n_groups", "expert_d_ff", "shared_d_ff", "vocab_size",   "n_rope_pairs", "1"};
  return kNames[static_cast<size_t>(axis)];
}

int64_t axis_size(const ModelConfig& c, Axis axis) {
  switch (axis) {
    case Axis::token:
    case Axis::key:
      return 0;
    case Axis::head:
      return c.n_heads;
    case Axis::kv_head:
      return c.n_kv_heads;
    case Axis::head_dim:
      return c.head_dim;
    case Axis::value_dim:
      return c.is_latent() ? c.latent.v_head_dim : c.head_dim;
    case Axis::d_model:
      return c.d_model;
    case Axis::d_ff:
      return c.d_ff;
    case Axis::q_rank:
      return c.latent.q_lora_rank;
    case Axis::kv_rank:
      return c.latent.kv_lora_rank;
    case Axis::expert:
      return c.experts.n_experts;
    case Axis::active_expert:
      return c.experts.n_experts_active;
    case Axis::group:
      return c.experts.n_groups;
    case Axis::expert_d_ff:
      return c.experts.d_ff;
    case Axis::shared_d_ff:
      return c.experts.shared_d_ff;
    case Axis::vocab:
      return c.vocab_size;
    case Axis::rope_pair:
      return c.ropes.empty() ? 0 : c.ropes.front().dim / 2;
    case Axis::one:
      return 1;
  }
  return 0;
}

std::vector<int64_t> place_shape(const ModelConfig& c, const Place& place, TokenCounts counts) {
  const bool of_source =
      place.stack == Stack::encoder ||
      (place.stack == Stack::cross && (place.point == Point::attn_k || place.point == Point::attn_v));
  const int64_t n_tokens = of_source ? counts.source : counts.tokens;
  const int64_t n_keys =
      place.stack == Stack::encoder || place.stack == Stack::cross ? counts.source : counts.tokens;
  std::vector<int64_t> shape;
  for (Axis axis : point_info(place.point).shape) {
    if (axis == Axis::token)
      shape.push_back(n_tokens);
    else if (axis == Axis::key)
      shape.push_back(n_keys);
    else if (axis == Axis::rope_pair)
      shape.push_back(rope_of(c, c.layers[static_cast<size_t>(place.layer)])->dim / 2);
    else
      shape.push_back(axis_size(c, axis));
  }
  return shape;
}

}  // namespace liuli
