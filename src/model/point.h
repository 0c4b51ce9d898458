// The public places inside a model: every value that can be seen has one of these names.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "liuli/config.h"

namespace liuli {

/// A norm's place: ln1 and ln2 stand before a branch (pre-norm) or after its sum (post-norm), *_post on the
/// branch's output.
enum class NormSite : uint8_t { embed_ln, ln1, ln1_post, ln_cross, ln2, ln2_post, ln_final };
/// A norm's stages: y = (x − mean) / sigma · γ + β; sigma = √(var + eps); rms has mean 0 and var = mean(x²).
enum class NormStage : uint8_t { mean, var, sigma, centered, normalized, scaled, out };
constexpr int kNormSites = 7, kNormStages = 7;

/// What is seen. The norm stages follow one another per site: norm_point() finds them.
enum class Point : uint8_t {
  embed,
  pos_embed,
  type_embed,
  embed_sum,
  resid_pre,
  attn_q,
  attn_k,
  attn_v,
  attn_q_normed,
  attn_k_normed,
  attn_rope_angle,
  attn_rope_cos,
  attn_rope_sin,
  attn_rot_q,
  attn_rot_k,
  attn_q_latent,
  attn_kv_latent,
  attn_scores_raw,
  attn_scores,
  attn_attn_scores,
  attn_pattern,
  attn_z,
  attn_out_proj,
  attn_out,
  resid_mid,
  normalized_resid_mid,
  cross_attn_out,
  resid_cross,
  normalized_resid_cross,
  mlp_pre,
  mlp_pre_linear,
  mlp_post,
  mlp_router_logits,
  mlp_router_scores,
  mlp_router_biased,
  mlp_group_scores,
  mlp_groups_kept,
  mlp_expert_ids,
  mlp_expert_weights,
  mlp_expert_pre,
  mlp_expert_pre_linear,
  mlp_expert_post,
  mlp_expert_out,
  mlp_routed_out,
  mlp_shared_pre,
  mlp_shared_pre_linear,
  mlp_shared_post,
  mlp_shared_out,
  mlp_out_raw,
  mlp_out,
  resid_post,
  normalized_resid_post,
  pooler,
  logits,
  norm_first,  ///< embed_ln.mean; then stage by stage, site by site
  count = norm_first + kNormSites * kNormStages,
};
constexpr int kPointCount = static_cast<int>(Point::count);

constexpr Point norm_point(NormSite site, NormStage stage) {
  return static_cast<Point>(static_cast<int>(Point::norm_first) + static_cast<int>(site) * kNormStages +
                            static_cast<int>(stage));
}

/// Which tower a block stands in. `cross` is the decoder's second attention, over the encoder's output; its
/// values are called cross_attn.*.
enum class Stack : uint8_t { blocks, encoder, decoder, cross };

/// One value of one model.
struct Place {
  Point point;
  int layer = -1;  ///< −1 outside the blocks
  Stack stack = Stack::blocks;
  int expert = -1;  ///< for values of one expert

  /// "blocks.3.attn.pattern", "decoder.blocks.0.cross_attn.q", "blocks.1.mlp.experts.7.post", "ln_final.out"
  std::string name() const;
  /// TransformerLens's name of the same value, or "".
  std::string alias() const;
  /// The name for every layer and expert: "blocks.N.mlp.experts.E.post".
  std::string general_name() const;
  friend bool operator==(const Place&, const Place&) = default;
};

/// One index of a point's shape.
enum class Axis : uint8_t {
  token,
  key,
  head,
  kv_head,
  head_dim,
  value_dim,
  d_model,
  d_ff,
  q_rank,
  kv_rank,
  expert,
  active_expert,
  group,
  expert_d_ff,
  shared_d_ff,
  vocab,
  rope_pair,
  one
};

/// A row of the table of points.
struct PointInfo {
  Point point;
  std::string name;  ///< without "blocks.N.": "attn.pattern"
  bool in_block;     ///< "blocks.N." precedes the name
  std::span<const Axis> shape;
  std::string formula;
  std::string alias;  ///< TransformerLens's spelling where it means the same value, else ""
  /// Whether a model (outside the blocks) or one of its layers has it; `layer` is null outside the blocks.
  bool (*exists)(const ModelConfig& config, const LayerPlan* layer);
};

/// Every point in the order a token meets them.
std::span<const PointInfo> point_table();
const PointInfo& point_info(Point point);

/// How many tokens a value spans: of the sequence, and of the source text of an encoder-decoder.
struct TokenCounts {
  int64_t tokens = 0, source = 0;
};
std::vector<int64_t> place_shape(const ModelConfig& config, const Place& place, TokenCounts counts);
/// "n_tokens", "n_heads", …
const char* axis_name(Axis axis);
/// The length of one index, of those that do not count tokens.
int64_t axis_size(const ModelConfig& config, Axis axis);

}  // namespace liuli
