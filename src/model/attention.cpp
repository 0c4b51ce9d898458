#include <algorithm>
#include <atomic>

#include "core/check.h"
#include "model/attention_capture.h"
#include "model/block.h"
#include "model/shown_rows.h"
#include "ops/linear.h"

namespace liuli {
namespace {

struct Projections {
  Rows q, k, v;
};

// Each head by itself, or the whole vector at once, before RoPE.
void normalise_heads(OpContext& c, QkNorm kind, const Norm& norm, Rows x, int64_t head_dim) {
  if (kind == QkNorm::whole) return norm_forward(c, norm, x, x);
  for_each_row(c, x.n, [&](int64_t i) {
    for (float* head = x.row(i); head < x.row(i) + x.width; head += head_dim)
      c.rows.rms_norm(head, norm.gamma, norm.eps, head_dim, head);
  });
}

Projections project(const Attention& a, int layer, Rows h, Step& s) {
  Arena& arena = s.ops.scratch;
  Projections p{make_rows(arena, h.n, a.q.weight.d_out()), make_rows(arena, h.n, a.k.weight.d_out()),
                rows_to_show(s, Point::attn_v, layer, h.n, a.v.weight.d_out())};
  linear_forward(s.ops, h,
                 {LinearJob{&a.q.weight, a.q.bias, p.q}, LinearJob{&a.k.weight, a.k.bias, p.k},
                  LinearJob{&a.v.weight, a.v.bias, p.v}});
  s.probe(Point::attn_q, layer, p.q);
  s.probe(Point::attn_k, layer, p.k);
  s.probe(Point::attn_v, layer, p.v);
  if (a.qk_norm != QkNorm::none) {
    normalise_heads(s.ops, a.qk_norm, a.q_norm, p.q, a.head_dim);
    normalise_heads(s.ops, a.qk_norm, a.k_norm, p.k, a.head_dim);
    s.probe(Point::attn_q_normed, layer, p.q);
    s.probe(Point::attn_k_normed, layer, p.k);
  }
  const RopeAngles angles = shown_angles(a.rope, layer, s);
  rope_forward(s.ops, angles, p.q, a.n_heads, a.head_dim);
  rope_forward(s.ops, angles, p.k, a.n_kv_heads, a.head_dim);
  s.probe(Point::attn_rot_q, layer, p.q);
  s.probe(Point::attn_rot_k, layer, p.k);
  return p;
}

// A piece of attention that one thread does: some rows of one sequence, some query heads of one kv head.
struct WorkItem {
  const SequenceRows* sequence;
  int64_t kv_head, first_row, n_rows;
  int first_head, n_heads;  ///< within the kv head's group
};

constexpr int64_t kRowsPerItem = 64;  // what the kernels hold at once

// Prompt: blocks of 64 rows per kv head. Few rows: whole kv heads, and the left-over heads cut by query head
// so that no thread idles (they then read the same keys, which costs less than waiting).
int64_t list_items(const Attention& a, const Step& s, WorkItem* items) {
  const auto group = static_cast<int>(a.n_heads / a.n_kv_heads);
  int64_t n = 0;
  for (const SequenceRows& sequence : s.sequences) {
    const int64_t blocks = (sequence.n_rows + kRowsPerItem - 1) / kRowsPerItem;
    const int64_t threads = s.ops.pool.size();
    const int64_t whole =
        blocks > 1 || s.sequences.size() > 1 ? a.n_kv_heads : a.n_kv_heads / threads * threads;
    for (int64_t head = 0; head < a.n_kv_heads; head++) {
      const int parts = head < whole ? 1 : std::min<int>(group, static_cast<int>(threads));
      for (int64_t b = 0; b < blocks; b++)
        for (int part = 0; part < parts; part++) {
          const int begin = group * part / parts, end = group * (part + 1) / parts;
          if (items != nullptr)
            items[n] = {&sequence,
                        head,
                        b * kRowsPerItem,
                        std::min(kRowsPerItem, sequence.n_rows - b * kRowsPerItem),
                        begin,
                        end - begin};
          n++;
        }
    }
  }
  return n;
}

// The part of its sequence's arguments that an item covers.
kernels::AttentionArgs item_arguments(const Attention& a, int layer, const WorkItem& item, Rows q, Rows z) {
  auto args = attention_arguments(a, layer, *item.sequence, item.kv_head, q, z);
  args.q += item.first_row * args.q_row + item.first_head * args.q_head;
  args.z += item.first_row * args.z_row + item.first_head * args.z_head;
  args.first_position += static_cast<int>(item.first_row);
  args.n_rows = static_cast<int>(item.n_rows);
  args.group = item.n_heads;
  return args;
}

// Later rows see more keys, so items are taken in turn instead of in equal shares.
void attend_unwatched(const Attention& a, int layer, Rows q, Rows z, Step& s) {
  const Attend attend = attend_in(s.ops.product_class, cache_kernels(s));
  const int64_t n = list_items(a, s, nullptr);
  auto* items = s.ops.scratch.array<WorkItem>(n);
  list_items(a, s, items);
  const AttentionScratch scratch = attention_scratch(a, s);
  std::atomic<int64_t> next{0};
  s.ops.pool.run([&](int thread) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;)
      attend(item_arguments(a, layer, items[n - 1 - i], q, z), scratch.of(thread));
  });
}

}  // namespace

