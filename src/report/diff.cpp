#include "report/diff.h"

#include <algorithm>
#include <memory>

#include "core/check.h"
#include "report/logit_diff.h"
#include "report/point_diff.h"
#include "trace/hooks.h"
#include "trace/recorder.h"

namespace liuli {
namespace {

// Bounds of what one pass keeps. Larger passes are faster per token; beyond 128 positions little is gained, and the
// exact class would leave Ctrl-C unheard for seconds.
constexpr int64_t kLogitBytes = int64_t{64} << 20, kTraceBytes = int64_t{256} << 20;
constexpr int64_t kLongestChunk = 128;

// Healthy runs of three models of 30, 18 and 24 layers against the exact class reach 1.6e-2 at some point in the
// prompt class and 1.1e-2 in the decode class (their caches are bf16); f32 stays below 1e-4.
constexpr double kRoundedThreshold = 3e-2, kPreciseThreshold = 1e-3;

bool rounds(ProductClass c) { return c == ProductClass::prompt || c == ProductClass::decode; }

class Comparison {
 public:
  Comparison(ComparedRun run, ComparedRun reference, std::span<const int> ids, const DiffSettings& settings)
      : run_(run),
        reference_(reference),
        ids_(ids),
        settings_(settings),
        hooks_(run.model.config, settings.hooks),
        totals_(settings.worst) {
    prepare_points();
  }

  DiffReport report() {
    const auto n = static_cast<int64_t>(ids_.size());
    report_.positions = n;
    report_.context = settings_.context;
    for (int64_t first = 0; first < n; first += settings_.context) {
      window(first, std::min<int64_t>(settings_.context, n - first));
      report_.windows++;
    }
    hooks_.require_all_fired();
    totals_.finish(report_);
    finish_points();
    return std::move(report_);
  }

 private:
  void prepare_points();
  void finish_points();
  void window(int64_t first, int64_t n);
  int64_t chunk_length(bool traced) const;
  void keep(Rows logits);
  void compare(int64_t first, std::span<const int> tokens, bool goes_on, Rows logits);

  ComparedRun run_, reference_;
  std::span<const int> ids_;
  const DiffSettings& settings_;
  HookProbe hooks_;
  LogitTotals totals_;
  std::unique_ptr<PointComparison> points_;  // null when only logits are compared
  int64_t trace_bytes_ = 0;                  // of one position
  std::vector<float> kept_;                  // the other run's logits of this chunk, [n][vocab_size]
  DiffReport report_;
};

void Comparison::prepare_points() {
  const bool rounded = rounds(run_.classes.prompt) || rounds(reference_.classes.prompt);
  report_.threshold = settings_.threshold > 0 ? settings_.threshold
                      : rounded               ? kRoundedThreshold
                                              : kPreciseThreshold;
  const int64_t window = std::min<int64_t>(settings_.context, static_cast<int64_t>(ids_.size()));
  const int64_t traced = std::min<int64_t>(settings_.trace_positions, window);
  report_.not_traced = traced == 0 ? "no positions to trace were asked for"
                                   : shape_difference(run_.model.config, reference_.model.config);
  if (!report_.not_traced.empty()) return;
  report_.traced_positions = traced;
  points_ = std::make_unique<PointComparison>(run_.model.config, reference_.model.config);
  trace_bytes_ = capture_bytes(run_.model.config, points_->places(), {traced, 0}) / traced;
}

int64_t Comparison::chunk_length(bool traced) const {
  if (settings_.chunk > 0) return settings_.chunk;
  const int64_t row_bytes = reference_.model.config.vocab_size * static_cast<int64_t>(sizeof(float));
  int64_t length = std::min(kLongestChunk, kLogitBytes / row_bytes);
  if (traced) length = std::min(length, kTraceBytes / std::max<int64_t>(1, trace_bytes_));
  return std::max<int64_t>(1, length);
}

// Runs tokens [first, first + n) of the text from nothing.
void Comparison::window(int64_t first, int64_t n) {
  Sequence sequence(run_.model, run_.classes), reference(reference_.model, reference_.classes);
  const int64_t traced = first == 0 ? report_.traced_positions : 0;
  for (int64_t at = 0; at < n;) {
    const bool tracing = at < traced;
    const int64_t length = std::min(chunk_length(tracing), (tracing ? traced : n) - at);
    const auto tokens = ids_.subspan(static_cast<size_t>(first + at), static_cast<size_t>(length));
    FeedOptions options;
    options.chunk = static_cast<int>(length);
    options.every_logit = true;
    if (tracing) points_->next_chunk();
    Probe* watcher = tracing ? &points_->other() : nullptr;
    hooks_.listen_behind(watcher);
    options.listener = settings_.hooks.empty() ? watcher : &hooks_;
    keep(sequence.feed(run_.runner, tokens, options));
    options.listener = tracing ? points_.get() : nullptr;
    const Rows logits = reference.feed(reference_.runner, tokens, options);
    at += length;
    compare(first + at - length, tokens, at < n, logits);
    if (settings_.on_progress) settings_.on_progress(first + at, report_.positions);
  }
}

void Comparison::keep(Rows logits) {
  kept_.resize(static_cast<size_t>(logits.n * logits.width));
  for (int64_t i = 0; i < logits.n; i++)
    std::copy_n(logits.row(i), logits.width, kept_.data() + i * logits.width);
}

// goes_on: the token after the last of these belongs to the same window.
void Comparison::compare(int64_t first, std::span<const int> tokens, bool goes_on, Rows logits) {
  const auto width = static_cast<size_t>(logits.width);
  LIULI_CHECK(logits.n == static_cast<int64_t>(tokens.size()) && kept_.size() == tokens.size() * width);
  std::vector<LogitDiff> diffs(tokens.size());
  const auto next = [&](size_t i) {
    if (i + 1 < tokens.size()) return tokens[i + 1];
    return goes_on ? ids_[static_cast<size_t>(first) + i + 1] : -1;
  };
  reference_.runner.pool.parallel_for(logits.n, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i++) {
      const auto row = static_cast<size_t>(i);
      diffs[row] = compare_logits({kept_.data() + row * width, width}, {logits.row(i), width}, next(row));
    }
  });
  for (size_t i = 0; i < diffs.size(); i++)
    totals_.add(first + static_cast<int64_t>(i), tokens[i], next(i), diffs[i]);
}

void Comparison::finish_points() {
  if (points_ == nullptr) return;
  report_.points = points_->take();
  for (size_t i = 0; i < report_.points.size() && !report_.first_divergence; i++)
    if (may_diverge(points_->places()[i].point) && report_.points[i].error > report_.threshold)
      report_.first_divergence = i;
}

}  // namespace

DiffReport compare_runs(ComparedRun run, ComparedRun reference, std::span<const int> ids,
                        const DiffSettings& settings) {
  return Comparison(run, reference, ids, settings).report();
}

}  // namespace liuli
