// The way back through a model: gradients of a loss with respect to every weight, from what the forward pass saved.
#pragma once
#include <functional>

#include "model/saved.h"
#include "model/step.h"
#include "model/weights.h"

namespace liuli {

/// Weights being trained and their gradients lie in two blocks of equal layout, so that a weight's address gives its
/// gradient's.
struct GradientMap {
  const float* values = nullptr;
  float* gradients = nullptr;
  int64_t size = 0;

  /// Where the gradient of what begins at `value` is gathered; null for null.
  float* of(const float* value) const;
};

/// One step's way back. Gradients are added to; the caller clears them.
struct Backward {
  OpContext& ops;
  const Saved* saved;
  GradientMap gradients;
  Stack stack = Stack::blocks;
  std::vector<SequenceRows> sequences;  ///< as in the forward step; their caches are not used
  std::vector<RopeAngles> angles;       ///< per ModelConfig::ropes
  /// Encoder-decoder: the encoder's output, its gradient (added to by every decoder layer), and which of its rows belong
  /// to which sequence.
  Rows encoded, d_encoded;
  std::vector<SequenceRows> sources;
  /// Residual dropout: called with the gradient of what a branch added, to put the forward's mask on it. Null: none.
  std::function<void(const Place&, Rows)> mask_branch;

  Rows at(Point point, int layer) const { return saved->at(point, layer, stack); }
};

/// dx, the gradient of what leaves the block, becomes that of what entered it. The lines of block_forward upside down.
void block_backward(const Block& b, int layer, Rows dx, Backward& s);

/// The gradient of attention's (feed-forward's) input h as new rows, from that of its output.
Rows attention_backward(const std::variant<Attention, LatentAttention>& a, int layer, Rows h, Rows d_out,
                        Backward& s);
Rows latent_attention_backward(const LatentAttention& a, int layer, Rows h, Rows d_out, Backward& s);
Rows feed_forward_backward(const std::variant<FeedForward, MixtureOfExperts>& f, int layer, Rows h,
                           Rows d_out, Backward& s);
/// dx of the decoder's second attention with its norms; adds to s.d_encoded.
void cross_attention_backward(const Block& b, int layer, Rows dx, Backward& s);

/// z = softmax(scale · q kᵀ) v taken back, for every sequence and head. dq is overwritten, dk and dv are added to.
/// Shapes: q, dq [n_rows, n_heads · head_dim], k, dk [n_keys, n_kv_heads · head_dim], v, dv [n_keys, n_kv_heads ·
/// value_dim], dz [n_rows, n_heads · value_dim]; rows of all sequences one after another.
struct AttentionGradient {
  Rows q, k, v, dz, dq, dk, dv;
  int64_t n_heads, n_kv_heads, head_dim, value_dim;
  bool causal = true;
  int window = 0;
  float scale = 0, soft_cap = 0;
};
void attention_core_backward(Backward& s, const AttentionGradient& g, std::span<const SequenceRows> queries,
                             std::span<const SequenceRows> keys);

/// y = W x + b taken back: gradients of W and b, and dx = dy W as new rows or added to dx.
void linear_backward(Backward& s, const Matrix& weight, const float* bias, Rows x, Rows dy, Rows dx,
                     bool accumulate);
inline void linear_backward(Backward& s, const Linear& l, Rows x, Rows dy, Rows dx, bool accumulate) {
  linear_backward(s, l.weight, l.bias, x, dy, dx, accumulate);
}
/// dx of y = norm(x) from dy; gradients of γ and β. In place: dy becomes dx. Nothing where there is no norm.
void norm_backward_in_place(Backward& s, const Norm& norm, Rows x, Rows dy);
/// norm(x) once more, as the forward had it; x itself where there is no norm.
Rows normalized_again(Backward& s, const Norm& norm, Rows x);

}  // namespace liuli
