// Attention whose scores somebody reads and nobody changes: every stage is formed while the kernel's scores lie in the L2
// cache, straight in the listener's memory.
//
// The stages are two thirds of a capture of everything, and memory is what they cost: formed one after another over all
// heads (attention_capture.cpp, for listeners that change them) each number is written and read again from memory up to
// six times. Here a thread takes a few rows of one kv head through all stages.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "model/attention_capture.h"
#include "model/attention_scores.h"

namespace liuli {
namespace {

class RecordedAttention {
 public:
  RecordedAttention(const Attention& a, int layer, Rows q, Rows z, Step& s)
      : a_(a), layer_(layer), q_(q), z_(z), s_(s), sequence_(s.sequences.front()) {
    n_rows_ = sequence_.n_rows;
    n_keys_ = sequence_.n_keys;
    group_ = a.n_heads / a.n_kv_heads;
    rows_per_item_ = group_ <= 4 ? 64 : 32;  // group × 64 × 512 scores are 128 KiB a head
    raw_ = place(Point::attn_scores_raw);
    scores_ = place(Point::attn_scores);
    masked_ = place(Point::attn_attn_scores);
    pattern_ = place(Point::attn_pattern);
    offset_ = raw_ != nullptr || scores_ != nullptr || masked_ != nullptr ? rounding_offset(a, s) : nullptr;
  }

  void run() {
    if (hidden_wanted()) read_keys();
    take_scratch();
    const int64_t blocks = (n_rows_ + rows_per_item_ - 1) / rows_per_item_, n = a_.n_kv_heads * blocks;
    const AttentionScratch kernel_scratch = attention_scratch(a_, s_);
    std::atomic<int64_t> next{0};
    s_.ops.pool.run([&](int thread) {
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;)
        run_item(i % a_.n_kv_heads, (blocks - 1 - i / a_.n_kv_heads) * rows_per_item_,
                 kernel_scratch.of(thread), scratch_[thread]);
    });
    show(Point::attn_scores_raw, raw_);
    show(Point::attn_scores, scores_);
    show(Point::attn_attn_scores, masked_);
    show(Point::attn_pattern, pattern_);
  }

 private:
  // What a thread keeps of the rows at hand.
  struct Scratch {
    float *scores, *max, *sum;  ///< the kernel's: [group][rows][n_keys], [group][rows]
    float *dots, *gemm;         ///< of one head's rows with hidden keys, [rows][n_keys]
  };

  bool hidden_wanted() const { return raw_ != nullptr || scores_ != nullptr; }
  int64_t size() const { return a_.n_heads * n_rows_ * n_keys_; }

  // Where a stage is formed; null: nobody wants it.
  float* place(Point point) const {
    if (!s_.listening(point, layer_)) return nullptr;
    float* storage = s_.listener->storage(s_.place(point, layer_), size());
    return storage != nullptr ? storage : s_.ops.scratch.floats(size());
  }

  void take_scratch() {
    Arena& arena = s_.ops.scratch;
    scratch_ = arena.array<Scratch>(s_.ops.pool.size());
    for (int thread = 0; thread < s_.ops.pool.size(); thread++) {
      Scratch& at = scratch_[thread];
      at.scores = arena.floats(group_ * rows_per_item_ * n_keys_);
      at.max = arena.floats(group_ * rows_per_item_);
      at.sum = arena.floats(group_ * rows_per_item_);
      at.dots = at.gemm = nullptr;
      if (!hidden_wanted()) continue;
      at.dots = arena.floats(rows_per_item_ * n_keys_);
      at.gemm = arena.floats(
          static_cast<int64_t>(s_.ops.kernels.gemm.scratch_floats(rows_per_item_, n_keys_, a_.head_dim)));
    }
  }

  // The keys as they are stored, for the products that the mask spares the kernel: [n_kv_heads][n_keys][head_dim].
  void read_keys() {
    keys_ = s_.ops.scratch.floats(a_.n_kv_heads * n_keys_ * a_.head_dim);
    s_.ops.pool.parallel_for(a_.n_kv_heads, [&](int64_t begin, int64_t end, int) {
      for (int64_t head = begin; head < end; head++) {
        float* keys = keys_ + head * n_keys_ * a_.head_dim;
        for_each_stored(a_, layer_, sequence_, head, [&](int key, const float* k, const float*) {
          std::copy_n(k, a_.head_dim, keys + key * a_.head_dim);
        });
      }
    });
  }

