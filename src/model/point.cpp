#include "model/point.h"

#include <array>
#include <vector>

#include "core/check.h"

namespace liuli {
namespace {

constexpr Axis kResid[] = {Axis::token, Axis::d_model};
constexpr Axis kQ[] = {Axis::token, Axis::head, Axis::head_dim};
constexpr Axis kKV[] = {Axis::token, Axis::kv_head, Axis::head_dim};
constexpr Axis kScores[] = {Axis::head, Axis::token, Axis::key};
constexpr Axis kHidden[] = {Axis::token, Axis::d_ff};
constexpr Axis kScalar[] = {Axis::token, Axis::one};
constexpr Axis kLogits[] = {Axis::token, Axis::vocab};

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
constexpr const char* kSites[kNormSites] = {"ln1", "ln1_post", "ln2", "ln2_post", "ln_final"};

void fill_block_points(std::vector<PointInfo>& t) {
  auto set = [&](Point p, const char* name, std::span<const Axis> shape, const char* formula,
                 const char* alias) {
    t[static_cast<size_t>(p)] = {name, true, shape, formula, alias};
  };
  set(Point::resid_pre, "resid_pre", kResid, "the residual stream entering the block", "hook_resid_pre");
  set(Point::attn_out, "attn_out", kResid, "what attention adds to the residual stream", "hook_attn_out");
  set(Point::resid_mid, "resid_mid", kResid, "resid_pre + attn_out", "hook_resid_mid");
  set(Point::mlp_out, "mlp_out", kResid, "what feed-forward adds to the residual stream", "hook_mlp_out");
  set(Point::resid_post, "resid_post", kResid, "resid_mid + mlp_out", "hook_resid_post");
  set(Point::attn_q, "attn.q", kQ, "W_q · ln1.out + b_q, before norm and RoPE", "attn.hook_q");
  set(Point::attn_k, "attn.k", kKV, "W_k · ln1.out + b_k, before norm and RoPE", "attn.hook_k");
  set(Point::attn_v, "attn.v", kKV, "W_v · ln1.out + b_v", "attn.hook_v");
  set(Point::attn_q_normed, "attn.q_normed", kQ, "norm of q", "");
  set(Point::attn_k_normed, "attn.k_normed", kKV, "norm of k", "");
  set(Point::attn_rot_q, "attn.rot_q", kQ, "q turned by its position's angles", "attn.hook_rot_q");
  set(Point::attn_rot_k, "attn.rot_k", kKV, "k turned by its position's angles", "attn.hook_rot_k");
  set(Point::attn_scores_raw, "attn.scores_raw", kScores, "rot_q · rot_k", "");
  set(Point::attn_scores, "attn.scores", kScores, "scale · scores_raw (then the soft cap), before the mask",
      "");
  set(Point::attn_attn_scores, "attn.attn_scores", kScores, "scores, −inf where the mask hides a key",
      "attn.hook_attn_scores");
  set(Point::attn_pattern, "attn.pattern", kScores, "softmax of attn_scores over the keys",
      "attn.hook_pattern");
  set(Point::attn_z, "attn.z", kQ, "Σ pattern · v", "attn.hook_z");
  set(Point::attn_out_proj, "attn.out_proj", kResid, "W_o · z, before a norm on the branch", "");
  set(Point::mlp_pre, "mlp.pre", kHidden, "W_gate · ln2.out", "mlp.hook_pre");
  set(Point::mlp_pre_linear, "mlp.pre_linear", kHidden, "W_up · ln2.out", "mlp.hook_pre_linear");
  set(Point::mlp_post, "mlp.post", kHidden, "act(pre) · pre_linear", "mlp.hook_post");
  set(Point::mlp_out_raw, "mlp.out", kResid, "W_down · post, before a norm on the branch", "");
}

std::vector<PointInfo> make_table() {
  std::vector<PointInfo> t(kPointCount);
  t[static_cast<size_t>(Point::embed)] = {"embed", false, kResid, "embedding_scale · W_E[token]",
                                          "hook_embed"};
  t[static_cast<size_t>(Point::pos_embed)] = {"pos_embed", false, kResid, "W_pos[position]",
                                              "hook_pos_embed"};
  t[static_cast<size_t>(Point::logits)] = {"logits", false, kLogits, "W_U · ln_final.out (then the soft cap)",
                                           ""};
  fill_block_points(t);
  for (int site = 0; site < kNormSites; site++)
    for (int stage = 0; stage < kNormStages; stage++) {
      const StageText& text = kStages[stage];
      const bool in_block = static_cast<NormSite>(site) != NormSite::ln_final;
      const auto name = std::string(kSites[site]) + "." + text.name;
      const auto alias = *text.alias == '\0' ? std::string() : std::string(kSites[site]) + "." + text.alias;
      const bool scalar = stage <= static_cast<int>(NormStage::sigma);
      t[static_cast<size_t>(norm_point(static_cast<NormSite>(site), static_cast<NormStage>(stage)))] = {
          name, in_block, scalar ? std::span<const Axis>(kScalar) : std::span<const Axis>(kResid),
          text.formula, alias};
    }
  return t;
}

}  // namespace

const PointInfo& point_info(Point point) {
  static const std::vector<PointInfo> table = make_table();
  LIULI_CHECK(static_cast<int>(point) < kPointCount);
  return table[static_cast<size_t>(point)];
}

std::string point_name(Point point, int layer) {
  const PointInfo& info = point_info(point);
  return info.in_block ? "blocks." + std::to_string(layer) + "." + info.name : info.name;
}

}  // namespace liuli
