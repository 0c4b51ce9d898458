// The transformer block.
#pragma once
#include "model/step.h"
#include "model/weights.h"

namespace liuli {

/// One block over all rows of a step; x [n_tokens, d_model] is the residual stream, updated in place. Returns its rows, or
/// at their front those that are kept (Step::kept).
Rows block_forward(const Block& b, int layer, Rows x, Step& s);

/// W_o · z: what attention gives for normed rows h, before it is added. Appends to the caches.
Rows attention_forward(const Attention& a, int layer, Rows h, Step& s);
Rows attention_forward(const LatentAttention& a, int layer, Rows h, Step& s);
inline Rows attention_forward(const std::variant<Attention, LatentAttention>& attention, int layer, Rows h,
                              Step& s) {
  return std::visit([&](const auto& a) { return attention_forward(a, layer, h, s); }, attention);
}

/// The angles that a layer turns its queries and keys by, shown. What a listener changes turns this layer alone: the step's
/// own stay as they are.
RopeAngles shown_angles(int rope, int layer, Step& s);

/// Writes every row's keys and values [n_rows, n_kv_heads · head_dim] to its sequence's cache; takes the rounding offset
/// off k first.
void append_to_caches(const Attention& a, int layer, Rows k, Rows v, Step& s);
/// z = softmax(scale · q·k) v of every row over its sequence's keys; scores and pattern go to whoever listens.
/// Shapes: q [n_rows, n_heads · head_dim], z [n_rows, n_heads · value_dim].
void attend_rows(const Attention& a, int layer, Rows q, Rows z, Step& s);
/// The same as new rows, which are shown too.
Rows attend(const Attention& a, int layer, Rows q, Step& s);

/// The decoder's second attention: x += attention of x over the encoder's output, with its norms.
void cross_attention_step(const Block& b, int layer, Rows x, Step& s);
/// Keys and values that attention forms of the encoder's output, into the cache of the source.
void cross_attention_source(const Attention& a, int layer, Rows encoded, Step& s);

/// Where the values inside a feed-forward are shown: the block's own, or the shared expert's.
struct HiddenPoints {
  Point pre = Point::mlp_pre, pre_linear = Point::mlp_pre_linear, post = Point::mlp_post;
};

/// W_down(act(W_gate h) ⊙ W_up h), or W_down(act(W_up h)) without a gate; Σ weight_e · expert_e(h) for a mixture.
Rows feed_forward(const FeedForward& f, int layer, Rows h, Step& s, const HiddenPoints& points = {});
Rows feed_forward(const MixtureOfExperts& m, int layer, Rows h, Step& s);
inline Rows feed_forward(const std::variant<FeedForward, MixtureOfExperts>& ffn, int layer, Rows h, Step& s) {
  return std::visit([&](const auto& f) { return feed_forward(f, layer, h, s); }, ffn);
}

/// norm(x) as new rows, its stages shown to the listener; x itself when the family has no norm here.
Rows normalized(const Norm& norm, NormSite site, int layer, Rows x, Step& s);
/// x = norm(x); nothing when the family has no norm here.
void norm_in_place(const Norm& norm, NormSite site, int layer, Rows x, Step& s);
/// Post-norm: the residual stream itself is normalised and shown once more.
void post_norm(const Norm& norm, NormSite site, Point shown_as, int layer, Rows x, Step& s);

}  // namespace liuli
