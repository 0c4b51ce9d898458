#include "model/attention_capture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "core/arena.h"
#include "core/check.h"
#include "liuli/error.h"
#include "model/attention_scores.h"

namespace liuli {
namespace {

constexpr Point kScorePoints[] = {Point::attn_scores_raw, Point::attn_scores, Point::attn_attn_scores,
                                  Point::attn_pattern};

// One sequence's attention with somebody watching: the kernel's own scores become the named stages, in order. What a
// listener changes takes effect: from there on that row (a head's query) is formed anew by the plain formulas and its z
// from the stored values; every other row keeps the kernel's bits.
class WatchedAttention {
 public:
  WatchedAttention(const Attention& a, int layer, Rows q, Rows z, Step& s)
      : a_(a), layer_(layer), q_(q), z_(z), s_(s), sequence_(s.sequences.front()) {
    n_rows_ = sequence_.n_rows;
    n_keys_ = sequence_.n_keys;
    group_ = a.n_heads / a.n_kv_heads;
    scores_ = new_scores();
    dots_ = s.ops.scratch.array<HiddenDots>(s.ops.pool.size());
    max_ = s.ops.scratch.floats(a.n_heads * n_rows_);
    sum_ = s.ops.scratch.floats(a.n_heads * n_rows_);
    changed_ = s.ops.scratch.array<bool>(a.n_heads * n_rows_);
    std::fill_n(changed_, a.n_heads * n_rows_, false);
  }

  void run() {
    run_kernel();
    float* full = scores_;
    if (before_mask_wanted() || wants(Point::attn_attn_scores)) full = show_scores();
    if (wants(Point::attn_attn_scores) || any_changed()) full = show_masked(full);
    if (wants(Point::attn_pattern) || any_changed()) show_pattern(full);
  }

 private:
  bool wants(Point point) const { return s_.listening(point, layer_); }
  bool any_changed() const {
    return std::any_of(changed_, changed_ + a_.n_heads * n_rows_, [](bool c) { return c; });
  }
  bool before_mask_wanted() const { return wants(Point::attn_scores_raw) || wants(Point::attn_scores); }
  int64_t size() const { return a_.n_heads * n_rows_ * n_keys_; }
  float* new_scores() const { return s_.ops.scratch.floats(size()); }
  template <class T>
  T* row(T* values, int64_t head, int64_t i) const {
    return values + (head * n_rows_ + i) * n_keys_;
  }
  VisibleKeys visible(int64_t i) const {
    return visible_keys(a_, sequence_.first_position + static_cast<int>(i), static_cast<int>(n_keys_));
  }
  // f(head, row) for all of them, heads in parallel.
  template <class F>
  void each_row(F&& f) const {
    s_.ops.pool.parallel_for(a_.n_heads, [&](int64_t begin, int64_t end, int) {
      for (int64_t head = begin; head < end; head++)
        for (int64_t i = 0; i < n_rows_; i++) f(head, i);
    });
  }
  void run_kernel() {
    const AttentionScratch scratch = attention_scratch(a_, s_);
    s_.ops.pool.parallel_for(a_.n_kv_heads, [&](int64_t begin, int64_t end, int thread) {
      for (int64_t head = begin; head < end; head++) {
        auto args = attention_arguments(a_, layer_, sequence_, head, q_, z_);
        args.scores = row(scores_, head * group_, 0);
        args.row_max = max_ + head * group_ * n_rows_;
        args.row_sum = sum_ + head * group_ * n_rows_;
        attend_in(s_.ops.product_class, cache_kernels(s_))(args, scratch.of(thread));
      }
    });
  }

  // Shows values and notes the rows that come back changed. (For a listener that only reads, keeping and comparing took
  // half as long as all the rest of the capture.)
  void show(Point point, float* values) {
    if (!wants(point)) return;
    const ProbedValue value{s_.place(point, layer_), Rows{values, n_rows_, n_keys_, n_keys_},
                            sequence_.first_position, a_.n_heads, n_rows_ * n_keys_};
    if (!s_.changeable(point, layer_)) return s_.listener->see(value);
    const Arena::Scope scratch(s_.ops.scratch);
    float* before = new_scores();
    std::copy_n(values, size(), before);
    s_.listener->see(value);
    note_changes(point, before, values);
  }

  void note_changes(Point point, const float* before, const float* values) {
    bool any = false, seen = false;
    for (int64_t at = 0; at < a_.n_heads * n_rows_; at++) {
      const auto differs = [&](int begin, int end) {
        const int64_t from = at * n_keys_ + begin;
        return std::memcmp(before + from, values + from, static_cast<size_t>(end - begin) * sizeof(float)) !=
               0;
      };
      if (!differs(0, static_cast<int>(n_keys_))) continue;
      const VisibleKeys keys = visible(at % n_rows_);
      changed_[at] = any = true;
      seen |= differs(keys.begin, keys.end);
    }
    const bool before_mask = point == Point::attn_scores_raw || point == Point::attn_scores;
    if (before_mask && any && !seen)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: only scores that the mask hides were changed: they go nowhere",
                              s_.place(point, layer_).name()));
  }

