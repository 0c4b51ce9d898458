// Claim 5: the residual lane always carries the original forward.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "train/lab/experiments.h"
#include "train/lab/matrix_rows.h"
#include "train/lab/side_by_side.h"
#include "train/lab/training.h"

namespace liuli::lab {
namespace {

constexpr double kCarried = 0.1;  // mean cosine between what enters the first block and what leaves the last
constexpr double kGap = 0.3;      // nats

// Keeps the stream as it enters the first block, and its cosine with what leaves every block.
class Similarity final : public Probe {
 public:
  explicit Similarity(int64_t depth) : cosines(static_cast<size_t>(depth) + 1, 1.0) {}
  bool wants(const Place& p) const override {
    return p.point == Point::resid_post || (p.point == Point::resid_pre && p.layer == 0);
  }
  void see(const ProbedValue& v) override {
    const int64_t width = v.rows.width;
    if (v.place.point == Point::resid_pre) {
      for (int64_t i = 0; i < v.rows.n; i++)
        first_.insert(first_.end(), v.rows.row(i), v.rows.row(i) + width);
      return;
    }
    double sum = 0;
    for (int64_t i = 0; i < v.rows.n; i++) sum += cosine(v.rows.row(i), first_.data() + i * width, width);
    cosines[static_cast<size_t>(v.place.layer) + 1] = sum / static_cast<double>(v.rows.n);
  }
  bool sees_batches() const override { return true; }

  std::vector<double> cosines;

