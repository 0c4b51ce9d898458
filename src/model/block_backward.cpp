#include <functional>

#include "core/check.h"
#include "model/backward.h"
#include "ops/linear.h"
#include "ops/norm.h"

namespace liuli {
namespace {

Rows copy_of(OpContext& c, Rows x) {
  Rows copy = make_rows(c.scratch, x.n, x.width);
  for_each_row(c, x.n, [&](int64_t i) { std::copy_n(x.row(i), x.width, copy.row(i)); });
  return copy;
}

// x' = residual_scale · x + a: what flows into the branch, and what stays on the stream.
Rows split_gradient(Backward& s, float residual_scale, const Place& branch, Rows dx) {
  Rows da = copy_of(s.ops, dx);
  if (residual_scale != 1.0f)
    for_each_row(s.ops, dx.n, [&](int64_t i) { s.ops.rows.scale(dx.row(i), residual_scale, dx.width); });
  if (s.mask_branch) s.mask_branch(branch, da);
  return da;
}

// dx += the gradient of norm's input, or dh itself where there is no norm.
void join_gradient(Backward& s, const Norm& norm, Rows x, Rows dh, Rows dx) {
  if (norm.kind == NormKind::none)
    for_each_row(s.ops, dx.n, [&](int64_t i) { s.ops.rows.add(dx.row(i), dh.row(i), dx.width); });
  else
    norm_backward(s.ops, norm, {s.gradients.of(norm.gamma), s.gradients.of(norm.beta)}, x, dh, dx, true);
}

// The stream between attention and feed-forward, after whatever norms came last.
Rows stream_before_ffn(const Block& b, int layer, const Backward& s) {
  if (b.cross)
    return s.at(
        b.cross_norm.after_add.kind != NormKind::none ? Point::normalized_resid_cross : Point::resid_cross,
        layer);
  return s.at(b.attn_norm.after_add.kind != NormKind::none ? Point::normalized_resid_mid : Point::resid_mid,
              layer);
}

}  // namespace

float* GradientMap::of(const float* value) const {
  if (value == nullptr) return nullptr;
  LIULI_CHECK(value >= values && value < values + size);
  return gradients + (value - values);
}

void linear_backward(Backward& s, const Matrix& weight, const float* bias, Rows x, Rows dy, Rows dx,
                     bool accumulate) {
  const float* values = weight.f32_rows();
  linear_backward(s.ops,
                  {values, s.gradients.of(values), s.gradients.of(bias), weight.d_out(), weight.d_in()}, x,
                  dy, dx, accumulate);
}

void norm_backward_in_place(Backward& s, const Norm& norm, Rows x, Rows dy) {
  if (norm.kind == NormKind::none) return;
  const Arena::Scope scratch(s.ops.scratch);
  const Rows given = copy_of(s.ops, dy);
  norm_backward(s.ops, norm, {s.gradients.of(norm.gamma), s.gradients.of(norm.beta)}, x, given, dy, false);
}

Rows normalized_again(Backward& s, const Norm& norm, Rows x) {
  if (norm.kind == NormKind::none) return x;
  Rows y = make_rows(s.ops.scratch, x.n, x.width);
  norm_forward(s.ops, norm, x, y);
  return y;
}

void block_backward(const Block& b, int layer, Rows dx, Backward& s) {
  const Arena::Scope scratch(s.ops.scratch);
  const Rows middle = stream_before_ffn(b, layer, s), entry = s.at(Point::resid_pre, layer);

  norm_backward_in_place(s, b.ffn_norm.after_add, s.at(Point::resid_post, layer), dx);
  Rows df = split_gradient(s, b.residual_scale, {Point::mlp_out, layer, s.stack}, dx);  // 6 add
  norm_backward_in_place(s, b.ffn_norm.on_output, s.at(Point::mlp_out_raw, layer), df);
  Rows dg = feed_forward_backward(b.ffn, layer, normalized_again(s, b.ffn_norm.before, middle), df, s);  // 5
  join_gradient(s, b.ffn_norm.before, middle, dg, dx);  // 4 norm

  if (b.cross) cross_attention_backward(b, layer, dx, s);
  norm_backward_in_place(s, b.attn_norm.after_add, s.at(Point::resid_mid, layer), dx);
  Rows da = split_gradient(s, b.residual_scale, {Point::attn_out, layer, s.stack}, dx);  // 3 add
  norm_backward_in_place(s, b.attn_norm.on_output, s.at(Point::attn_out_proj, layer), da);
  Rows dh =
      attention_backward(b.attention, layer, normalized_again(s, b.attn_norm.before, entry), da, s);  // 2
  join_gradient(s, b.attn_norm.before, entry, dh, dx);  // 1 norm
}

}  // namespace liuli