  // Raw and scaled scores of every key, also of those the mask hides.
  float* show_scores() {
    float* full = new_scores();
    each_row([&](int64_t head, int64_t i) {
      const VisibleKeys seen = visible(i);
      std::copy(row(scores_, head, i) + seen.begin, row(scores_, head, i) + seen.end,
                row(full, head, i) + seen.begin);
    });
    if (before_mask_wanted()) fill_hidden(full);
    if (const float* offset = rounding_offset(a_, s_)) restore_offset(offset, full);
    if (wants(Point::attn_scores_raw)) {
      float* raw = new_scores();
      each_row([&](int64_t head, int64_t i) {
        take_scale_off(a_, row(full, head, i), n_keys_, row(raw, head, i));
      });
      show(Point::attn_scores_raw, raw);
      each_row([&](int64_t head, int64_t i) {
        for (int64_t key = 0; changed_[head * n_rows_ + i] && key < n_keys_; key++)
          row(full, head, i)[key] = soft_capped(a_, row(raw, head, i)[key] * a_.scale);
      });
    }
    show(Point::attn_scores, full);
    return full;
  }

  // What one thread needs to form scores of hidden keys: a head's keys, and their products with some queries.
  struct HiddenDots {
    float *keys, *dots, *gemm;
  };
  static constexpr int64_t kRowsAtOnce = 64;

  // The kernel does not form scores of hidden keys; "before the mask" wants them. (One by one in double they took longer
  // than all the rest of a full capture; as a product they do not show.)
  void fill_hidden(float* full) {
    const Arena::Scope scratch(s_.ops.scratch);
    const int64_t gemm =
        static_cast<int64_t>(s_.ops.kernels.gemm.scratch_floats(kRowsAtOnce, n_keys_, a_.head_dim));
    for (int thread = 0; thread < s_.ops.pool.size(); thread++)
      dots_[thread] = {s_.ops.scratch.floats(n_keys_ * a_.head_dim),
                       s_.ops.scratch.floats(kRowsAtOnce * n_keys_), s_.ops.scratch.floats(gemm)};
    s_.ops.pool.parallel_for(a_.n_kv_heads, [&](int64_t begin, int64_t end, int thread) {
      for (int64_t kv_head = begin; kv_head < end; kv_head++) {
        for_each_stored(a_, layer_, sequence_, kv_head, [&](int key, const float* k, const float*) {
          std::copy_n(k, a_.head_dim, dots_[thread].keys + key * a_.head_dim);
        });
        for (int64_t head = kv_head * group_; head < (kv_head + 1) * group_; head++)
          for (int64_t i = 0; i < n_rows_; i += kRowsAtOnce)
            fill_hidden_rows(head, i, std::min(kRowsAtOnce, n_rows_ - i), dots_[thread], full);
      }
    });
  }

  // Hidden keys lie behind the first row's last one, and with a window before the last row's first one.
  void fill_hidden_rows(int64_t head, int64_t first, int64_t n, const HiddenDots& at, float* full) const {
    const int64_t from = a_.sliding_window > 0 ? 0 : visible(first).end;
    if (from == n_keys_) return;
    query_dots(head, first, n, from, at);
    for (int64_t i = 0; i < n; i++) {
      const VisibleKeys seen = visible(first + i);
      float* scores = row(full, head, first + i);
      const float* dots = at.dots + i * n_keys_;
      for (int64_t key = from; key < seen.begin; key++) scores[key] = soft_capped(a_, dots[key] * a_.scale);
      for (int64_t key = seen.end; key < n_keys_; key++) scores[key] = soft_capped(a_, dots[key] * a_.scale);
    }
  }

  // dots[i][key] = q_(first + i) · key for the keys from `from` on.
  void query_dots(int64_t head, int64_t first, int64_t n, int64_t from, const HiddenDots& at) const {
    const float* keys = at.keys + from * a_.head_dim;
    if (s_.ops.product_class == ProductClass::exact) {
      for (int64_t i = 0; i < n; i++)
        for (int64_t key = from; key < n_keys_; key++)
          at.dots[i * n_keys_ + key] =
              static_cast<float>(query_dot(a_, query_of(head, first + i), at.keys + key * a_.head_dim));
      return;
    }
    s_.ops.kernels.gemm.multiply(
        {n, n_keys_ - from, a_.head_dim, q_.row(sequence_.first_row + first) + head * a_.head_dim, q_.stride,
         1, keys, 1, a_.head_dim, at.dots + from, n_keys_},
        at.gemm);
  }

  const float* query_of(int64_t head, int64_t i) const {
    return q_.row(sequence_.first_row + i) + head * a_.head_dim;
  }

