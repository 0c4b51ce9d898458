#include <functional>

#include "model/backward.h"
#include "model/feed_forward_backward.h"
#include "ops/activation.h"
#include "ops/linear.h"

namespace liuli {

void feed_forward_backward(const FeedForward& f, const FeedForwardValues& v, Rows d_out, Rows dh,
                           bool accumulate, Backward& s) {
  OpContext& c = s.ops;
  const Arena::Scope scratch(c.scratch);
  Rows d_hidden = make_rows(c.scratch, d_out.n, f.up.weight.d_out());
  linear_backward(s, f.down, v.post, d_out, d_hidden, false);
  if (f.gate.weight.empty()) {
    activation_backward(c, f.activation, v.pre, d_hidden, d_hidden);
    return linear_backward(s, f.up, v.h, d_hidden, dh, accumulate);
  }
  // hidden = act(pre) ⊙ up:  d_up = d ⊙ act(pre),  d_pre = d ⊙ up ⊙ act′(pre)
  Rows d_up = make_rows(c.scratch, d_out.n, d_hidden.width);
  activation_forward(c, f.activation, v.pre, d_up);
  multiply_in_place(c, d_up, d_hidden);
  multiply_in_place(c, d_hidden, v.pre_linear);
  activation_backward(c, f.activation, v.pre, d_hidden, d_hidden);
  linear_backward(s, f.gate, v.h, d_hidden, dh, accumulate);
  linear_backward(s, f.up, v.h, d_up, dh, true);
}

Rows feed_forward_backward(const std::variant<FeedForward, MixtureOfExperts>& ffn, int layer, Rows h,
                           Rows d_out, Backward& s) {
  Rows dh = make_rows(s.ops.scratch, h.n, h.width);
  if (const auto* moe = std::get_if<MixtureOfExperts>(&ffn)) {
    moe_backward(*moe, layer, h, d_out, dh, s);
    return dh;
  }
  const auto& f = std::get<FeedForward>(ffn);
  const Rows up = f.gate.weight.empty() ? Rows{} : s.at(Point::mlp_pre_linear, layer);
  feed_forward_backward(f, {h, s.at(Point::mlp_pre, layer), up, s.at(Point::mlp_post, layer)}, d_out, dh,
                        false, s);
  return dh;
}

}  // namespace liuli
