// Claim 9 of the article: ×1.5 + 0.5 ten times takes 1 to 114.3, and real models would overflow without norms.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/rng.h"
#include "trace/article_data.h"
#include "train/lab/experiments.h"
#include "train/lab/training.h"

namespace liuli::lab {
namespace {

constexpr double kF16 = 65504, kBf16 = 3.3895313892515355e38, kF32 = 3.4028234663852886e38;
constexpr double kGrowth = 1000, kTame = 30;
constexpr int64_t kGradientDepth = 16;

struct Variant {
  BilingualText name;
  Placement placement;
  NormKind norm;
  bool gated;
};
const Variant kVariants[] = {{{"无归一化,ReLU", "no norm, relu"}, Placement::none, NormKind::layer, false},
                             {{"无归一化,SwiGLU", "no norm, SwiGLU"}, Placement::none, NormKind::layer, true},
                             {{"LayerNorm,ReLU", "LayerNorm, relu"}, Placement::pre, NormKind::layer, false},
                             {{"RMSNorm,SwiGLU", "RMSNorm, SwiGLU"}, Placement::pre, NormKind::rms, true}};

std::vector<Example> random_text(uint64_t seed, int64_t n, int64_t vocabulary) {
  Rng rng(seed, 77);
  Example e;
  for (int64_t i = 0; i < n; i++) {
    e.input.push_back(static_cast<int>(rng.below(static_cast<uint64_t>(vocabulary))));
    e.target.push_back(static_cast<int>(rng.below(static_cast<uint64_t>(vocabulary))));
  }
  return {e};
}

// The first block after which a value no longer fits, or NaN.
double first_beyond(const std::vector<double>& largest, double limit) {
  for (size_t block = 1; block < largest.size(); block++)
    if (!(largest[block] <= limit)) return static_cast<double>(block);
  return NAN;
}

void article(Bench& bench, LabReport& report) {
  ExplosionInputs in{worked::kArticleFactor, worked::kArticleShift, worked::kArticleStart,
                     worked::kArticleSteps};
  if (bench.mutated()) in.factor = 0.5;
  const Explanation worked_out = explain_explosion(in, Language::en);
  const std::vector<double>& x = worked_out.step("iterate")->values;
  LabPlot plot{{fmt::format("x ← {} x + {}", in.factor, in.shift)}, {"步数", "step"}, {"x"}, false, true, {}};
  plot.series.push_back({{"x"}, counting(x.size()), x});
  report.plots.push_back(std::move(plot));
  report.checks.push_back(
      essential_check({"十次之后与文中 114.33 之差", "after ten steps, distance from the article's 114.33"},
                      std::fabs(x.back() - worked::kArticleExplosion), false, 0.005));
  report.because = {
      fmt::format("1.0 经过 {} 次 ×{}+{} 变成 {}。", in.steps, in.factor, in.shift, number(x.back(), 5)),
      fmt::format("{} times ×{} + {} take 1.0 to {}. ", in.steps, in.factor, in.shift, number(x.back(), 5))};
}

struct Grown {
  LayerGradients seen;       // of 64 blocks
  std::vector<double> back;  // the gradient of the stream in 16
  double growth = 0,
         gradient_growth = 0;  // last / first of the stream; first / last of its gradient, through 16 blocks
};

Grown grow(Bench& bench, const Variant& v, int64_t depth) {
  StackShape s;
  s.placement = v.placement;
  s.norm = v.norm;
  s.gated = v.gated;
  s.depth = depth;
  s.d_model = bench.quick() ? 64 : 128;
  s.d_ff = v.gated ? s.d_model * 2 : s.d_model;
  if (bench.mutated()) s.placement = v.placement == Placement::none ? Placement::pre : Placement::none;
  const std::vector<Example> text = random_text(bench.settings.seed, 32, s.vocab_size);
  RandomStack stack(s, bench.settings.seed);
  Grown g;
  g.seen = measure_gradients(stack, bench.runner, text);
  g.growth = g.seen.rms.back() / g.seen.rms.front();
  if (!std::isfinite(g.growth)) g.growth = INFINITY;
  // Through 64 blocks without norms the gradient is no number any more: it is compared through fewer.
  s.depth = kGradientDepth;
  RandomStack shallow(s, bench.settings.seed);
  g.back = measure_gradients(shallow, bench.runner, text).stream;
  g.gradient_growth = g.back.front() / g.back.back();
  return g;
}

void stacks(Bench& bench, LabReport& report) {
  constexpr int64_t kDepth = 64;
  LabTable table{{"64 层随机块:激活与梯度", "64 random blocks: activations and gradients"},
                 {{"堆叠", "stack"},
                  {"‖x‖ 均方根,入口", "rms of x, entry"},
                  {"N = 16"},
                  {"N = 64"},
                  {"f16 溢出于块", "f16 overflows in block"},
                  {"bf16"},
                  {"f32"},
                  {"梯度:入口 / 出口,N = 16", "gradient, entry / exit, N = 16"}},
                 {}};
  LabPlot forward{
      {"残差流的大小", "size of the residual stream"}, {"块", "block"}, {"均方根", "rms"}, false, true, {}};
  LabPlot backward{{"梯度(16 块,自出口往回)", "gradient on its way back through 16 blocks"},
                   {"块", "block"},
                   {"‖∂L/∂x‖"},
                   false,
                   true,
                   {}};
  std::vector<Grown> grown;
  for (const Variant& v : kVariants) {
    bench.progress(v.name.en, static_cast<double>(grown.size()) / 4);
    const Grown& g = grown.emplace_back(grow(bench, v, kDepth));
    const LayerGradients& s = g.seen;
    table.rows.push_back({v.name, number(s.rms[0]), number(s.rms[16]), number(s.rms[64]),
                          number(first_beyond(s.largest, kF16)), number(first_beyond(s.largest, kBf16)),
                          number(first_beyond(s.largest, kF32)), number(g.gradient_growth)});
    forward.series.push_back({v.name, counting(s.rms.size()), s.rms});
    backward.series.push_back({v.name, counting(g.back.size()), g.back});
  }
  report.tables.push_back(std::move(table));
  report.plots.push_back(std::move(forward));
  report.plots.push_back(std::move(backward));
  const double tame = std::max(grown[2].growth, grown[3].growth);
  const double f16 =
      std::min(first_beyond(grown[0].seen.largest, kF16), first_beyond(grown[1].seen.largest, kF16));
  const double f32 = first_beyond(grown[1].seen.largest, kF32);
  report.checks.push_back(
      essential_check({"无归一化(ReLU):64 块后变大的倍数", "without norms (relu), growth over 64 blocks"},
                      grown[0].growth, true, kGrowth));
  report.checks.push_back(essential_check(
      {"有归一化:64 块后变大的倍数(较大者)", "with norms, growth over 64 blocks (the larger)"}, tame, false,
      kTame));
  report.checks.push_back(
      side_check({"无归一化:f16 最早溢出的块", "without norms, the first block whose values overflow f16"},
                 f16, false, 64));
  report.checks.push_back(
      side_check({"无归一化(SwiGLU):f32 溢出的块", "without norms (SwiGLU), the block where f32 overflows"},
                 f32, false, 64));
  report.checks.push_back(
      side_check({"无归一化(ReLU,16 块):梯度回到入口变大的倍数",
                  "without norms (relu, 16 blocks), growth of the gradient on its way to the entry"},
                 grown[0].gradient_growth, true, kGrowth));
  report.because.zh += fmt::format(
      "没有归一化的 64 个随机块把残差流放大 {} 倍(ReLU);SwiGLU 把两个数相乘,第 {} 块就超出 "
      "f32。有归一化时只放大 {} 倍,约为 √N。",
      number(grown[0].growth), number(f32), number(tame));
  report.because.en += fmt::format(
      "64 random blocks without norms enlarge the stream {} times (relu); SwiGLU multiplies two numbers and "
      "leaves f32 in block {}. With norms the stream grows {} times, about √N.",
      number(grown[0].growth), number(f32), number(tame));
}

}  // namespace

void explosion(Bench& bench, LabReport& report) {
  report.title = {"数值爆炸", "Explosion"};
  report.question = {"层层相乘,数会变得多大?归一化能管住它吗?",
                     "How large do numbers get, block after block, and do norms hold them?"};
  report.claim = {"每层 ×1.5 再 +0.5,十层就把 1.0 变成 114.3;没有归一化,真实模型会溢出成 ∞ 或 NaN。",
                  "×1.5 + 0.5 per layer takes 1.0 to 114.3 in ten layers; without norms a real model "
                  "overflows to ∞ or NaN."};
  article(bench, report);
  stacks(bench, report);
  report.notes.push_back(
      {"f16 到 65504 为止;bf16 与 f32 的指数一样宽,都到 3.4e38 附近,所以几乎同时溢出。",
       "f16 ends at 65504; bf16 has f32's exponent, so both end near 3.4e38 and overflow almost together."});
}

}  // namespace liuli::lab