  void restore_offset(const float* offset, float* full) const {
    each_row([&](int64_t head, int64_t i) {
      const float missing = score_of_offset(a_, offset, head, query_of(head, i));
      for (int64_t key = 0; key < n_keys_; key++) row(full, head, i)[key] += missing;
    });
  }

  float* show_masked(const float* full) {
    float* masked = new_scores();
    each_row([&](int64_t head, int64_t i) {
      const VisibleKeys seen = visible(i);
      constexpr float kHidden = -std::numeric_limits<float>::infinity();
      std::copy(row(full, head, i) + seen.begin, row(full, head, i) + seen.end,
                row(masked, head, i) + seen.begin);
      std::fill(row(masked, head, i), row(masked, head, i) + seen.begin, kHidden);
      std::fill(row(masked, head, i) + seen.end, row(masked, head, i) + n_keys_, kHidden);
    });
    show(Point::attn_attn_scores, masked);
    return masked;
  }

  void show_pattern(float* masked) {
    float* pattern = new_scores();
    each_row([&](int64_t head, int64_t i) {
      const int64_t at = head * n_rows_ + i;
      if (changed_[at]) return s_.ops.rows.softmax(row(masked, head, i), n_keys_, row(pattern, head, i));
      const VisibleKeys seen = visible(i);
      std::fill(row(pattern, head, i), row(pattern, head, i) + seen.begin, 0.0f);
      std::fill(row(pattern, head, i) + seen.end, row(pattern, head, i) + n_keys_, 0.0f);
      cache_kernels(s_).pattern(row(scores_, head, i) + seen.begin, max_[at], sum_[at], seen.end - seen.begin,
                                row(pattern, head, i) + seen.begin);
    });
    show(Point::attn_pattern, pattern);
    if (any_changed()) form_z(pattern);
  }

  // z = Σ pattern · v for the changed rows, keys ascending.
  void form_z(float* pattern) {
    s_.ops.pool.parallel_for(a_.n_kv_heads, [&](int64_t begin, int64_t end, int) {
      for (int64_t kv_head = begin; kv_head < end; kv_head++)
        for_each_stored(a_, layer_, sequence_, kv_head, [&](int key, const float*, const float* v) {
          for (int64_t head = kv_head * group_; head < (kv_head + 1) * group_; head++)
            for (int64_t i = 0; i < n_rows_; i++) {
              if (!changed_[head * n_rows_ + i]) continue;
              float* z = z_.row(sequence_.first_row + i) + head * a_.value_dim;
              if (key == 0) std::fill_n(z, a_.value_dim, 0.0f);
              const float p = row(pattern, head, i)[key];
              for (int64_t d = 0; d < a_.value_dim; d++) z[d] += p * v[d];
            }
        });
    });
  }

  const Attention& a_;
  int layer_;
  Rows q_, z_;
  Step& s_;
  const SequenceRows& sequence_;
  int64_t n_rows_ = 0, n_keys_ = 0, group_ = 1;
  float *scores_, *max_, *sum_;  ///< what the kernel left: scores [n_heads][n_rows][n_keys], maxima and sums
  HiddenDots* dots_;             ///< per thread
  bool* changed_;                ///< [n_heads][n_rows]
};

}  // namespace

const float* rounding_offset(const Attention& a, const Step& s) {
  const bool rounds =
      s.ops.product_class == ProductClass::prompt || s.ops.product_class == ProductClass::decode;
  return rounds ? a.key_offset : nullptr;
}

const kernels::AttentionKernels& cache_kernels(const Step& s) { return s.sequences.front().cache->kernels(); }

const kernels::AttentionKernels& expanded_attention(const OpContext& ops) {
  const auto& table = ops.kernels;
  const bool codes = &ops.attention == &table.attention_q8_0 || &ops.attention == &table.attention_q4_0;
  return codes ? table.attention : ops.attention;
}

Attend attend_in(ProductClass product_class, const kernels::AttentionKernels& kernels) {
  const bool generated = product_class == ProductClass::decode && kernels.attend_generated != nullptr;
  return generated ? kernels.attend_generated : kernels.attend;
}

bool watches_scores(int layer, const Step& s) {
  return std::any_of(std::begin(kScorePoints), std::end(kScorePoints),
                     [&](Point point) { return s.listening(point, layer); });
}

void attend_and_show_scores(const Attention& a, int layer, Rows q, Rows z, Step& s) {
  LIULI_CHECK(s.sequences.size() == 1);
  const bool changeable = std::any_of(std::begin(kScorePoints), std::end(kScorePoints),
                                      [&](Point point) { return s.changeable(point, layer); });
  if (changeable || s.ops.product_class == ProductClass::exact)
    WatchedAttention(a, layer, q, z, s).run();
  else
    attend_and_record_scores(a, layer, q, z, s);
}

}  // namespace liuli
