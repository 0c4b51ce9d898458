// A norm inside a step: the op, and its stages for those who watch.
#include <algorithm>
#include <cmath>

#include "model/block.h"
#include "model/shown_rows.h"

namespace liuli {
namespace {

bool watched(NormSite site, int layer, const Step& s) {
  if (s.listener == nullptr) return false;
  for (int stage = 0; stage < kNormStages; stage++)
    if (s.listening(norm_point(site, static_cast<NormStage>(stage)), layer)) return true;
  return false;
}

// The stages of one norm shown one after another. What a listener changes takes effect: the stages after it are formed
// from the changed one, for the rows that differ; every other row keeps the bits of the fused kernel.
class Stages {
 public:
  Stages(const Norm& norm, NormSite site, int layer, Step& s, int64_t n_rows)
      : norm_(norm), site_(site), layer_(layer), s_(s), changed_(s.ops.scratch.array<bool>(n_rows)) {
    std::fill_n(changed_, n_rows, false);
  }

  // x as it was, y as the kernel left it, stats as it divided.
  void show_all(Rows x, Rows y, NormStats stats) {
    Rows mean{stats.mean, x.n, 1, 1}, sigma{stats.sigma, x.n, 1, 1};
    show(NormStage::mean, mean);
    show_variance(sigma);
    show(NormStage::sigma, sigma);
    if (last_wanted() >= NormStage::centered || any_changed(x.n)) show_rows(x, y, stats);
    show(NormStage::out, y);
  }

 private:
  bool wants(NormStage stage) const { return s_.listening(norm_point(site_, stage), layer_); }
  NormStage last_wanted() const {
    for (int stage = static_cast<int>(NormStage::scaled); stage > 0; stage--)
      if (wants(static_cast<NormStage>(stage))) return static_cast<NormStage>(stage);
    return NormStage::mean;
  }
  bool any_changed(int64_t n) const {
    return std::any_of(changed_, changed_ + n, [](bool c) { return c; });
  }

  void show(NormStage stage, Rows rows) {
    if (!wants(stage)) return;
    if (!s_.changeable(norm_point(site_, stage), layer_))
      return s_.probe(norm_point(site_, stage), layer_, rows);
    const Arena::Scope scratch(s_.ops.scratch);
    Rows before = make_rows(s_.ops.scratch, rows.n, rows.width);
    const auto bytes = static_cast<size_t>(rows.width) * sizeof(float);
    for (int64_t i = 0; i < rows.n; i++) std::memcpy(before.row(i), rows.row(i), bytes);
    s_.probe(norm_point(site_, stage), layer_, rows);
    for (int64_t i = 0; i < rows.n; i++) changed_[i] |= std::memcmp(before.row(i), rows.row(i), bytes) != 0;
  }

  // The kernel works with sigma; the variance is taken from it, and moves it when it is changed.
  void show_variance(Rows sigma) {
    if (!wants(NormStage::var)) return;
    const Arena::Scope scratch(s_.ops.scratch);
    float *var = s_.ops.scratch.floats(sigma.n), *shown = s_.ops.scratch.floats(sigma.n);
    for (int64_t i = 0; i < sigma.n; i++) shown[i] = var[i] = sigma.data[i] * sigma.data[i] - norm_.eps;
    show(NormStage::var, {var, sigma.n, 1, 1});
    for (int64_t i = 0; i < sigma.n; i++)
      if (std::memcmp(&shown[i], &var[i], sizeof(float)) != 0) sigma.data[i] = std::sqrt(var[i] + norm_.eps);
  }

  void show_rows(Rows x, Rows y, NormStats stats) {
    const Arena::Scope scratch(s_.ops.scratch);
    if (any_changeable() || any_changed(x.n))
      show_one_by_one(x, y, stats);
    else
      show_together(x, stats);
  }

  bool any_changeable() const {
    for (const NormStage stage : {NormStage::centered, NormStage::normalized, NormStage::scaled})
      if (s_.changeable(norm_point(site_, stage), layer_)) return true;
    return false;
  }

