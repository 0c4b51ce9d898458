// Multi-head latent attention. The cache keeps, per token, the compressed vector c and one rotated key that all heads
// share: k = [c | k_rope], v = c, which is the key's beginning and kept once. Two forms give the same numbers but for
// rounding:
//
//   expanded   k_i = [k_up_i c | k_rope], v_i = v_up_i c for every cached c; plain attention with n_heads heads
//   absorbed   q̃_i = [k_up_iᵀ q_nope_i | q_rope_i]; attention of all heads over the one head [c | k_rope], c;
//              z_i = v_up_i (Σ pattern · c)
//
// Expanding costs products per cached position but makes heads of 192 instead of 576 values; a prompt has many rows to
// share it among, a generated token has one. Both read c back as stored, so that a prompt's bits do not depend on how
// it was cut.
#include <algorithm>

#include <fmt/format.h>

#include "liuli/error.h"
#include "model/attention_capture.h"
#include "model/block.h"
#include "ops/linear.h"

namespace liuli {
namespace {

// Head h of row i begins at data + i · row + h · head.
struct HeadView {
  float* data;
  int64_t row, head;
};

// Each head's values on rows of their own, padded with zeros as products want them.
struct HeadRows {
  Rows all;
  int64_t width, padded;
  Rows head(int64_t h) const { return {all.data + h * padded, all.n, width, all.stride}; }
  HeadView view() const { return {all.data, all.stride, padded}; }
};

HeadRows make_head_rows(Arena& arena, int64_t n, int64_t heads, int64_t width) {
  const int64_t padded = round_up(width, 64);
  HeadRows rows{make_rows(arena, n, heads * padded), width, padded};
  if (padded != width)
    for (int64_t i = 0; i < n; i++)
      for (int64_t h = 0; h < heads; h++)
        std::memset(rows.head(h).row(i) + width, 0, static_cast<size_t>(padded - width) * sizeof(float));
  return rows;
}

struct HeadCount {
  int64_t rows, heads;
};

// The first `width` values of each head.
void copy_heads(OpContext& c, HeadView from, HeadView to, HeadCount count, int64_t width) {
  for_each_row(c, count.rows, [&](int64_t i) {
    for (int64_t h = 0; h < count.heads; h++)
      std::memcpy(to.data + i * to.row + h * to.head, from.data + i * from.row + h * from.head,
                  static_cast<size_t>(width) * sizeof(float));
  });
}

HeadView heads_of(Rows rows, int64_t head_width, int64_t first = 0) {
  return {rows.data + first, rows.stride, head_width};
}

int64_t key_width(const LatentAttention& a) { return a.shape.qk_nope_head_dim + a.shape.qk_rope_head_dim; }
int64_t cached_width(const LatentAttention& a) { return a.shape.kv_lora_rank + a.shape.qk_rope_head_dim; }

struct Latents {
  Rows q;       // [n_rows, n_heads · key_width], the last part of each head rotated
  Rows kv;      // [n_rows, cached_width]: c, and the rotated key
  Rows k_rope;  // that key before its rotation, if somebody listens
};

void project(const LatentAttention& a, int layer, Rows h, const Latents& l, Step& s) {
  if (a.q_a.weight.empty()) {
    linear_forward(s.ops, h,
                   {LinearJob{&a.q_b.weight, a.q_b.bias, l.q}, LinearJob{&a.kv_a.weight, a.kv_a.bias, l.kv}});
  } else {
    Rows q_latent = make_rows(s.ops.scratch, h.n, a.shape.q_lora_rank);
    linear_forward(
        s.ops, h,
        {LinearJob{&a.q_a.weight, a.q_a.bias, q_latent}, LinearJob{&a.kv_a.weight, a.kv_a.bias, l.kv}});
    norm_forward(s.ops, a.q_norm, q_latent, q_latent);
    s.probe(Point::attn_q_latent, layer, q_latent);
    linear_forward(s.ops, q_latent, {LinearJob{&a.q_b.weight, a.q_b.bias, l.q}});
  }
  s.probe(Point::attn_q, layer, l.q);
  const Rows c{l.kv.data, h.n, a.shape.kv_lora_rank, l.kv.stride};
  norm_forward(s.ops, a.kv_norm, c, c);
  s.probe(Point::attn_kv_latent, layer, c);
}

Latents make_latents(const LatentAttention& a, int layer, Rows h, Step& s) {
  Arena& arena = s.ops.scratch;
  Latents l{make_rows(arena, h.n, a.n_heads * key_width(a)), make_rows(arena, h.n, cached_width(a)), {}};
  project(a, layer, h, l, s);
  const int64_t rank = a.shape.kv_lora_rank, rope = a.shape.qk_rope_head_dim;
  if (s.listening(Point::attn_k, layer)) {
    l.k_rope = make_rows(arena, h.n, rope);
    copy_heads(s.ops, heads_of(l.kv, 0, rank), heads_of(l.k_rope, 0), {h.n, 1}, rope);
  }
  const RopeAngles angles = shown_angles(a.rope, layer, s);
  rope_forward(s.ops, angles, l.q, a.n_heads, key_width(a), a.shape.qk_nope_head_dim);
  rope_forward(s.ops, angles, l.kv, 1, cached_width(a), rank);
  s.probe(Point::attn_rot_q, layer, l.q);
  return l;
}

void append_to_caches(int layer, Rows kv, Step& s) {
  for (const SequenceRows& sequence : s.sequences)
    for_each_row(
        s.ops, sequence.n_rows,
        [&](int64_t i) {
          const float* row = kv.row(sequence.first_row + i);
          sequence.cache->append(layer, 0, sequence.first_position + static_cast<int>(i), row, row);
        },
        16);
}

// What the cache holds of positions [first, first + n), as it was rounded.
struct Cached {
  Rows c, k_rope;
};

Cached read_cache(const LatentAttention& a, int layer, const SequenceRows& sequence, int first, int64_t n,
                  Step& s) {
  const int64_t width = cached_width(a), rank = a.shape.kv_lora_rank, rope = a.shape.qk_rope_head_dim;
  Cached cached{make_rows(s.ops.scratch, n, rank), make_rows(s.ops.scratch, n, rope)};
  float* keys = s.ops.scratch.floats(width * s.ops.pool.size());
  s.ops.pool.parallel_for(n, [&](int64_t begin, int64_t end, int thread) {
    float* key = keys + width * thread;
    for (int64_t i = begin; i < end; i++) {
      sequence.cache->read(layer, 0, first + static_cast<int>(i), key, cached.c.row(i));
      std::memcpy(cached.k_rope.row(i), key + rank, static_cast<size_t>(rope) * sizeof(float));
    }
  });
  return cached;
}

// Keys (without their rotated part) and values of some heads.
struct Expanded {
  HeadRows k_nope, v;
};

Expanded expand(const LatentAttention& a, Rows c, int64_t first_head, int64_t heads, Step& s) {
  Arena& arena = s.ops.scratch;
  Expanded e{make_head_rows(arena, c.n, heads, a.shape.qk_nope_head_dim),
             make_head_rows(arena, c.n, heads, a.shape.v_head_dim)};
  auto* jobs = arena.array<LinearJob>(2 * heads);
  for (int64_t h = 0; h < heads; h++) {
    const auto head = static_cast<size_t>(first_head + h);
    jobs[2 * h] = {&a.k_up[head], nullptr, e.k_nope.head(h)};
    jobs[2 * h + 1] = {&a.v_up[head], nullptr, e.v.head(h)};
  }
  linear_forward(s.ops, c, std::span(jobs, static_cast<size_t>(2 * heads)));
  return e;
}

// Shows what nothing is computed from. Errors: unsupported when the listener changed it: the change would go nowhere.
void show_only(Point point, int layer, Rows rows, Step& s) {
  if (!s.listening(point, layer)) return;
  const Arena::Scope scratch(s.ops.scratch);
  Rows before = make_rows(s.ops.scratch, rows.n, rows.width);
  const HeadCount one{rows.n, 1};
  copy_heads(s.ops, heads_of(rows, 0), heads_of(before, 0), one, rows.width);
  s.probe(point, layer, rows);
  for (int64_t i = 0; i < rows.n; i++)
    if (std::memcmp(rows.row(i), before.row(i), static_cast<size_t>(rows.width) * sizeof(float)) != 0)
      throw Error(ErrorCode::unsupported,
                  fmt::format("{} cannot be changed: latent attention forms it for show; change {} instead",
                              s.place(point, layer).name(), s.place(Point::attn_kv_latent, layer).name()));
}

// Neither form has every head's key on its way: they are formed for those who watch, of c as stored.
void show_keys_and_values(const LatentAttention& a, int layer, const Latents& l, Step& s) {
  const bool k = s.listening(Point::attn_k, layer), rot_k = s.listening(Point::attn_rot_k, layer);
  if (!k && !rot_k && !s.listening(Point::attn_v, layer)) return;
  const Arena::Scope scratch(s.ops.scratch);
  const SequenceRows& sequence = s.sequences.front();
  const Cached cached = read_cache(a, layer, sequence, sequence.first_position, sequence.n_rows, s);
  const Expanded e = expand(a, cached.c, 0, a.n_heads, s);
  const HeadCount all{sequence.n_rows, a.n_heads};
  const int64_t nope = a.shape.qk_nope_head_dim, rope = a.shape.qk_rope_head_dim;
  Rows keys = make_rows(s.ops.scratch, all.rows, a.n_heads * key_width(a));
  copy_heads(s.ops, e.k_nope.view(), heads_of(keys, key_width(a)), all, nope);
  if (k) {
    copy_heads(s.ops, heads_of(l.k_rope, 0), heads_of(keys, key_width(a), nope), all, rope);
    show_only(Point::attn_k, layer, keys, s);
  }
  copy_heads(s.ops, heads_of(l.kv, 0, a.shape.kv_lora_rank), heads_of(keys, key_width(a), nope), all, rope);
  show_only(Point::attn_rot_k, layer, keys, s);
  Rows values = make_rows(s.ops.scratch, all.rows, a.n_heads * a.shape.v_head_dim);
  copy_heads(s.ops, e.v.view(), heads_of(values, a.shape.v_head_dim), all, a.shape.v_head_dim);
  show_only(Point::attn_v, layer, values, s);
}

// y_h = matrix_h x_h for every head.
HeadRows multiply_heads(OpContext& c, const std::vector<Matrix>& matrices, const HeadRows& x) {
  const auto heads = static_cast<int64_t>(matrices.size());
  HeadRows y = make_head_rows(c.scratch, x.all.n, heads, matrices.front().d_out());
  auto* calls = c.scratch.array<LinearCall>(heads);
  for (int64_t h = 0; h < heads; h++)
    calls[h] = {x.head(h), {&matrices[static_cast<size_t>(h)], nullptr, y.head(h)}};
  linear_forward_each(c, std::span(calls, static_cast<size_t>(heads)));
  return y;
}

// What the kernels see of either form: attention over heads of some width.
Attention plain_attention(const LatentAttention& a, int64_t n_heads, int64_t n_kv_heads, int64_t head_dim,
                          int64_t value_dim) {
  Attention plain;
  plain.n_heads = n_heads;
  plain.n_kv_heads = n_kv_heads;
  plain.head_dim = head_dim;
  plain.value_dim = value_dim;
  plain.scale = a.scale;
  return plain;
}

void attend_absorbed(const LatentAttention& a, int layer, Rows q, Rows z, Step& s) {
  Arena& arena = s.ops.scratch;
  const LatentConfig& w = a.shape;
  const HeadCount all{q.n, a.n_heads};
  const HeadRows q_nope = make_head_rows(arena, q.n, a.n_heads, w.qk_nope_head_dim);
  copy_heads(s.ops, heads_of(q, key_width(a)), q_nope.view(), all, w.qk_nope_head_dim);
  const HeadRows absorbed = multiply_heads(s.ops, a.k_up_t, q_nope);
  const int64_t width = cached_width(a);
  Rows queries = make_rows(arena, q.n, a.n_heads * width);
  copy_heads(s.ops, absorbed.view(), heads_of(queries, width), all, w.kv_lora_rank);
  copy_heads(s.ops, heads_of(q, key_width(a), w.qk_nope_head_dim), heads_of(queries, width, w.kv_lora_rank),
             all, w.qk_rope_head_dim);
  Rows sums = make_rows(arena, q.n, a.n_heads * w.kv_lora_rank);
  attend_rows(plain_attention(a, a.n_heads, 1, width, w.kv_lora_rank), layer, queries, sums, s);
  const HeadRows sum_heads = make_head_rows(arena, q.n, a.n_heads, w.kv_lora_rank);
  copy_heads(s.ops, heads_of(sums, w.kv_lora_rank), sum_heads.view(), all, w.kv_lora_rank);
  const HeadRows values = multiply_heads(s.ops, a.v_up, sum_heads);
  copy_heads(s.ops, values.view(), heads_of(z, w.v_head_dim), all, w.v_head_dim);
}

// Expanded keys and values take 2 KiB per head and position: so many heads at a time that they stay below 64 MiB.
int64_t heads_at_once(const LatentAttention& a, int layer, int64_t n_keys, const Step& s) {
  if (watches_scores(layer, s)) return a.n_heads;  // who watches wants all of them together
  constexpr int64_t kBytes = int64_t{64} << 20;
  const int64_t widths = round_up(a.shape.qk_nope_head_dim, 64) + round_up(a.shape.v_head_dim, 64);
  return std::clamp<int64_t>(kBytes / (n_keys * widths * static_cast<int64_t>(sizeof(float))), 1, a.n_heads);
}

// A cache of one layer for the expanded keys and values; the step keeps it for its other layers.
KvCache& expanded_cache(const LatentAttention& a, int64_t heads, int n_keys, Step& s) {
  if (s.expanded == nullptr || s.expanded->shape().n_kv_heads != heads)
    s.expanded = std::make_unique<KvCache>(
        CacheShape{1, heads, static_cast<int>(key_width(a)), static_cast<int>(a.shape.v_head_dim)},
        expanded_attention(s.ops));
  if (s.expanded->length() < n_keys) s.expanded->extend(n_keys - s.expanded->length(), s.ops.product_class);
  return *s.expanded;
}

void fill_expanded(const LatentAttention& a, const Expanded& e, Rows k_rope, int64_t heads, KvCache& cache,
                   Step& s) {
  const int64_t nope = a.shape.qk_nope_head_dim, n = k_rope.n;
  float* keys = s.ops.scratch.floats(key_width(a) * s.ops.pool.size());
  s.ops.pool.parallel_for(heads * n, [&](int64_t begin, int64_t end, int thread) {
    float* key = keys + key_width(a) * thread;
    for (int64_t item = begin; item < end; item++) {
      const int64_t head = item / n, i = item % n;
      std::memcpy(key, e.k_nope.head(head).row(i), static_cast<size_t>(nope) * sizeof(float));
      std::memcpy(key + nope, k_rope.row(i), static_cast<size_t>(k_rope.width) * sizeof(float));
      cache.append(0, head, static_cast<int>(i), key, e.v.head(head).row(i));
    }
  });
}

// While it lives, the step has one sequence, whose keys and values are the expanded ones.
class OverExpanded {
 public:
  OverExpanded(Step& s, SequenceRows sequence) : s_(s), own_{sequence} { s_.sequences.swap(own_); }
  ~OverExpanded() { s_.sequences.swap(own_); }
  OverExpanded(const OverExpanded&) = delete;
  OverExpanded& operator=(const OverExpanded&) = delete;

