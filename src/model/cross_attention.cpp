// The decoder's second attention: its own queries over the encoder's keys and values.
#include <utility>

#include "model/block.h"
#include "ops/activation.h"
#include "ops/linear.h"

namespace liuli {
namespace {

// While it lives, rows look at their source, and values are called cross_attn.*.
class LookingAtSource {
 public:
  explicit LookingAtSource(Step& s) : s_(s), stack_(std::exchange(s.stack, Stack::cross)) {
    s_.sequences.swap(s_.over_source);
  }
  ~LookingAtSource() {
    s_.sequences.swap(s_.over_source);
    s_.stack = stack_;
  }
  LookingAtSource(const LookingAtSource&) = delete;
  LookingAtSource& operator=(const LookingAtSource&) = delete;

 private:
  Step& s_;
  Stack stack_;
};

Rows over_source(const Attention& a, int layer, Rows h, Step& s) {
  const LookingAtSource looking(s);
  Rows out = make_rows(s.ops.scratch, h.n, a.o.weight.d_out());
  const Arena::Scope scratch(s.ops.scratch);
  Rows q = make_rows(s.ops.scratch, h.n, a.q.weight.d_out());
  linear_forward(s.ops, h, {LinearJob{&a.q.weight, a.q.bias, q}});
  s.probe(Point::attn_q, layer, q);
  Rows z = attend(a, layer, q, s);
  linear_forward(s.ops, z, {LinearJob{&a.o.weight, a.o.bias, out}});
  s.probe(Point::attn_out_proj, layer, out);
  return out;
}

}  // namespace

void cross_attention_step(const Block& b, int layer, Rows x, Step& s) {
  Rows h = normalized(b.cross_norm.before, NormSite::ln_cross, layer, x, s);
  Rows a = over_source(*b.cross, layer, h, s);
  s.probe(Point::cross_attn_out, layer, a);
  add_in_place(s.ops, x, a, b.residual_scale);
  s.probe(Point::resid_cross, layer, x);
  post_norm(b.cross_norm.after_add, NormSite::ln_cross, Point::normalized_resid_cross, layer, x, s);
}

void cross_attention_source(const Attention& a, int layer, Rows encoded, Step& s) {
  const LookingAtSource looking(s);
  const Arena::Scope scratch(s.ops.scratch);
  Rows k = make_rows(s.ops.scratch, encoded.n, a.k.weight.d_out());
  Rows v = make_rows(s.ops.scratch, encoded.n, a.v.weight.d_out());
  linear_forward(s.ops, encoded, {LinearJob{&a.k.weight, a.k.bias, k}, LinearJob{&a.v.weight, a.v.bias, v}});
  s.probe(Point::attn_k, layer, k);
  s.probe(Point::attn_v, layer, v);
  append_to_caches(a, layer, k, v, s);
}

}  // namespace liuli
