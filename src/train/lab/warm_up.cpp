#include "train/lab/warm_up.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "train/lab/side_by_side.h"

namespace liuli::lab {
namespace {

constexpr int64_t kDepth = 12;

const WarmUpRun& run_of(const std::vector<WarmUpRun>& runs, Placement placement, double rate, bool warm_up) {
  return *std::find_if(runs.begin(), runs.end(), [&](const WarmUpRun& r) {
    return r.placement == placement && r.rate == rate && r.warm_up == warm_up;
  });
}

// A run that blew up has learnt nothing.
double learnt(const WarmUpRun& r) { return std::max(0.0, r.gain); }

void show(const std::vector<WarmUpRun>& runs, LabReport& report) {
  const int64_t steps = runs.front().steps;
  LabTable table{
      {fmt::format("学习率与预热:{} 块,{} 步,预热为前四分之一;验证损失", kDepth, steps),
       fmt::format("Learning rate and warm-up: {} blocks, {} steps, warm-up over the first quarter; "
                   "held-out loss",
                   kDepth, steps)},
      {{"放法", "placement"},
       {"学习率", "learning rate"},
       {"无预热", "without warm-up"},
       {"有预热", "with warm-up"},
       {"预热带来的纳特", "nats from warm-up"}},
      {}};
  LabPlot plot{{"学习率、预热与损失", "Learning rate, warm-up and loss"},
               {"学习率", "learning rate"},
               {"验证损失", "held-out loss"},
               true,
               false,
               {}};
  for (const Placement p : {Placement::pre, Placement::post}) {
    LabSeries without{{to_string(p)}, {}, {}},
        with{{std::string(to_string(p)) + ",预热", std::string(to_string(p)) + ", warm-up"}, {}, {}};
    for (const WarmUpRun& r : runs) {
      if (r.placement != p || r.warm_up) continue;
      const WarmUpRun& warm = run_of(runs, p, r.rate, true);
      table.rows.push_back({to_string(p), number(r.rate), number(r.run.held_out), number(warm.run.held_out),
                            number(learnt(warm) - learnt(r), 3)});
      without.x.push_back(r.rate), without.y.push_back(r.run.held_out);
      with.x.push_back(r.rate), with.y.push_back(warm.run.held_out);
    }
    plot.series.push_back(std::move(without));
    plot.series.push_back(std::move(with));
  }
  report.tables.push_back(std::move(table));
  report.plots.push_back(std::move(plot));
}

}  // namespace

Placement built_as(const Bench& bench, Placement placement) {
  if (bench.mutated() && placement == Placement::pre) return Placement::post;
  if (bench.mutated() && placement == Placement::post) return Placement::pre;
  return placement;
}

std::vector<WarmUpRun> train_with_and_without_warm_up(const Bench& bench, const Language28& language) {
  const auto rates = bench.quick() ? std::vector<double>{2e-3} : std::vector<double>{1e-3, 2e-3, 3e-3};
  const int64_t steps = bench.quick() ? 40 : 240;
  std::vector<WarmUpRun> runs;
  for (const Placement p : {Placement::pre, Placement::post})
    for (const double rate : rates)
      for (const bool warm_up : {false, true}) runs.push_back({p, rate, warm_up, steps, {}});
  side_by_side(bench, "warm-up", runs.size(), [&](size_t i, Runner& runner) {
    WarmUpRun& r = runs[i];
    StackShape s;
    s.placement = built_as(bench, r.placement);
    s.depth = kDepth;
    s.d_model = s.d_ff = 32;
    s.vocab_size = Language28::kVocabulary;
    RandomStack stack(s, bench.settings.seed);
    TrainingSettings t;
    t.steps = steps;
    t.learning_rate = r.rate;
    t.warm_up = r.warm_up ? steps / 4 : 0;
    r.run = train_stack(stack, runner, language, t);
    r.gain = r.run.diverged ? -INFINITY : language.unigram_entropy() - r.run.held_out;
  });
  return runs;
}

double most_from_warm_up(const std::vector<WarmUpRun>& runs, Placement placement) {
  double most = -INFINITY;
  for (const WarmUpRun& r : runs)
    if (r.placement == placement && !r.warm_up)
      most = std::max(most, learnt(run_of(runs, placement, r.rate, true)) - learnt(r));
  return most;
}

void judge_warm_up(const std::vector<WarmUpRun>& runs, LabReport& report) {
  show(runs, report);
  const double pre = most_from_warm_up(runs, Placement::pre), post = most_from_warm_up(runs, Placement::post);
  report.checks.push_back(
      side_check({"pre-norm 不需要预热:各学习率下预热最多带来的纳特",
                  "pre-norm needs no warm-up: the most it adds at any learning rate, nats"},
                 pre, false, kLearnt));
  report.checks.push_back(side_check({"post-norm 需要预热:各学习率下预热最多带来的纳特",
                                      "post-norm needs warm-up: the most it adds at any learning rate, nats"},
                                     post, true, kLearnt));
  const bool needs = post >= kLearnt, pre_needs = pre >= kLearnt;
  report.because.zh +=
      fmt::format("{} 块、几个学习率:预热最多给 pre-norm 带来 {} 纳特({}),给 post-norm {} 纳特({})。", kDepth,
                  number(pre, 3), pre_needs ? "它需要" : "它不需要", number(post, 3),
                  needs ? "有的学习率下没有预热就学不到" : "没有一个学习率因此由学不动变为学会");
  report.because.en += fmt::format(
      " At several learning rates with {} blocks warm-up adds at most {} nats to pre-norm ({}) and {} to "
      "post-norm ({}).",
      kDepth, number(pre, 3), pre_needs ? "which needs it" : "which does not need it", number(post, 3),
      needs ? "which at some rate learns only with it" : "at no rate does it make the difference");
}

}  // namespace liuli::lab