kernels::AttentionArgs attention_arguments(const Attention& a, int layer, const SequenceRows& sequence,
                                           int64_t kv_head, Rows q, Rows z) {
  const int64_t head = kv_head * (a.n_heads / a.n_kv_heads);
  kernels::AttentionArgs args{};
  args.q = q.row(sequence.first_row) + head * a.head_dim;
  args.z = z.row(sequence.first_row) + head * a.value_dim;
  args.q_row = q.stride;
  args.z_row = z.stride;
  args.q_head = a.head_dim;
  args.z_head = a.value_dim;
  args.pages = sequence.cache->pages(layer, kv_head);
  args.first_position = sequence.first_position;
  args.n_rows = static_cast<int>(sequence.n_rows);
  args.group = static_cast<int>(a.n_heads / a.n_kv_heads);
  args.head_dim = static_cast<int>(a.head_dim);
  args.value_dim = static_cast<int>(a.value_dim);
  args.shared_values = sequence.cache->shape().shared_values;
  args.n_keys = sequence.n_keys;
  args.causal = a.causal;
  args.window = a.sliding_window;
  args.scale = a.scale;
  args.soft_cap = a.soft_cap;
  return args;
}

AttentionScratch attention_scratch(const Attention& a, const Step& s) {
  const int group = static_cast<int>(a.n_heads / a.n_kv_heads);
  const auto bytes =
      static_cast<int64_t>(cache_kernels(s).scratch_bytes(s.sequences.front().cache->shape().page(), group));
  const int64_t per_thread = round_up(bytes, 64);
  return {s.ops.scratch.array<uint8_t>(per_thread * s.ops.pool.size()), per_thread};
}

void append_to_caches(const Attention& a, int layer, Rows k, Rows v, Step& s) {
  if (const float* offset = rounding_offset(a, s))
    for_each_row(s.ops, k.n, [&](int64_t i) {
      for (int64_t j = 0; j < k.width; j++) k.row(i)[j] -= offset[j];
    });
  for (const SequenceRows& sequence : s.sequences)
    for_each_row(
        s.ops, sequence.n_rows * a.n_kv_heads,
        [&](int64_t item) {
          const int64_t head = item / sequence.n_rows, i = item % sequence.n_rows;
          const int64_t row = sequence.first_row + i, at = head * a.head_dim;
          sequence.cache->append(layer, head, sequence.first_position + static_cast<int>(i), k.row(row) + at,
                                 v.row(row) + at);
        },
        16);
}

void attend_rows(const Attention& a, int layer, Rows q, Rows z, Step& s) {
  if (watches_scores(layer, s))
    attend_and_show_scores(a, layer, q, z, s);
  else
    attend_unwatched(a, layer, q, z, s);
}

Rows attend(const Attention& a, int layer, Rows q, Step& s) {
  Rows z = rows_to_show(s, Point::attn_z, layer, q.n, a.n_heads * a.value_dim);
  attend_rows(a, layer, q, z, s);
  s.probe(Point::attn_z, layer, z);
  return z;
}

namespace {

Rows queries_with_keys_kept(const Attention& a, int layer, Rows h, Step& s) {
  const Projections p = project(a, layer, h, s);
  append_to_caches(a, layer, p.k, p.v, s);
  return p.q;
}

// Queries of all rows, of which only the changed ones are projected.
Rows known_queries(const Attention& a, int layer, Rows h, KnownQueries& known, Step& s) {
  const auto n = static_cast<int64_t>(known.rows.size());
  Rows changed = make_rows(s.ops.scratch, n, h.width);
  for (int64_t i = 0; i < n; i++)
    std::memcpy(changed.row(i), h.row(known.rows[static_cast<size_t>(i)]),
                static_cast<size_t>(h.width) * sizeof(float));
  const Rows q = queries_with_keys_kept(a, layer, changed, *known.changed);
  for (int64_t i = 0; i < n; i++)
    std::memcpy(known.q.row(known.rows[static_cast<size_t>(i)]), q.row(i),
                static_cast<size_t>(q.width) * sizeof(float));
  return known.q;
}

}  // namespace

Rows attention_forward(const Attention& a, int layer, Rows h, Step& s) {
  Rows out = make_rows(s.ops.scratch, h.n, a.o.weight.d_out());
  const Arena::Scope scratch(s.ops.scratch);
  const Rows all = s.known_queries != nullptr ? known_queries(a, layer, h, *s.known_queries, s)
                                              : queries_with_keys_kept(a, layer, h, s);
  const Rows q = s.keep_rows(all), y = out.slice(0, q.n);
  if (q.n == 0) return y;
  Rows z = attend(a, layer, q, s);
  linear_forward(s.ops, z, {LinearJob{&a.o.weight, a.o.bias, y}});
  return y;
}

}  // namespace liuli