  void run_item(int64_t kv_head, int64_t first, void* kernel_scratch, const Scratch& at) const {
    const int64_t n = std::min(rows_per_item_, n_rows_ - first);
    auto args = attention_arguments(a_, layer_, sequence_, kv_head, q_, z_);
    args.q += first * args.q_row;
    args.z += first * args.z_row;
    args.first_position += static_cast<int>(first);
    args.n_rows = static_cast<int>(n);
    args.scores = at.scores;
    args.row_max = at.max;
    args.row_sum = at.sum;
    attend_in(s_.ops.product_class, cache_kernels(s_))(args, kernel_scratch);
    for (int64_t g = 0; g < group_; g++) {
      const int64_t from = hidden_from(first);
      if (hidden_wanted() && from < n_keys_) hidden_dots(kv_head, args.q + g * args.q_head, n, from, at);
      for (int64_t i = 0; i < n; i++)
        form_row(kv_head * group_ + g, first + i, at.scores + (g * n + i) * n_keys_, at.max[g * n + i],
                 at.sum[g * n + i], at.dots + i * n_keys_);
    }
  }

  VisibleKeys visible(int64_t i) const {
    return visible_keys(a_, sequence_.first_position + static_cast<int>(i), static_cast<int>(n_keys_));
  }
  // Hidden keys lie behind the first row's last one, and with a window before the last row's first one.
  int64_t hidden_from(int64_t first) const { return a_.sliding_window > 0 ? 0 : visible(first).end; }

  // dots[i][key] = q_i · key for n rows and the keys from `from` on.
  void hidden_dots(int64_t kv_head, const float* q, int64_t n, int64_t from, const Scratch& at) const {
    const float* keys = keys_ + (kv_head * n_keys_ + from) * a_.head_dim;
    s_.ops.kernels.gemm.multiply(
        {n, n_keys_ - from, a_.head_dim, q, q_.stride, 1, keys, 1, a_.head_dim, at.dots + from, n_keys_},
        at.gemm);
  }

  // All stages of one row from the kernel's scores of its visible keys, which become the scores of all keys.
  void form_row(int64_t head, int64_t i, float* row, float max, float sum, const float* dots) const {
    const int64_t at = (head * n_rows_ + i) * n_keys_;
    const VisibleKeys seen = visible(i);
    if (pattern_ != nullptr) {
      float* pattern = pattern_ + at;
      std::fill(pattern, pattern + seen.begin, 0.0f);
      cache_kernels(s_).pattern(row + seen.begin, max, sum, seen.end - seen.begin, pattern + seen.begin);
      std::fill(pattern + seen.end, pattern + n_keys_, 0.0f);
    }
    if (hidden_wanted()) {
      fill_hidden(row, dots, 0, seen.begin);
      fill_hidden(row, dots, seen.end, n_keys_);
    }
    if (offset_ != nullptr)
      restore_offset(head, i, row, hidden_wanted() ? VisibleKeys{0, static_cast<int>(n_keys_)} : seen);
    if (raw_ != nullptr) take_scale_off(a_, row, n_keys_, raw_ + at);
    if (scores_ != nullptr) std::copy_n(row, n_keys_, scores_ + at);
    if (masked_ == nullptr) return;
    constexpr float kHidden = -std::numeric_limits<float>::infinity();
    float* masked = masked_ + at;
    std::fill(masked, masked + seen.begin, kHidden);
    std::copy(row + seen.begin, row + seen.end, masked + seen.begin);
    std::fill(masked + seen.end, masked + n_keys_, kHidden);
  }

  void fill_hidden(float* row, const float* dots, int64_t begin, int64_t end) const {
    for (int64_t key = begin; key < end; key++) row[key] = dots[key] * a_.scale;
    for (int64_t key = begin; a_.soft_cap > 0 && key < end; key++) row[key] = soft_capped(a_, row[key]);
  }

  void restore_offset(int64_t head, int64_t i, float* row, VisibleKeys keys) const {
    const float* query = q_.row(sequence_.first_row + i) + head * a_.head_dim;
    const float missing = score_of_offset(a_, offset_, head, query);
    for (int key = keys.begin; key < keys.end; key++) row[key] += missing;
  }

  void show(Point point, float* values) const {
    if (values != nullptr)
      s_.listener->see({s_.place(point, layer_), Rows{values, n_rows_, n_keys_, n_keys_},
                        sequence_.first_position, a_.n_heads, n_rows_ * n_keys_});
  }

  const Attention& a_;
  int layer_;
  Rows q_, z_;
  Step& s_;
  const SequenceRows& sequence_;
  int64_t n_rows_ = 0, n_keys_ = 0, group_ = 1, rows_per_item_ = 64;
  float *raw_, *scores_, *masked_, *pattern_;  ///< [n_heads][n_rows][n_keys]
  const float* offset_;
  float* keys_ = nullptr;
  Scratch* scratch_ = nullptr;
};

}  // namespace

void attend_and_record_scores(const Attention& a, int layer, Rows q, Rows z, Step& s) {
  RecordedAttention(a, layer, q, z, s).run();
}

}  // namespace liuli
