#include "model/attention_capture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/check.h"

namespace liuli {
namespace {

constexpr Point kScorePoints[] = {Point::attn_scores_raw, Point::attn_scores, Point::attn_attn_scores,
                                  Point::attn_pattern};

struct Visible {
  int begin, end;
};
Visible visible_keys(const Attention& a, int position, int n_keys) {
  const int end = a.causal ? std::min(position + 1, n_keys) : n_keys;
  return {a.sliding_window > 0 ? std::max(0, position - a.sliding_window + 1) : 0, end};
}

// What one sequence's kernel calls left behind: scores [n_heads][n_rows][n_keys], maxima and sums
// [n_heads][n_rows].
struct Scores {
  int64_t n_rows, n_keys;
  float *scores, *max, *sum;
  float* row(int64_t head, int64_t i) const { return scores + (head * n_rows + i) * n_keys; }
};

// Scores of keys that the mask hides: the kernel does not form them, "before the mask" wants them.
void fill_hidden(const Attention& a, int layer, Rows q, const SequenceRows& sequence, const Scores& out) {
  const int64_t group = a.n_heads / a.n_kv_heads;
  std::vector<float> k(static_cast<size_t>(a.head_dim)), v(k.size());
  for (int64_t kv_head = 0; kv_head < a.n_kv_heads; kv_head++)
    for (int key = 0; key < out.n_keys; key++) {
      const uint8_t* page = sequence.cache->pages(layer, kv_head)[key / kernels::kPagePositions];
      sequence.cache->kernels().read(page, key % kernels::kPagePositions, k.data(), v.data(),
                                     static_cast<int>(a.head_dim), static_cast<int>(a.head_dim));
      for (int64_t i = 0; i < out.n_rows; i++) {
        const Visible seen =
            visible_keys(a, sequence.first_position + static_cast<int>(i), static_cast<int>(out.n_keys));
        if (key >= seen.begin && key < seen.end) continue;
        for (int64_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
          const float* query = q.row(sequence.first_row + i) + head * a.head_dim;
          double dot = 0;
          for (int64_t d = 0; d < a.head_dim; d++)
            dot += double{query[d]} * double{k[static_cast<size_t>(d)]};
          const double scaled = dot * double{a.scale};
          out.row(head, i)[key] = static_cast<float>(
              a.soft_cap > 0 ? double{a.soft_cap} * std::tanh(scaled / double{a.soft_cap}) : scaled);
        }
      }
    }
}

// Scores of the keys without their offset lack q·offset, which softmax does not need but a reader expects.
void restore_offset(const Attention& a, Rows q, const SequenceRows& sequence, const float* offset,
                    const Scores& out) {
  const int64_t group = a.n_heads / a.n_kv_heads;
  for (int64_t head = 0; head < a.n_heads; head++)
    for (int64_t i = 0; i < out.n_rows; i++) {
      const float* query = q.row(sequence.first_row + i) + head * a.head_dim;
      double dot = 0;
      for (int64_t d = 0; d < a.head_dim; d++)
        dot += double{query[d]} * double{offset[head / group * a.head_dim + d]};
      const auto missing = static_cast<float>(dot * double{a.scale});
      for (int64_t key = 0; key < out.n_keys; key++) out.row(head, i)[key] += missing;
    }
}

void show(Point point, const Attention& a, int layer, const SequenceRows& sequence, const Scores& values,
          Step& s) {
  if (!s.listening(point, layer)) return;
  s.listener->see({s.place(point, layer), Rows{values.scores, values.n_rows, values.n_keys, values.n_keys},
                   sequence.first_position, a.n_heads, values.n_rows * values.n_keys});
}

template <class F>
void each_row(const Attention& a, const Scores& values, F&& f) {
  for (int64_t head = 0; head < a.n_heads; head++)
    for (int64_t i = 0; i < values.n_rows; i++) f(head, i);
}

Visible visible_keys(const Attention& a, const SequenceRows& sequence, int64_t i, const Scores& values) {
  return visible_keys(a, sequence.first_position + static_cast<int>(i), static_cast<int>(values.n_keys));
}

Scores copy_of(const Scores& values, const Attention& a, Step& s) {
  Scores copy = values;
  copy.scores = s.ops.scratch.floats(a.n_heads * values.n_rows * values.n_keys);
  return copy;
}

void show_pattern(const Attention& a, int layer, const SequenceRows& sequence, const Scores& values,
                  Step& s) {
  if (!s.listening(Point::attn_pattern, layer)) return;
  Scores pattern = copy_of(values, a, s);
  each_row(a, values, [&](int64_t head, int64_t i) {
    const Visible seen = visible_keys(a, sequence, i, values);
    const int64_t at = head * values.n_rows + i;
    std::fill_n(pattern.row(head, i), values.n_keys, 0.0f);
    s.ops.attention.pattern(values.row(head, i) + seen.begin, values.max[at], values.sum[at],
                            seen.end - seen.begin, pattern.row(head, i) + seen.begin);
  });
  show(Point::attn_pattern, a, layer, sequence, pattern, s);
}

void show_scores(const Attention& a, int layer, const SequenceRows& sequence, const Scores& values, Step& s) {
  show(Point::attn_scores, a, layer, sequence, values, s);
  Scores work = copy_of(values, a, s);
  each_row(a, values, [&](int64_t head, int64_t i) {
    for (int64_t key = 0; key < values.n_keys; key++) {
      const float score = values.row(head, i)[key];
      work.row(head, i)[key] =
          (a.soft_cap > 0 ? a.soft_cap * std::atanh(score / a.soft_cap) : score) / a.scale;
    }
  });
  show(Point::attn_scores_raw, a, layer, sequence, work, s);
  each_row(a, values, [&](int64_t head, int64_t i) {
    const Visible seen = visible_keys(a, sequence, i, values);
    std::fill_n(work.row(head, i), values.n_keys, -std::numeric_limits<float>::infinity());
    std::copy(values.row(head, i) + seen.begin, values.row(head, i) + seen.end,
              work.row(head, i) + seen.begin);
  });
  show(Point::attn_attn_scores, a, layer, sequence, work, s);
}

}  // namespace

const float* rounding_offset(const Attention& a, const Step& s) {
  const bool bf16 =
      s.ops.product_class == ProductClass::prompt || s.ops.product_class == ProductClass::decode;
  return bf16 ? a.key_offset : nullptr;
}

bool watches_scores(int layer, const Step& s) {
  return std::any_of(std::begin(kScorePoints), std::end(kScorePoints),
                     [&](Point point) { return s.listening(point, layer); });
}

void attend_and_show_scores(const Attention& a, int layer, Rows q, Rows z, Step& s) {
  LIULI_CHECK(s.sequences.size() == 1);
  const SequenceRows& sequence = s.sequences.front();
  Arena& arena = s.ops.scratch;
  const int64_t n_keys = sequence.n_keys, group = a.n_heads / a.n_kv_heads;
  Scores values{sequence.n_rows, n_keys, arena.floats(a.n_heads * sequence.n_rows * n_keys),
                arena.floats(a.n_heads * sequence.n_rows), arena.floats(a.n_heads * sequence.n_rows)};
  const AttentionScratch scratch = attention_scratch(a, s);
  s.ops.pool.parallel_for(a.n_kv_heads, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t head = begin; head < end; head++) {
      auto args = attention_arguments(a, layer, sequence, head, q, z);
      args.scores = values.row(head * group, 0);
      args.row_max = values.max + head * group * sequence.n_rows;
      args.row_sum = values.sum + head * group * sequence.n_rows;
      s.ops.attention.attend(args, scratch.of(thread));
    }
  });
  show_pattern(a, layer, sequence, values, s);
  fill_hidden(a, layer, q, sequence, values);
  if (const float* offset = rounding_offset(a, s)) restore_offset(a, q, sequence, offset, values);
  show_scores(a, layer, sequence, values, s);
}

}  // namespace liuli
