// Claim 8: post-norm divides the main lane by σ in every layer, so its gradients vanish or explode and it is hard to train
// beyond 32 layers; pre-norm's lane is a clean addition. What is measured: every block's gradient at initialisation, and
// which runs learn.
#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "train/lab/experiments.h"
#include "train/lab/initial_gradients.h"
#include "train/lab/side_by_side.h"
#include "train/lab/training.h"
#include "train/lab/warm_up.h"

namespace liuli::lab {
namespace {

constexpr double kVanished = 0.1;  // first / last
constexpr int64_t kDeep = 32;      // the article's limit

struct Trained {
  Placement placement;
  int64_t depth;
  bool warm_up;
  double rate;
  TrainingRun run;
  double gain = 0;  // nats below the entropy of single characters
  bool learnt() const { return gain >= kLearnt; }
};

std::vector<Trained> train_all(const Bench& bench, const Language28& language) {
  const std::vector<int64_t> depths =
      bench.quick() ? std::vector<int64_t>{6, 40} : std::vector<int64_t>{6, 12, 24, 48, 96};
  const int64_t steps = bench.quick() ? 40 : 120;
  std::vector<Trained> runs;
  for (auto depth = depths.rbegin(); depth != depths.rend(); depth++)  // the long ones first
    for (const Placement p : kPlacements)
      for (const bool warm_up : {false, true}) runs.push_back({p, *depth, warm_up, 3e-3, {}});
  side_by_side(bench, "training", runs.size(), [&](size_t i, Runner& runner) {
    Trained& r = runs[i];
    StackShape s;
    s.placement = built_as(bench, r.placement);
    s.depth = r.depth;
    s.d_model = s.d_ff = 32;
    s.vocab_size = Language28::kVocabulary;
    RandomStack stack(s, bench.settings.seed);
    TrainingSettings t;
    t.steps = steps;
    t.learning_rate = r.rate;
    t.warm_up = r.warm_up ? steps / 2 : 0;
    t.measured_steps = {0, steps / 4, steps - 1};
    r.run = train_stack(stack, runner, language, t);
    r.gain = r.run.diverged ? -INFINITY : language.unigram_entropy() - r.run.held_out;
  });
  std::stable_sort(runs.begin(), runs.end(), [](const Trained& a, const Trained& b) {
    return std::tuple(a.depth, a.placement, a.warm_up) < std::tuple(b.depth, b.placement, b.warm_up);
  });
  return runs;
}

const Trained& run_of(const std::vector<Trained>& runs, Placement p, int64_t depth, bool warm_up) {
  return *std::find_if(runs.begin(), runs.end(), [&](const Trained& r) {
    return r.placement == p && r.depth == depth && r.warm_up == warm_up;
  });
}

BilingualText outcome(const Trained& r) {
  if (r.run.diverged) return {"发散", "diverged"};
  return r.learnt() ? BilingualText{"学会", "learns"} : BilingualText{"学不动", "stuck"};
}

void show_training(const std::vector<Trained>& runs, const Language28& language, LabReport& report) {
  LabTable table{
      {fmt::format("训练 {} 步(宽 32,AdamW 3e-3;只知道字频的模型损失为 {})", runs.front().run.losses.size(),
                   number(language.unigram_entropy())),
       fmt::format(
           "{} steps of training (width 32, AdamW 3e-3; a model that knows only frequencies reaches {})",
           runs.front().run.losses.size(), number(language.unigram_entropy()))},
      {{"放法", "placement"},
       {"层数", "depth"},
       {"预热", "warm-up"},
       {"验证损失", "held-out loss"},
       {"结果", "outcome"},
       {"开始:首 / 末块梯度", "start: gradient first / last"},
       {"结束:首 / 末块梯度", "end: gradient first / last"}},
      {}};
  const auto ratio = [](const LayerGradients& g) { return number(g.w2.front() / g.w2.back(), 3); };
  for (const Trained& r : runs)
    table.rows.push_back({to_string(r.placement), fmt::format("{}", r.depth),
                          r.warm_up ? BilingualText{"有", "yes"} : BilingualText{"无", "no"},
                          number(r.run.held_out), outcome(r), ratio(r.run.gradients.front().second),
                          ratio(r.run.gradients.back().second)});
  report.tables.push_back(std::move(table));
  LabPlot by_depth{{"训练后的损失", "Loss after training"},
                   {"层数", "depth"},
                   {"验证损失", "held-out loss"},
                   true,
                   false,
                   {}};
  LabPlot inside{{"训练到四分之一时 W₂ 的梯度(最深,无预热)",
                  "Gradient of W₂ after a quarter of the run (deepest, no warm-up)"},
                 {"块", "block"},
                 {"‖∂L/∂W₂‖"},
                 false,
                 true,
                 {}};
  for (const Placement p : kPlacements) {
    for (const bool warm_up : {false, true}) {
      LabSeries series{{std::string(to_string(p)) + (warm_up ? ",预热" : ""),
                        std::string(to_string(p)) + (warm_up ? ", warm-up" : "")},
                       {},
                       {}};
      for (const Trained& r : runs) {
        if (r.placement != p || r.warm_up != warm_up) continue;
        series.x.push_back(static_cast<double>(r.depth));
        series.y.push_back(r.run.held_out);
      }
      by_depth.series.push_back(std::move(series));
    }
    const Trained& deepest = run_of(runs, p, runs.back().depth, false);
    if (deepest.run.gradients.size() > 1)
      inside.series.push_back({{to_string(p)},
                               counting(deepest.run.gradients[1].second.w2.size()),
                               deepest.run.gradients[1].second.w2});
  }
  report.plots.push_back(std::move(by_depth));
  report.plots.push_back(std::move(inside));
}

// The smallest (largest) gain among a placement's runs of at least (at most) some depth.
double worst_gain(const std::vector<Trained>& runs, Placement p, int64_t from_depth) {
  double worst = INFINITY;
  for (const Trained& r : runs)
    if (r.placement == p && r.depth >= from_depth) worst = std::min(worst, r.gain);
  return worst;
}

double best_gain(const std::vector<Trained>& runs, Placement p, int64_t from_depth, bool warm_up) {
  double best = -INFINITY;
  for (const Trained& r : runs)
    if (r.placement == p && r.depth >= from_depth && r.warm_up == warm_up) best = std::max(best, r.gain);
  return best;
}

// First over last block of the deepest post-norm run without warm-up, after a quarter of it.
double ratio_in_training(const std::vector<Trained>& runs) {
  const auto& seen = run_of(runs, Placement::post, runs.back().depth, false).run.gradients;
  return seen.size() > 1 ? seen[1].second.w2.front() / seen[1].second.w2.back() : NAN;
}

void decide(const std::vector<AtStart>& start, const std::vector<Trained>& runs, LabReport& report) {
  const AtStart& post =
      at_start(start, Placement::post, start.back().depth < kDeep ? start.back().depth : 48);
  const double ratio = post.w2.front() / post.w2.back();
  const double pre_worst = worst_gain(runs, Placement::pre, 0),
               post_deep = best_gain(runs, Placement::post, kDeep, false);
  report.checks = {
      essential_check(
          {"pre-norm 学到的最少(各层数,有无预热),纳特", "pre-norm: the least that any run learns, nats"},
          pre_worst, true, kLearnt),
      essential_check({"post-norm 超过 32 层、无预热时学到的最多,纳特",
                       "post-norm beyond 32 blocks without warm-up: the most that any run learns, nats"},
                      post_deep, false, kLearnt),
      side_check(
          {fmt::format("初始化时 post-norm {} 层:首块梯度 / 末块梯度(消失的话 ≤ {})", post.depth, kVanished),
           fmt::format(
               "at initialisation, post-norm of {} blocks: gradient first / last (vanishing means ≤ {})",
               post.depth, kVanished)},
          ratio, false, kVanished)};
  const double warm = best_gain(runs, Placement::post, kDeep, true),
               deep = worst_gain(runs, Placement::deepnorm, kDeep);
  const double later = ratio_in_training(runs);
  report.checks.push_back(side_check(
      {fmt::format("训练到四分之一,post-norm {} 层、无预热:首块梯度 / 末块梯度", runs.back().depth),
       fmt::format(
           "after a quarter of the run, post-norm of {} blocks without warm-up: gradient first / last",
           runs.back().depth)},
      later, false, kVanished));
  const bool at_once = ratio <= kVanished, with_time = later <= kVanished;
  report.because = {
      fmt::format("pre-norm 最差的一次学到 {} 纳特;post-norm 超过 32 层,不预热最多学到 {},预热最多 "
                  "{};DeepNorm 同样深最少 {}。"
                  "post-norm 首块与末块的梯度之比:初始化时 {} 层为 {}({}),训练到四分之一时 {} 层为 {}({})。",
                  number(pre_worst, 3), number(post_deep, 3), number(warm, 3), number(deep, 3), post.depth,
                  number(ratio, 3), at_once ? "已经消失" : "并未消失", runs.back().depth, number(later, 3),
                  with_time ? "消失了" : "没有消失"),
      fmt::format("Pre-norm's worst run learns {} nats; post-norm beyond 32 blocks learns at most {} without "
                  "warm-up and {} "
                  "with it; DeepNorm as deep at least {}. Post-norm's gradient of the first block over the "
                  "last one's: {} at "
                  "initialisation with {} blocks ({}), {} after a quarter of the run with {} ({}).",
                  number(pre_worst, 3), number(post_deep, 3), number(warm, 3), number(deep, 3),
                  number(ratio, 3), post.depth, at_once ? "vanished" : "not vanished", number(later, 3),
                  runs.back().depth, with_time ? "vanished" : "not vanished")};
}

}  // namespace

void prenorm_postnorm(Bench& bench, LabReport& report) {
  report.title = {"前置与后置归一化", "Pre-norm and post-norm"};
  report.question = {
      "归一化放在前面还是后面,对每层的梯度和能否训练有什么影响?",
      "What does the norm's place do to every layer's gradient, and to whether a stack learns at all?"};
  report.claim = {
      "post-norm 每层都在主干上除以 σ,梯度会消失或爆炸,超过 32 层很难训练;pre-norm 的主干是干净的加法。"
      "post-norm 需要预热,pre-norm 不需要。",
      "Post-norm divides the main lane by σ in every layer: gradients vanish or explode, and beyond 32 "
      "layers it is hard to train; pre-norm's lane is a clean addition. "
      "Post-norm needs warm-up, pre-norm does not."};
  const std::vector<AtStart> start = measure_at_start(bench);
  show_start(start, report);
  const Language28 language(bench.settings.seed);
  const std::vector<Trained> runs = train_all(bench, language);
  show_training(runs, language, report);
  decide(start, runs, report);
  judge_warm_up(train_with_and_without_warm_up(bench, language), report);
  describe_start(start, report);
  report.notes.push_back(
      {"实验用小模型、短训练:它说明方向,不是大模型的确切界限。",
       "Small models and short runs: they show the direction, not the exact limit of large models."});
}

}  // namespace liuli::lab
