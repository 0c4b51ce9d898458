// A norm inside a step: the op, and its stages for those who watch.
#include "core/check.h"
#include "model/block.h"

namespace liuli {
namespace {

bool watched(NormSite site, int layer, const Step& s) {
  if (s.listener == nullptr) return false;
  for (int stage = 0; stage < kNormStages; stage++)
    if (s.listening(norm_point(site, static_cast<NormStage>(stage)), layer)) return true;
  return false;
}

Rows column(Arena& arena, int64_t n) { return {arena.floats(n), n, 1, 1}; }

// Recomputes the stages from the row and the statistics the kernel divided by; the result itself is not
// touched.
void show_stages(const Norm& norm, NormSite site, int layer, Rows x, Rows y, NormStats stats, Step& s) {
  auto stage = [&](NormStage which, Rows rows) { s.probe(norm_point(site, which), layer, rows); };
  Rows mean{stats.mean, x.n, 1, 1}, sigma{stats.sigma, x.n, 1, 1}, var = column(s.ops.scratch, x.n);
  Rows work = make_rows(s.ops.scratch, x.n, x.width);
  for (int64_t i = 0; i < x.n; i++) var.data[i] = sigma.data[i] * sigma.data[i] - norm.eps;
  stage(NormStage::mean, mean);
  stage(NormStage::var, var);
  stage(NormStage::sigma, sigma);
  auto each = [&](auto f) {
    for (int64_t i = 0; i < x.n; i++)
      for (int64_t j = 0; j < x.width; j++) work.row(i)[j] = f(i, j);
  };
  auto centered = [&](int64_t i, int64_t j) { return x.row(i)[j] - stats.mean[i]; };
  auto normal = [&](int64_t i, int64_t j) { return centered(i, j) / stats.sigma[i]; };
  each(centered);
  stage(NormStage::centered, work);
  each(normal);
  stage(NormStage::normalized, work);
  each([&](int64_t i, int64_t j) { return normal(i, j) * (norm.gamma != nullptr ? norm.gamma[j] : 1.0f); });
  stage(NormStage::scaled, work);
  stage(NormStage::out, y);
}

void apply(const Norm& norm, NormSite site, int layer, Rows x, Rows y, Step& s) {
  if (!watched(site, layer, s)) return norm_forward(s.ops, norm, x, y);
  Arena& arena = s.ops.scratch;
  NormStats stats{arena.floats(x.n), arena.floats(x.n)};
  Rows before = make_rows(arena, x.n, x.width);  // y may be x: the stages need what went in
  for (int64_t i = 0; i < x.n; i++)
    std::memcpy(before.row(i), x.row(i), static_cast<size_t>(x.width) * sizeof(float));
  norm_forward(s.ops, norm, x, y, stats);
  show_stages(norm, site, layer, before, y, stats, s);
}

}  // namespace

Rows normalized(const Norm& norm, NormSite site, int layer, Rows x, Step& s) {
  if (norm.kind == NormKind::none) return x;
  Rows y = make_rows(s.ops.scratch, x.n, x.width);
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
