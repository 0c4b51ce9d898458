#include "model/block.h"
#include "ops/activation.h"
#include "ops/linear.h"

namespace liuli {

Rows feed_forward(const FeedForward& f, int layer, Rows h, Step& s, const HiddenPoints& points) {
  Rows out = make_rows(s.ops.scratch, h.n, f.down.weight.d_out());
  const Arena::Scope scratch(s.ops.scratch);
  Rows hidden = make_rows(s.ops.scratch, h.n, f.up.weight.d_out());
  if (f.gate.weight.empty()) {
    linear_forward(s.ops, h, {LinearJob{&f.up.weight, f.up.bias, hidden}});
    s.probe(points.pre, layer, hidden);
    activation_forward(s.ops, f.activation, hidden, hidden);
  } else {
    Rows up = make_rows(s.ops.scratch, h.n, f.up.weight.d_out());
    linear_forward(s.ops, h,
                   {LinearJob{&f.gate.weight, f.gate.bias, hidden}, LinearJob{&f.up.weight, f.up.bias, up}});
    s.probe(points.pre, layer, hidden);
    s.probe(points.pre_linear, layer, up);
    activation_forward(s.ops, f.activation, hidden, hidden);
    multiply_in_place(s.ops, hidden, up);
  }
  s.probe(points.post, layer, hidden);
  linear_forward(s.ops, hidden, {LinearJob{&f.down.weight, f.down.bias, out}});
  return out;
}

}  // namespace liuli