 private:
  Step& s_;
  std::vector<SequenceRows> own_;
};

void attend_expanded(const LatentAttention& a, int layer, SequenceRows sequence, Rows q, Rows z, Step& s) {
  const Arena::Scope sequence_scratch(s.ops.scratch);
  const Cached cached = read_cache(a, layer, sequence, 0, sequence.n_keys, s);
  const int64_t at_once = heads_at_once(a, layer, sequence.n_keys, s);
  const int64_t k_width = key_width(a), v_width = a.shape.v_head_dim;
  for (int64_t first = 0; first < a.n_heads; first += at_once) {
    const Arena::Scope scratch(s.ops.scratch);
    const int64_t heads = std::min(at_once, a.n_heads - first);
    const Expanded e = expand(a, cached.c, first, heads, s);
    SequenceRows expanded = sequence;
    expanded.cache = &expanded_cache(a, at_once, sequence.n_keys, s);
    fill_expanded(a, e, cached.k_rope, heads, *expanded.cache, s);
    const OverExpanded over(s, expanded);
    attend_rows(plain_attention(a, heads, heads, k_width, v_width), layer,
                {q.data + first * k_width, q.n, heads * k_width, q.stride},
                {z.data + first * v_width, z.n, heads * v_width, z.stride}, s);
  }
}

}  // namespace

Rows attention_forward(const LatentAttention& a, int layer, Rows h, Step& s) {
  Rows out = make_rows(s.ops.scratch, h.n, a.o.weight.d_out());
  const Arena::Scope scratch(s.ops.scratch);
  const Latents l = make_latents(a, layer, h, s);
  append_to_caches(layer, l.kv, s);
  show_keys_and_values(a, layer, l, s);
  const Rows q = s.keep_rows(l.q), y = out.slice(0, q.n);
  if (q.n == 0) return y;
  Rows z = make_rows(s.ops.scratch, q.n, a.n_heads * a.shape.v_head_dim);
  if (s.latent_form == LatentForm::absorbed)
    attend_absorbed(a, layer, q, z, s);
  else
    for (size_t i = 0; i < s.sequences.size(); i++) attend_expanded(a, layer, s.sequences[i], q, z, s);
  s.probe(Point::attn_z, layer, z);
  linear_forward(s.ops, z, {LinearJob{&a.o.weight, a.o.bias, y}});
  return y;
}

}  // namespace liuli
