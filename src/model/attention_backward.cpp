#include <algorithm>
#include <cmath>
#include <functional>

#include "core/check.h"
#include "core/lane_sum.h"
#include "model/backward.h"
#include "ops/gemm.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/rope.h"

namespace liuli {
namespace {

Rows zero_rows(OpContext& c, int64_t n, int64_t width) {
  Rows x = make_rows(c.scratch, n, width);
  for_each_row(c, n, [&](int64_t i) { std::fill_n(x.row(i), width, 0.0f); });
  return x;
}

// One kv head and the query heads of its group, over one sequence; all rows begin at the (first) head's first value.
struct HeadGradient {
  Rows q, k, v, dz, dq, dk, dv;
  int64_t group, head_dim, value_dim;
  bool causal;
  int window;
  float scale, soft_cap;
};

// Some columns of some rows.
Rows part(Rows x, int64_t first_row, int64_t n, int64_t column, int64_t width) {
  return {x.row(first_row) + column, n, width, x.stride};
}

// The keys that row i of n_q sees among n_k (the last query stands at the last key, where the mask looks at positions).
struct Visible {
  int64_t begin, end;
};
Visible visible(const HeadGradient& h, int64_t i) {
  const int64_t end = h.causal || h.window > 0 ? i + 1 : h.k.n;
  return {h.window > 0 ? std::max<int64_t>(0, i + 1 - h.window) : 0, std::min(end, h.k.n)};
}

// s becomes the pattern of its row; `slope` the derivative of the soft cap, where there is one.
void pattern_row(OpContext& c, const HeadGradient& h, int64_t i, float* s, float* slope) {
  const Visible seen = visible(h, i);
  for (int64_t j = seen.begin; j < seen.end; j++) {
    s[j] *= h.scale;
    if (slope == nullptr) continue;
    const float t = std::tanh(s[j] / h.soft_cap);
    s[j] = h.soft_cap * t;
    slope[j] = 1 - t * t;
  }
  std::fill(s, s + seen.begin, 0.0f);
  std::fill(s + seen.end, s + h.k.n, 0.0f);
  c.rows.softmax(s + seen.begin, seen.end - seen.begin, s + seen.begin);
}

// ds = pattern ⊙ (dp − Σ pattern ⊙ dp) · scale (· slope), over dp.
void score_row_backward(const HeadGradient& h, int64_t n, const float* pattern, const float* slope,
                        float* dp) {
  const auto mean = static_cast<float>(
      lane_sum(n, [&](int64_t j) { return static_cast<double>(pattern[j]) * static_cast<double>(dp[j]); }));
  for (int64_t j = 0; j < n; j++) dp[j] = pattern[j] * (dp[j] - mean) * h.scale;
  if (slope != nullptr)
    for (int64_t j = 0; j < n; j++) dp[j] *= slope[j];
}

int64_t head_scratch_floats(const OpContext& c, int64_t n_q, int64_t n_k, int64_t widest, bool capped) {
  const int64_t side = std::max(n_q, n_k), most = std::max(side, widest);
  const auto gemm = static_cast<int64_t>(std::max(c.kernels.gemm.scratch_floats(side, most, most),
                                                  gemm_kernel(c).scratch_floats(side, most, most)));
  return round_up(n_q * round_up(n_k, 16) * (capped ? 3 : 2), 16) + round_up(gemm, 16);
}

void head_backward(OpContext& c, const HeadGradient& h, float* scratch) {
  const int64_t n = h.q.n, keys = h.k.n, stride = round_up(keys, 16);
  float *pattern = scratch, *dp = pattern + n * stride, *slope = h.soft_cap > 0 ? dp + n * stride : nullptr;
  float* packing = dp + n * stride * (slope != nullptr ? 2 : 1);
  const auto& multiply = gemm_kernel(c).multiply;
  auto row = [&](float* x, int64_t i) { return x == nullptr ? nullptr : x + i * stride; };
  for (int64_t g = 0; g < h.group; g++) {
    const float *q = h.q.data + g * h.head_dim, *dz = h.dz.data + g * h.value_dim;
    float* dq = h.dq.data + g * h.head_dim;
    // The pattern as the forward pass had it: in f32.
    c.kernels.gemm.multiply({n, keys, h.head_dim, q, h.q.stride, 1, h.k.data, 1, h.k.stride, pattern, stride},
                            packing);
    for (int64_t i = 0; i < n; i++) pattern_row(c, h, i, row(pattern, i), row(slope, i));
    multiply({keys, h.value_dim, n, pattern, 1, stride, dz, h.dz.stride, 1, h.dv.data, h.dv.stride, true},
             packing);
    multiply({n, keys, h.value_dim, dz, h.dz.stride, 1, h.v.data, 1, h.v.stride, dp, stride}, packing);
    for (int64_t i = 0; i < n; i++) score_row_backward(h, keys, row(pattern, i), row(slope, i), row(dp, i));
    multiply({n, h.head_dim, keys, dp, stride, 1, h.k.data, h.k.stride, 1, dq, h.dq.stride}, packing);
    multiply({keys, h.head_dim, n, dp, 1, stride, q, h.q.stride, 1, h.dk.data, h.dk.stride, true}, packing);
  }
}

// Each head by itself, or the whole vector: q = norm(q_proj) taken back, in place.
void qk_norm_backward(Backward& s, QkNorm kind, const Norm& norm, Rows before, Rows d, int64_t head_dim) {
  if (kind == QkNorm::none) return;
  if (kind == QkNorm::whole) return norm_backward_in_place(s, norm, before, d);
  const Arena::Scope scratch(s.ops.scratch);
  const int64_t heads = before.width / head_dim;
  Rows x = make_rows(s.ops.scratch, before.n * heads, head_dim), dy = make_rows(s.ops.scratch, x.n, head_dim);
  for (int64_t i = 0; i < before.n; i++)
    for (int64_t h = 0; h < heads; h++) {
      std::copy_n(before.row(i) + h * head_dim, head_dim, x.row(i * heads + h));
      std::copy_n(d.row(i) + h * head_dim, head_dim, dy.row(i * heads + h));
    }
  norm_backward_in_place(s, norm, x, dy);
  for (int64_t i = 0; i < before.n; i++)
    for (int64_t h = 0; h < heads; h++) std::copy_n(dy.row(i * heads + h), head_dim, d.row(i) + h * head_dim);
}

Rows attention_backward(const Attention& a, int layer, Rows h, Rows d_out, Backward& s) {
  OpContext& c = s.ops;
  Rows dh = make_rows(c.scratch, h.n, h.width);
  const Arena::Scope scratch(c.scratch);
  const int64_t q_width = a.n_heads * a.head_dim, kv_width = a.n_kv_heads * a.head_dim;
  Rows dz = make_rows(c.scratch, h.n, q_width), dq = make_rows(c.scratch, h.n, q_width);
  Rows dk = zero_rows(c, h.n, kv_width), dv = zero_rows(c, h.n, kv_width);
  linear_backward(s, a.o, s.at(Point::attn_z, layer), d_out, dz, false);
  attention_core_backward(
      s,
      {s.at(Point::attn_rot_q, layer), s.at(Point::attn_rot_k, layer), s.at(Point::attn_v, layer), dz, dq, dk,
       dv, a.n_heads, a.n_kv_heads, a.head_dim, a.head_dim, a.causal, a.sliding_window, a.scale, a.soft_cap},
      s.sequences, s.sequences);
  const RopeAngles& angles = s.angles[static_cast<size_t>(a.rope)];
  rope_backward(c, angles, dq, a.n_heads, a.head_dim);
  rope_backward(c, angles, dk, a.n_kv_heads, a.head_dim);
  qk_norm_backward(s, a.qk_norm, a.q_norm, s.at(Point::attn_q, layer), dq, a.head_dim);
  qk_norm_backward(s, a.qk_norm, a.k_norm, s.at(Point::attn_k, layer), dk, a.head_dim);
  linear_backward(s, a.q, h, dq, dh, false);
  linear_backward(s, a.k, h, dk, dh, true);
  linear_backward(s, a.v, h, dv, dh, true);
  return dh;
}

}  // namespace

void attention_core_backward(Backward& s, const AttentionGradient& g, std::span<const SequenceRows> queries,
                             std::span<const SequenceRows> keys) {
  LIULI_CHECK(queries.size() == keys.size());
  OpContext& c = s.ops;
  int64_t floats = 0;
  for (size_t i = 0; i < queries.size(); i++)
    floats = std::max(floats, head_scratch_floats(c, queries[i].n_rows, keys[i].n_rows,
                                                  std::max(g.head_dim, g.value_dim), g.soft_cap > 0));
  const Arena::Scope scratch(c.scratch);
  float* memory = c.scratch.floats(floats * c.pool.size());
  const int64_t group = g.n_heads / g.n_kv_heads;
  c.pool.parallel_for(
      static_cast<int64_t>(queries.size()) * g.n_kv_heads, [&](int64_t begin, int64_t end, int thread) {
        for (int64_t item = begin; item < end; item++) {
          const SequenceRows &q = queries[static_cast<size_t>(item / g.n_kv_heads)],
                             &k = keys[static_cast<size_t>(item / g.n_kv_heads)];
          const int64_t head = item % g.n_kv_heads, first = head * group;
          auto of_q = [&](Rows x, int64_t dim) {
            return part(x, q.first_row, q.n_rows, first * dim, group * dim);
          };
          auto of_k = [&](Rows x, int64_t dim) { return part(x, k.first_row, k.n_rows, head * dim, dim); };
          head_backward(
              c,
              {of_q(g.q, g.head_dim), of_k(g.k, g.head_dim), of_k(g.v, g.value_dim), of_q(g.dz, g.value_dim),
               of_q(g.dq, g.head_dim), of_k(g.dk, g.head_dim), of_k(g.dv, g.value_dim), group, g.head_dim,
               g.value_dim, g.causal, g.window, g.scale, g.soft_cap},
              memory + floats * thread);
        }
      });
}

Rows attention_backward(const std::variant<Attention, LatentAttention>& attention, int layer, Rows h,
                        Rows d_out, Backward& s) {
  if (const auto* plain = std::get_if<Attention>(&attention))
    return attention_backward(*plain, layer, h, d_out, s);
  return latent_attention_backward(std::get<LatentAttention>(attention), layer, h, d_out, s);
}

void cross_attention_backward(const Block& b, int layer, Rows dx, Backward& s) {
  OpContext& c = s.ops;
  const Arena::Scope scratch(c.scratch);
  const Attention& a = *b.cross;
  const Rows entry = s.at(
      b.attn_norm.after_add.kind != NormKind::none ? Point::normalized_resid_mid : Point::resid_mid, layer);
  auto cross = [&](Point point) { return s.saved->at(point, layer, Stack::cross); };
  norm_backward_in_place(s, b.cross_norm.after_add, s.at(Point::resid_cross, layer), dx);
  Rows d_out = make_rows(c.scratch, dx.n, dx.width);
  for_each_row(c, dx.n, [&](int64_t i) { std::copy_n(dx.row(i), dx.width, d_out.row(i)); });
  if (s.mask_branch) s.mask_branch({Point::cross_attn_out, layer, s.stack}, d_out);
  const int64_t q_width = a.n_heads * a.head_dim, kv_width = a.n_kv_heads * a.head_dim;
  Rows dz = make_rows(c.scratch, dx.n, q_width), dq = make_rows(c.scratch, dx.n, q_width);
  Rows dk = zero_rows(c, s.encoded.n, kv_width), dv = zero_rows(c, s.encoded.n, kv_width);
  linear_backward(s, a.o, cross(Point::attn_z), d_out, dz, false);
  attention_core_backward(s,
                          {cross(Point::attn_q), cross(Point::attn_k), cross(Point::attn_v), dz, dq, dk, dv,
                           a.n_heads, a.n_kv_heads, a.head_dim, a.head_dim, false, 0, a.scale, a.soft_cap},
                          s.sequences, s.sources);
  linear_backward(s, a.k, s.encoded, dk, s.d_encoded, true);
  linear_backward(s, a.v, s.encoded, dv, s.d_encoded, true);
  const Rows h = normalized_again(s, b.cross_norm.before, entry);
  Rows dh = make_rows(c.scratch, dx.n, dx.width);
  linear_backward(s, a.q, h, dq, dh, false);
  if (b.cross_norm.before.kind == NormKind::none)
    for_each_row(c, dx.n, [&](int64_t i) { c.rows.add(dx.row(i), dh.row(i), dx.width); });
  else
    norm_backward(c, b.cross_norm.before,
                  {s.gradients.of(b.cross_norm.before.gamma), s.gradients.of(b.cross_norm.before.beta)},
                  entry, dh, dx, true);
}

}  // namespace liuli
