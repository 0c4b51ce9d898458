// The public places inside a model: every value that can be seen has one of these names.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace liuli {

/// A norm's place in a block.
enum class NormSite : uint8_t { ln1, ln1_post, ln2, ln2_post, ln_final };
/// A norm's stages: y = (x − mean) / sigma · γ + β; sigma = √(var + eps); rms has mean 0 and var = mean(x²).
enum class NormStage : uint8_t { mean, var, sigma, centered, normalized, scaled, out };
constexpr int kNormSites = 5, kNormStages = 7;

/// What is seen. The norm stages follow one another per site: norm_point() finds them.
enum class Point : uint8_t {
  embed,
  pos_embed,
  resid_pre,
  attn_out,
  resid_mid,
  mlp_out,
  resid_post,
  attn_q,
  attn_k,
  attn_v,
  attn_q_normed,
  attn_k_normed,
  attn_rot_q,
  attn_rot_k,
  attn_scores_raw,
  attn_scores,
  attn_attn_scores,
  attn_pattern,
  attn_z,
  attn_out_proj,
  mlp_pre,
  mlp_pre_linear,
  mlp_post,
  mlp_out_raw,
  logits,
  norm_first,  ///< ln1.mean; then stage by stage, site by site
  count = norm_first + kNormSites * kNormStages,
};
constexpr int kPointCount = static_cast<int>(Point::count);

constexpr Point norm_point(NormSite site, NormStage stage) {
  return static_cast<Point>(static_cast<int>(Point::norm_first) + static_cast<int>(site) * kNormStages +
                            static_cast<int>(stage));
}

/// One index of a point's shape.
enum class Axis : uint8_t { token, key, head, kv_head, head_dim, d_model, d_ff, vocab, one };

/// A row of the table of points.
struct PointInfo {
  std::string name;  ///< without "blocks.N.": "attn.pattern"
  bool in_block;     ///< "blocks.N." precedes the name
  std::span<const Axis> shape;
  std::string formula;
  std::string alias;  ///< TransformerLens's spelling where it means the same value, else ""
};
const PointInfo& point_info(Point point);

/// "blocks.3.attn.pattern", or "ln_final.out" for a point outside the blocks.
std::string point_name(Point point, int layer);

}  // namespace liuli
