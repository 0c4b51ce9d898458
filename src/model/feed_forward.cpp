#include "model/block.h"
#include "model/shown_rows.h"
#include "ops/activation.h"
#include "ops/linear.h"

namespace liuli {
namespace {

// Before and behind the activation: the same memory, unless the listener keeps one of them as it was.
struct Hidden {
  Rows pre, post;
};
Hidden hidden_rows(Step& s, const HiddenPoints& points, int layer, int64_t n, int64_t d_ff) {
  const Rows pre = listeners_rows(s, points.pre, layer, n, d_ff),
             post = listeners_rows(s, points.post, layer, n, d_ff);
  if (pre.data != nullptr && post.data != nullptr) return {pre, post};
  const Rows scratch = make_rows(s.ops.scratch, n, d_ff);
  return {pre.data != nullptr ? pre : scratch, post.data != nullptr ? post : scratch};
}

}  // namespace

Rows feed_forward(const FeedForward& f, int layer, Rows h, Step& s, const HiddenPoints& points) {
  Rows out = make_rows(s.ops.scratch, h.n, f.down.weight.d_out());
  const Arena::Scope scratch(s.ops.scratch);
  const auto [pre, post] = hidden_rows(s, points, layer, h.n, f.up.weight.d_out());
  if (f.gate.weight.empty()) {
    linear_forward(s.ops, h, {LinearJob{&f.up.weight, f.up.bias, pre}});
    s.probe(points.pre, layer, pre);
    activation_forward(s.ops, f.activation, pre, post);
  } else {
    Rows up = rows_to_show(s, points.pre_linear, layer, h.n, f.up.weight.d_out());
    linear_forward(s.ops, h,
                   {LinearJob{&f.gate.weight, f.gate.bias, pre}, LinearJob{&f.up.weight, f.up.bias, up}});
    s.probe(points.pre, layer, pre);
    s.probe(points.pre_linear, layer, up);
    activation_forward(s.ops, f.activation, pre, post);
    multiply_in_place(s.ops, post, up);
  }
  s.probe(points.post, layer, post);
  linear_forward(s.ops, post, {LinearJob{&f.down.weight, f.down.bias, out}});
  return out;
}

}  // namespace liuli