 private:
  std::vector<float> first_;
};

StackShape lane_shape(const Bench& bench, int64_t depth, bool fast_lane) {
  StackShape s;
  s.depth = depth;
  s.d_model = s.d_ff = 32;
  s.vocab_size = Language28::kVocabulary;
  s.fast_lane = fast_lane != bench.mutated();
  return s;
}

std::vector<double> similarity(const Bench& bench, int64_t depth, bool fast_lane,
                               const Language28& language) {
  StackShape s = lane_shape(bench, depth, fast_lane);
  s.d_model = s.d_ff = 128;
  RandomStack stack(s, bench.settings.seed);
  TrainStep step(stack.model, bench.runner);
  Similarity seen(depth);
  step.watcher = &seen;
  step.forward(language.batch(0, 2, 32), Keep::everything);
  return seen.cosines;
}

struct LaneRun {
  int64_t depth;
  bool fast_lane;
  TrainingRun run;
};

std::vector<LaneRun> train_lanes(const Bench& bench, const Language28& language) {
  const std::vector<int64_t> depths =
      bench.quick() ? std::vector<int64_t>{2, 32} : std::vector<int64_t>{2, 4, 8, 16, 32};
  std::vector<LaneRun> runs;
  for (const int64_t depth : depths)
    for (const bool lane : {true, false}) runs.push_back({depth, lane, {}});
  side_by_side(bench, "training", runs.size(), [&](size_t at, Runner& runner) {
    LaneRun& r = runs[runs.size() - 1 - at];  // the long ones first
    RandomStack stack(lane_shape(bench, r.depth, r.fast_lane), bench.settings.seed);
    TrainingSettings t;
    t.steps = bench.quick() ? 50 : 150;
    t.learning_rate = 3e-3;
    t.warm_up = t.steps / 10;
    t.measured_steps = {0};
    r.run = train_stack(stack, runner, language, t);
  });
  return runs;
}

void show_runs(const std::vector<LaneRun>& runs, LabReport& report) {
  LabTable table{{"有无快车道的训练", "Training with and without the fast lane"},
                 {{"层数", "depth"},
                  {"快车道", "fast lane"},
                  {"验证损失", "held-out loss"},
                  {"开始:首 / 末块梯度", "start: gradient first / last block"}},
                 {}};
  LabPlot plot{{"训练后的损失", "Loss after training"},
               {"层数", "depth"},
               {"验证损失", "held-out loss"},
               true,
               false,
               {{{"有快车道", "with the lane"}, {}, {}}, {{"没有", "without"}, {}, {}}}};
  for (const LaneRun& r : runs) {
    const LayerGradients& g = r.run.gradients.front().second;
    table.rows.push_back({fmt::format("{}", r.depth),
                          r.fast_lane ? BilingualText{"有", "yes"} : BilingualText{"无", "no"},
                          number(r.run.held_out), number(g.w2.front() / g.w2.back(), 3)});
    LabSeries& s = plot.series[r.fast_lane ? 0 : 1];
    s.x.push_back(static_cast<double>(r.depth));
    s.y.push_back(r.run.held_out);
  }
  report.tables.push_back(std::move(table));
  report.plots.push_back(std::move(plot));
}

double loss_of(RealModel& model, const std::vector<int>& ids, const std::vector<Hook>& hooks) {
  double sum = 0;
  const size_t n = ids.size() - 1;
  model.logits(ids, hooks, [&](int position, std::span<const float> row) {
    if (static_cast<size_t>(position) >= n) return;
    double top = -INFINITY, total = 0;
    for (const float x : row) top = std::max(top, static_cast<double>(x));
    for (const float x : row) total += std::exp(static_cast<double>(x) - top);
    sum += top + std::log(total) -
           static_cast<double>(row[static_cast<size_t>(ids[static_cast<size_t>(position) + 1])]);
  });
  return sum / static_cast<double>(n);
}

// In one block of a real model, x + branch becomes the branch alone.
std::vector<Hook> without_lane(int block, std::map<std::string, std::vector<float>>& kept) {
  const auto all = [](const HookValue& v, const std::function<void(float&, size_t)>& f) {
    size_t at = 0;
    for (int64_t i = 0; i < v.shape[0]; i++)
      for (int64_t j = 0; j < v.shape[1]; j++) f(v.at({i, j}), at++);
  };
  std::vector<Hook> hooks;
  for (const auto& [branch, sum] : {std::pair("attn_out", "resid_mid"), std::pair("mlp_out", "resid_post")}) {
    const std::string name = branch;
    hooks.push_back({{fmt::format("blocks.{}.{}", block, branch)}, [&kept, name, all](const HookValue& v) {
                       std::vector<float>& copy = kept[name];
                       copy.clear();
                       all(v, [&](float& x, size_t) { copy.push_back(x); });
                     }});
    hooks.push_back({{fmt::format("blocks.{}.{}", block, sum)}, [&kept, name, all](const HookValue& v) {
                       all(v, [&](float& x, size_t at) { x = kept[name][at]; });
                     }});
  }
  return hooks;
}

void real_lane(Bench& bench, LabReport& report) {
  RealModel& model = *bench.model;
  const std::vector<int> ids = model.tokenize(
      "The river runs through the old town, and in the evening the lamps along its banks are lit one after "
      "another. Children play on the bridge while their parents talk about the weather.");
  const auto n = static_cast<int>(model.config().n_layers);
  const double whole = loss_of(model, ids, {});
  LabPlot plot{{"真实模型:在一块里拆掉快车道", "A real model: the lane removed in one block"},
               {"块", "block"},
               {"损失增加(纳特)", "loss added (nats)"},
               false,
               false,
               {{{"拆掉快车道", "lane removed"}, {}, {}}}};
  double smallest = INFINITY;
  for (int block = 0; block < n; block += bench.quick() ? std::max(1, n / 3) : std::max(1, n / 12)) {
    bench.progress("real model", static_cast<double>(block) / n);
    std::map<std::string, std::vector<float>> kept;
    const double added = loss_of(model, ids, without_lane(block, kept)) - whole;
    plot.series[0].x.push_back(block);
    plot.series[0].y.push_back(added);
    if (block > 0) smallest = std::min(smallest, added);  // what enters block 0 is the embeddings alone
  }
  report.plots.push_back(std::move(plot));
  report.notes.push_back(
      {fmt::format("{}:在一块里拆掉快车道,损失(原为 {})至少增加 {} 纳特(第 0 块除外)。", model.file_name(),
                   number(whole), number(smallest, 3)),
       fmt::format("{}: removing the lane in one block (not block 0) adds at least {} nats to a loss of {}.",
                   model.file_name(), number(smallest, 3), number(whole))});
}

}  // namespace

void residual(Bench& bench, LabReport& report) {
  report.title = {"残差快车道", "The residual fast lane"};
  report.question = {"拆掉残差相加,信息和梯度还过得去吗?",
                     "Do information and gradients still get through when the residual addition is removed?"};
  report.claim = {"残差那条路始终把原始信息带到后面。",
                  "The residual lane always carries the original forward."};
  const Language28 language(bench.settings.seed);
  constexpr int64_t kDepth = 32;
  const std::vector<double> with = similarity(bench, kDepth, true, language),
                            without = similarity(bench, kDepth, false, language);
  LabPlot plot{{"与最初一行的余弦", "Cosine with the row that entered"},
               {"块", "block"},
               {"cos(x₀, x)"},
               false,
               false,
               {}};
  plot.series.push_back({{"有快车道", "with the lane"}, counting(with.size()), with});
  plot.series.push_back({{"没有", "without"}, counting(without.size()), without});
  report.plots.push_back(std::move(plot));
  const std::vector<LaneRun> runs = train_lanes(bench, language);
  show_runs(runs, report);
  const double lane = runs[runs.size() - 2].run.held_out, none = runs.back().run.held_out;
  const double gap = (std::isnan(none) ? language.unigram_entropy() : none) - lane;
  report.checks = {essential_check({"有快车道:32 块后与原始行的余弦",
                                    "with the lane, cosine with the original after 32 blocks"},
                                   with.back(), true, kCarried),
                   essential_check({"没有快车道:同上", "without it, the same"}, std::fabs(without.back()),
                                   false, kCarried),
                   essential_check({"训练 32 块:没有快车道多出的损失,纳特",
                                    "32 blocks trained: loss added by taking the lane away, nats"},
                                   gap, true, kGap)};
  report.because = {
      fmt::format(
          "32 块之后,有快车道的行与原始行余弦为 {},没有时为 {};训练后损失 {} 对 {}(只知道字频为 {})。",
          number(with.back(), 3), number(without.back(), 2), number(lane), number(none),
          number(language.unigram_entropy())),
      fmt::format("After 32 blocks a row has cosine {} with what entered, without the lane {}; trained, the "
                  "losses are {} and {} (frequencies alone: {}).",
                  number(with.back(), 3), number(without.back(), 2), number(lane), number(none),
                  number(language.unigram_entropy()))};
  report.notes.push_back(
      {"“始终带着原始信息”要读作“还找得到”:随机块里余弦按约 1/√N 变小,原始信息是被别的信息盖住,不是丢掉。",
       "“Carries the original” means it can still be found: in random blocks the cosine falls as about 1/√N; "
       "the original is covered by what is added, not lost."});
  if (bench.model != nullptr)
    real_lane(bench, report);
  else
    report.notes.push_back(
        left_out("在真实模型的一块里拆掉快车道", "removing the lane in one block of a real model"));
}

}  // namespace liuli::lab
