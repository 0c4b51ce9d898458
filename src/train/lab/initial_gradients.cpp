#include "train/lab/initial_gradients.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/rng.h"
#include "train/lab/side_by_side.h"
#include "train/lab/training.h"

namespace liuli::lab {
namespace {

constexpr int64_t kDeep = 32;  // from here on fewer seeds: the sums over blocks are steady by themselves

std::vector<Example> random_classes(uint64_t seed) {
  constexpr int64_t kTokens = 16, kClasses = 64;
  Rng rng(seed, 31);
  Example e;
  for (int64_t i = 0; i < kTokens; i++) {
    e.input.push_back(static_cast<int>(i * kClasses / kTokens));  // all different
    e.target.push_back(static_cast<int>(rng.below(kClasses)));
  }
  return {e};
}

StackShape initial_shape(Placement placement, int64_t depth) {
  StackShape s;
  s.placement = placement;
  s.depth = depth;
  s.d_model = s.d_ff = 128;
  s.causal = false;
  return s;
}

void add(std::vector<double>& sum, const std::vector<double>& more, double weight) {
  sum.resize(more.size());
  for (size_t i = 0; i < more.size(); i++) sum[i] += weight * more[i];
}

}  // namespace

std::vector<AtStart> measure_at_start(const Bench& bench) {
  const std::vector<int64_t> depths =
      bench.quick() ? std::vector<int64_t>{6, 24} : std::vector<int64_t>{6, 12, 24, 48, 96};
  std::vector<AtStart> found;
  for (const Placement p : kPlacements)
    for (const int64_t depth : depths) found.push_back({p, depth, {}, {}});
  side_by_side(bench, "gradients at initialisation", found.size(), [&](size_t i, Runner& runner) {
    const size_t seeds = bench.quick() ? 2 : found[i].depth > kDeep ? 4 : 8;
    for (size_t seed = 0; seed < seeds; seed++) {
      RandomStack stack(initial_shape(found[i].placement, found[i].depth), bench.settings.seed * 1000 + seed);
      const LayerGradients g =
          measure_gradients(stack, runner, random_classes(bench.settings.seed * 1000 + seed));
      const double weight = 1 / static_cast<double>(seeds);
      add(found[i].w2, g.w2, weight);
      add(found[i].stream, g.stream, weight);
      found[i].last_square += weight * g.rms.back() * g.rms.back();
    }
  });
  return found;
}

const AtStart& at_start(const std::vector<AtStart>& all, Placement p, int64_t depth) {
  return *std::find_if(all.begin(), all.end(),
                       [&](const AtStart& a) { return a.placement == p && a.depth == depth; });
}

void show_start(const std::vector<AtStart>& found, LabReport& report) {
  LabTable table{{"初始化时:每块 W₂ 的梯度范数", "At initialisation: gradient norm of each block's W₂"},
                 {{"放法", "placement"},
                  {"层数", "depth"},
                  {"首块", "first block"},
                  {"末块", "last block"},
                  {"首 / 末", "first / last"},
                  {"末块 · √L", "last · √L"},
                  {"末端 ‖x‖²/d", "‖x‖²/d at the end"}},
                 {}};
  for (const AtStart& a : found)
    table.rows.push_back({to_string(a.placement), fmt::format("{}", a.depth), number(a.w2.front()),
                          number(a.w2.back()), number(a.w2.front() / a.w2.back(), 3),
                          number(a.w2.back() * std::sqrt(static_cast<double>(a.depth)), 3),
                          number(a.last_square)});
  report.tables.push_back(std::move(table));
  const int64_t deepest = found.back().depth, shown = std::min<int64_t>(deepest, 48);
  LabPlot plot{{fmt::format("初始化时 W₂ 的梯度,{} 层", shown),
                fmt::format("Gradient of W₂ at initialisation, {} blocks", shown)},
               {"块", "block"},
               {"‖∂L/∂W₂‖"},
               false,
               true,
               {}};
  for (const Placement p : kPlacements) {
    const AtStart& a = at_start(found, p, shown);
    plot.series.push_back({{to_string(p)}, counting(a.w2.size()), a.w2});
  }
  report.plots.push_back(std::move(plot));
}

// The picture at initialisation in numbers: how much the blocks' gradients differ.
void describe_start(const std::vector<AtStart>& start, LabReport& report) {
  const int64_t depth = std::min<int64_t>(start.back().depth, 48);
  std::string zh = fmt::format("初始化时 {} 层中最大与最小的 W₂ 梯度之比:", depth),
              en = fmt::format(
                  "At initialisation, the largest over the smallest gradient of W₂ among {} blocks: ", depth);
  for (const Placement p : kPlacements) {
    const std::vector<double>& w2 = at_start(start, p, depth).w2;
    const auto [low, high] = std::minmax_element(w2.begin(), w2.end());
    const std::string part = fmt::format("{} {}; ", to_string(p), number(*high / *low, 3));
    zh += part;
    en += part;
  }
  const double pre = at_start(start, Placement::pre, depth).w2.back() * std::sqrt(static_cast<double>(depth)),
               shallow = at_start(start, Placement::pre, start.front().depth).w2.back() *
                         std::sqrt(static_cast<double>(start.front().depth));
  report.notes.push_back(
      {zh + fmt::format("pre-norm 末块的梯度乘以 √L,{} 层为 {},{} 层为 {}(理论上是常数)。",
                        start.front().depth, number(shallow, 3), depth, number(pre, 3)),
       en + fmt::format(
                "pre-norm's last one times √L is {} with {} blocks and {} with {} (in theory a constant).",
                number(shallow, 3), start.front().depth, number(pre, 3), depth)});
}

}  // namespace liuli::lab