  // All three in one walk over x, where the listener wants them.
  void show_together(Rows x, NormStats stats) {
    const auto rows_of = [&](NormStage stage) {
      return rows_to_show(s_, norm_point(site_, stage), layer_, x.n, x.width);
    };
    const Rows centered = rows_of(NormStage::centered), normalized = rows_of(NormStage::normalized),
               scaled = rows_of(NormStage::scaled);
    for_each_row(s_.ops, x.n, [&](int64_t i) {
      form_stages(x.row(i), x.width, stats.mean[i], stats.sigma[i], centered.row(i), normalized.row(i),
                  scaled.row(i));
    });
    show(NormStage::centered, centered);
    show(NormStage::normalized, normalized);
    show(NormStage::scaled, scaled);
  }

  void form_stages(const float* __restrict x, int64_t n, float mean, float sigma, float* __restrict centered,
                   float* __restrict normalized, float* __restrict scaled) const {
    const float* gamma = norm_.gamma;
    for (int64_t j = 0; j < n; j++) centered[j] = x[j] - mean;
    for (int64_t j = 0; j < n; j++) normalized[j] = centered[j] / sigma;
    if (gamma == nullptr)
      std::copy_n(normalized, n, scaled);
    else
      for (int64_t j = 0; j < n; j++) scaled[j] = normalized[j] * gamma[j];
  }

  // Each from the one before, which a listener may have changed.
  void show_one_by_one(Rows x, Rows y, NormStats stats) {
    Rows work = make_rows(s_.ops.scratch, x.n, x.width);
    auto each = [&](auto f) {
      for_each_row(s_.ops, x.n, [&](int64_t i) {
        for (int64_t j = 0; j < x.width; j++) work.row(i)[j] = f(i, j, work.row(i)[j]);
      });
    };
    each([&](int64_t i, int64_t j, float) { return x.row(i)[j] - stats.mean[i]; });
    show(NormStage::centered, work);
    each([&](int64_t i, int64_t, float v) { return v / stats.sigma[i]; });
    show(NormStage::normalized, work);
    each([&](int64_t, int64_t j, float v) { return v * (norm_.gamma != nullptr ? norm_.gamma[j] : 1.0f); });
    show(NormStage::scaled, work);
    for (int64_t i = 0; i < x.n; i++)
      for (int64_t j = 0; changed_[i] && j < x.width; j++)
        y.row(i)[j] = work.row(i)[j] + (norm_.beta != nullptr ? norm_.beta[j] : 0.0f);
  }

  const Norm& norm_;
  NormSite site_;
  int layer_;
  Step& s_;
  bool* changed_;  ///< rows that a listener changed
};

void apply(const Norm& norm, NormSite site, int layer, Rows x, Rows y, Step& s) {
  if (!watched(site, layer, s)) return norm_forward(s.ops, norm, x, y);
  Arena& arena = s.ops.scratch;
  NormStats stats{arena.floats(x.n), arena.floats(x.n)};
  Rows before = x;
  if (y.data == x.data) {  // the stages need what went in
    before = make_rows(arena, x.n, x.width);
    for_each_row(s.ops, x.n, [&](int64_t i) {
      std::memcpy(before.row(i), x.row(i), static_cast<size_t>(x.width) * sizeof(float));
    });
  }
  norm_forward(s.ops, norm, x, y, stats);
  Stages(norm, site, layer, s, x.n).show_all(before, y, stats);
}

}  // namespace

Rows normalized(const Norm& norm, NormSite site, int layer, Rows x, Step& s) {
  if (norm.kind == NormKind::none) return x;
  Rows y = rows_to_show(s, norm_point(site, NormStage::out), layer, x.n, x.width);
  apply(norm, site, layer, x, y, s);
  return y;
}

void norm_in_place(const Norm& norm, NormSite site, int layer, Rows x, Step& s) {
  if (norm.kind == NormKind::none) return;
  const Arena::Scope scratch(s.ops.scratch);
  apply(norm, site, layer, x, x, s);
}

void post_norm(const Norm& norm, NormSite site, Point shown_as, int layer, Rows x, Step& s) {
  if (norm.kind == NormKind::none) return;
  norm_in_place(norm, site, layer, x, s);
  s.probe(shown_as, layer, x);
}

}  // namespace liuli
