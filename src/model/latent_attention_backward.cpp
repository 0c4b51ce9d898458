// Multi-head latent attention taken back, in its expanded form: a composition of linear maps, two norms and RoPE.
#include <algorithm>
#include <functional>

#include "model/backward.h"
#include "ops/linear.h"
#include "ops/rope.h"

namespace liuli {
namespace {

Rows columns(Rows x, int64_t first, int64_t width) { return {x.data + first, x.n, width, x.stride}; }

Rows zero_rows(OpContext& c, int64_t n, int64_t width) {
  Rows x = make_rows(c.scratch, n, width);
  for (int64_t i = 0; i < n; i++) std::fill_n(x.row(i), width, 0.0f);
  return x;
}

Rows product(OpContext& c, const Linear& l, Rows x) {
  Rows y = make_rows(c.scratch, x.n, l.weight.d_out());
  linear_forward(c, x, {LinearJob{&l.weight, l.bias, y}});
  return y;
}

// k = [k_up_i c | k_rope], v = v_up_i c for every head: d_kv becomes the gradient of [c before its norm | k_rope].
Rows keys_backward(const LatentAttention& a, Rows kv, Rows dk, Rows dv, Backward& s) {
  const auto [q_rank, rank, nope, rope, v_dim] = a.shape;
  OpContext& c = s.ops;
  Rows d_kv = zero_rows(c, kv.n, rank + rope);
  const Arena::Scope scratch(c.scratch);
  const Rows latent = normalized_again(s, a.kv_norm, columns(kv, 0, rank));
  Rows d_latent = columns(d_kv, 0, rank), d_rope = columns(d_kv, rank, rope);
  for (int64_t h = 0; h < a.n_heads; h++) {
    const Rows d_head = columns(dk, h * (nope + rope), nope + rope);
    const auto head = static_cast<size_t>(h);
    linear_backward(s, a.k_up[head], nullptr, latent, columns(d_head, 0, nope), d_latent, true);
    linear_backward(s, a.v_up[head], nullptr, latent, columns(dv, h * v_dim, v_dim), d_latent, true);
    for (int64_t i = 0; i < kv.n; i++)
      for (int64_t j = 0; j < rope; j++) d_rope.row(i)[j] += d_head.row(i)[nope + j];
  }
  norm_backward_in_place(s, a.kv_norm, columns(kv, 0, rank), d_latent);
  Rows turned = make_rows(c.scratch, kv.n, rope);
  for (int64_t i = 0; i < kv.n; i++) std::copy_n(d_rope.row(i), rope, turned.row(i));
  rope_backward(c, s.angles[static_cast<size_t>(a.rope)], turned, 1, rope);
  for (int64_t i = 0; i < kv.n; i++) std::copy_n(turned.row(i), rope, d_rope.row(i));
  return d_kv;
}

void queries_backward(const LatentAttention& a, Rows h, Rows dq, Rows dh, Backward& s) {
  if (a.q_a.weight.empty()) return linear_backward(s, a.q_b, h, dq, dh, false);
  OpContext& c = s.ops;
  const Rows raw = product(c, a.q_a, h);
  Rows d_latent = make_rows(c.scratch, h.n, raw.width);
  linear_backward(s, a.q_b, normalized_again(s, a.q_norm, raw), dq, d_latent, false);
  norm_backward_in_place(s, a.q_norm, raw, d_latent);
  linear_backward(s, a.q_a, h, d_latent, dh, false);
}

}  // namespace

Rows latent_attention_backward(const LatentAttention& a, int layer, Rows h, Rows d_out, Backward& s) {
  OpContext& c = s.ops;
  Rows dh = make_rows(c.scratch, h.n, h.width);
  const Arena::Scope scratch(c.scratch);
  const int64_t head_dim = a.shape.qk_nope_head_dim + a.shape.qk_rope_head_dim, v_dim = a.shape.v_head_dim;
  Rows dz = make_rows(c.scratch, h.n, a.n_heads * v_dim),
       dq = make_rows(c.scratch, h.n, a.n_heads * head_dim);
  Rows dk = zero_rows(c, h.n, a.n_heads * head_dim), dv = zero_rows(c, h.n, a.n_heads * v_dim);
  linear_backward(s, a.o, s.at(Point::attn_z, layer), d_out, dz, false);
  attention_core_backward(
      s,
      {s.at(Point::attn_rot_q, layer), s.at(Point::attn_rot_k, layer), s.at(Point::attn_v, layer), dz, dq, dk,
       dv, a.n_heads, a.n_heads, head_dim, v_dim, true, 0, a.scale, 0},
      s.sequences, s.sequences);
  rope_backward(c, s.angles[static_cast<size_t>(a.rope)], dq, a.n_heads, head_dim, a.shape.qk_nope_head_dim);
  queries_backward(a, h, dq, dh, s);
  const Rows d_kv = keys_backward(a, product(c, a.kv_a, h), dk, dv, s);
  linear_backward(s, a.kv_a, h, d_kv, dh, true);
  return dh;
}

}  // namespace liuli
