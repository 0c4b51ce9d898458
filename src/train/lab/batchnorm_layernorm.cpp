// Claim 13: BatchNorm takes one column across samples, so its statistics jump with length and batch, and one-token
// generation has no batch; LayerNorm does not care.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/rng.h"
#include "ops/norm.h"
#include "train/lab/experiments.h"
#include "train/lab/language.h"
#include "train/lab/matrix_rows.h"
#include "train/lab/perceptron.h"
#include "train/lab/side_by_side.h"
#include "train/optimizer.h"

namespace liuli::lab {
namespace {

constexpr double kJump = 0.1;  // of a column's deviation
constexpr double kLost = 0.5;  // nats

// `sequences` texts of 2 … 24 characters each, every position a row.
Perceptron::Batch variable_batch(const Language28& language, uint64_t seed, int64_t step, int64_t sequences) {
  constexpr auto kContext = static_cast<size_t>(Perceptron::kContext);
  constexpr uint64_t kShortest = 2, kLongest = 24;
  Rng rng(seed, static_cast<uint64_t>(step) * 128 + 9);
  const std::vector<int>& ids = language.ids();
  Perceptron::Batch batch;
  for (int64_t i = 0; i < sequences; i++) {
    const size_t length = kShortest + rng.below(kLongest - kShortest + 1),
                 at = rng.below(ids.size() - length - kContext);
    for (size_t t = at; t < at + length; t++) {
      batch.inputs.insert(batch.inputs.end(), ids.begin() + static_cast<ptrdiff_t>(t),
                          ids.begin() + static_cast<ptrdiff_t>(t + kContext));
      batch.targets.push_back(ids[t + kContext]);
    }
  }
  return batch;
}

// How far a batch's column means lie from those of all rows, in deviations of the column: the mean over columns and
// batches. Row by row nothing depends on the batch.
double jump(const MatrixRows& all, uint64_t seed, int64_t sequences, bool mutated) {
  const int64_t width = all.rows().width;
  std::vector<float> mean(static_cast<size_t>(width)), var(mean), m(mean), v(mean);
  column_statistics(all.rows(), mean.data(), var.data());
  Rng rng(seed, static_cast<uint64_t>(sequences));
  double sum = 0;
  constexpr int kBatches = 50;
  for (int b = 0; b < kBatches; b++) {
    int64_t n = 0;
    for (int64_t i = 0; i < sequences; i++) n += 2 + static_cast<int64_t>(rng.below(23));
    MatrixRows batch(std::min(n, all.rows().n), width);
    for (int64_t i = 0; i < batch.rows().n; i++)
      std::copy_n(all.rows().row(static_cast<int64_t>(rng.below(static_cast<uint64_t>(all.rows().n)))), width,
                  batch.rows().row(i));
    column_statistics(mutated ? all.rows() : batch.rows(), m.data(), v.data());
    for (size_t j = 0; j < mean.size(); j++)
      sum += std::fabs(static_cast<double>(m[j] - mean[j])) / std::sqrt(static_cast<double>(var[j]) + 1e-12);
  }
  return sum / (kBatches * static_cast<double>(width));
}

// Rows whose statistics are looked at: a real model's stream, or random ones.
MatrixRows rows_to_look_at(Bench& bench) {
  if (bench.model == nullptr) return MatrixRows::random(bench.settings.seed, 512, 64);
  const auto traced = bench.model->trace(
      bench.model->tokenize(
          "The river runs through the old town. In the evening the lamps along its banks are lit one after "
          "another, and the people who live there come out to walk, to talk about the weather and to watch "
          "the boats return. 今天西安的天气很好,适合出去走走。"),
      {fmt::format("blocks.{}.resid_mid", bench.model->config().n_layers / 2)});
  MatrixRows x(traced[0].values, traced[0].shape.back());
  return x;
}

void statistics_jump(Bench& bench, LabReport& report, const std::vector<int64_t>& batches) {
  const MatrixRows rows = rows_to_look_at(bench);
  LabPlot plot{{"列均值的跳动", "How column means jump"},
               {"一批的序列数", "sequences in a batch"},
               {"偏离(以列的 σ 计)", "distance, in σ of the column"},
               true,
               true,
               {{{"BatchNorm:列", "BatchNorm: columns"}, {}, {}}}};
  for (const int64_t batch : batches) {
    plot.series[0].x.push_back(static_cast<double>(batch));
    plot.series[0].y.push_back(jump(rows, bench.settings.seed, batch, bench.mutated()));
  }
  report.checks.push_back(essential_check({"一条序列一批:列均值的平均跳动(以列的 σ 计)",
                                           "one sequence per batch: mean jump of column means, in σ"},
                                          plot.series[0].y.front(), true, kJump));
  report.plots.push_back(std::move(plot));
}

struct Outcome {
  NormKind norm;
  int64_t batch;
  double as_trained = 0, running = 0,
         alone = 0;  // held-out losses: batch statistics, running ones, one row at a time
};

double one_by_one(Perceptron& net, Runner& runner, const Perceptron::Batch& batch, Statistics statistics) {
  constexpr auto kContext = static_cast<ptrdiff_t>(Perceptron::kContext);
  double sum = 0;
  for (size_t i = 0; i < batch.targets.size(); i++) {
    const auto from = batch.inputs.begin() + static_cast<ptrdiff_t>(i) * kContext;
    sum += net.evaluate(runner, {{from, from + kContext}, {batch.targets[i]}}, statistics);
  }
  return sum / static_cast<double>(batch.targets.size());
}

void train_one(const Bench& bench, const Language28& language, Outcome& o, Runner& runner) {
  // The opposite of what the claim speaks of: the two change their names.
  const bool layer = (o.norm == NormKind::layer) != bench.mutated();
  Perceptron net(layer ? NormKind::layer : NormKind::batch, Language28::kVocabulary, bench.settings.seed);
  OptimizerSettings adam;
  adam.weight_decay = 0;
  Optimizer optimizer(net.parameters(), adam);
  const int64_t steps = bench.quick() ? 200 : 800;
  for (int64_t step = 0; step < steps; step++) {
    net.train_pass(runner, variable_batch(language, bench.settings.seed, step, o.batch));
    optimizer.step(runner.pool, 3e-3);
  }
  constexpr int64_t kTests = 40;
  int64_t rows = 0;
  for (int64_t test = 0; test < kTests; test++) {
    const auto batch = variable_batch(language, bench.settings.seed + 1, (1 << 20) + test, o.batch);
    const auto n = static_cast<int64_t>(batch.targets.size());
    o.as_trained += static_cast<double>(n) * net.evaluate(runner, batch, Statistics::of_batch);
    o.running += static_cast<double>(n) * net.evaluate(runner, batch, Statistics::running);
    rows += n;
  }
  o.as_trained /= static_cast<double>(rows);
  o.running /= static_cast<double>(rows);
  o.alone = one_by_one(net, runner, variable_batch(language, bench.settings.seed + 1, 1 << 21, 16),
                       Statistics::of_batch);
}

const Outcome& of(const std::vector<Outcome>& all, NormKind norm, int64_t batch) {
  return *std::find_if(all.begin(), all.end(),
                       [&](const Outcome& o) { return o.norm == norm && o.batch == batch; });
}

void show(const std::vector<Outcome>& all, LabReport& report) {
  LabTable table{{"验证损失(长度 2…24 的序列)", "Held-out loss (sequences of 2 … 24)"},
                 {{"归一化", "norm"},
                  {"一批的序列数", "sequences per batch"},
                  {"本批统计", "statistics of the batch"},
                  {"训练后的滑动统计", "running statistics"},
                  {"两者之差", "the gap"},
                  {"一次一个词,本批统计", "one token at a time, of the batch"}},
                 {}};
  LabPlot plot{{"训练与推理之间的差距", "Gap between training and inference"},
               {"一批的序列数", "sequences per batch"},
               {"损失之差的绝对值", "|difference of loss|"},
               true,
               false,
               {}};
  for (const NormKind kind : {NormKind::batch, NormKind::layer}) {
    const char* name = kind == NormKind::batch ? "BatchNorm" : "LayerNorm";
    LabSeries gap{{name}, {}, {}};
    for (const Outcome& o : all) {
      if (o.norm != kind) continue;
      table.rows.push_back({name, fmt::format("{}", o.batch), number(o.as_trained), number(o.running),
                            number(o.running - o.as_trained, 2), number(o.alone)});
      gap.x.push_back(static_cast<double>(o.batch));
      gap.y.push_back(std::fabs(o.running - o.as_trained));
    }
    plot.series.push_back(std::move(gap));
  }
  report.tables.push_back(std::move(table));
  report.plots.push_back(std::move(plot));
}

}  // namespace

void batchnorm_layernorm(Bench& bench, LabReport& report) {
  report.title = {"批归一化与层归一化", "BatchNorm and LayerNorm"};
  report.question = {"为什么语言模型不用 BatchNorm?", "Why do language models not use BatchNorm?"};
  report.claim = {"BatchNorm 按列跨样本取统计:随长度和批大小跳动,一次生成一个词时没有批;LayerNorm 不受影响。",
                  "BatchNorm takes statistics of a column across samples: they jump with length and batch, "
                  "and one-token generation has no batch. LayerNorm does not care."};
  const std::vector<int64_t> batches =
      bench.quick() ? std::vector<int64_t>{1, 16} : std::vector<int64_t>{1, 2, 4, 16, 64};
  statistics_jump(bench, report, batches);
  const Language28 language(bench.settings.seed);
  std::vector<Outcome> all;
  for (auto batch = batches.rbegin(); batch != batches.rend(); batch++)
    for (const NormKind kind : {NormKind::batch, NormKind::layer}) all.push_back({kind, *batch});
  side_by_side(bench, "training", all.size(),
               [&](size_t i, Runner& runner) { train_one(bench, language, all[i], runner); });
  std::reverse(all.begin(), all.end());
  show(all, report);
  double layer_gap = 0;
  for (const Outcome& o : all)
    if (o.norm == NormKind::layer) layer_gap = std::max(layer_gap, std::fabs(o.running - o.as_trained));
  const Outcome &small = of(all, NormKind::batch, 1), &batch = of(all, NormKind::batch, 16),
                &layer = of(all, NormKind::layer, 16);
  const double lost = batch.alone - batch.running, layer_lost = layer.alone - layer.running;
  report.checks.push_back(essential_check(
      {"LayerNorm:训练与推理的最大差距", "LayerNorm: largest gap between training and inference"}, layer_gap,
      false, 0));
  report.checks.push_back(essential_check({"BatchNorm 一次一个词、只有本批统计:损失增加",
                                           "BatchNorm, one token at a time with only its batch: loss added"},
                                          lost, true, kLost));
  report.checks.push_back(
      side_check({"LayerNorm 一次一个词:损失增加(换了文本,允许些许)",
                  "LayerNorm, one token at a time: loss added (other texts, so a little is allowed)"},
                 layer_lost, false, 0.2));
  report.checks.push_back(
      side_check({"BatchNorm 一条序列一批:训练与推理的差距",
                  "BatchNorm, one sequence per batch: gap between training and inference"},
                 std::fabs(small.running - small.as_trained), true, 0.02));
  const double jumped = report.checks.front().measured;
  report.because = {fmt::format("一条序列一批时列均值平均跳动 {} σ;BatchNorm 只有一个词时输出恒为 β,损失增加 "
                                "{};LayerNorm 训练与推理之差为 {}。",
                                number(jumped, 3), number(lost, 3), number(layer_gap, 2)),
                    fmt::format("With one sequence per batch, column means jump by {} σ on average; with a "
                                "single token BatchNorm's output is β whatever the token, which adds {} to "
                                "the loss; LayerNorm's gap between training and inference is {}.",
                                number(jumped, 3), number(lost, 3), number(layer_gap, 2))};
  report.notes.push_back(
      {"滑动统计能让 BatchNorm 在推理时用于一个词,代价是训练与推理算的不再是同一个函数(上表的差)。",
       "Running statistics let BatchNorm work on one token at inference; the price is that training and "
       "inference compute different functions (the gap above)."});
  if (bench.model == nullptr)
    report.notes.push_back(left_out("真实模型的列统计(这里用随机行)",
                                    "column statistics of a real model (random rows were used)"));
}

}  // namespace liuli::lab
