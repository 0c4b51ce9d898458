// Claim 11: γ and β start at 1 and 0 and are learned by gradient descent.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "train/lab/experiments.h"
#include "train/lab/side_by_side.h"
#include "train/lab/training.h"

namespace liuli::lab {
namespace {

constexpr int kBins = 24;
constexpr double kMoved = 0.01;

bool is_gamma(const Parameter& p) { return !p.is_matrix() && p.name.ends_with("weight"); }
bool is_beta(const Parameter& p) { return !p.is_matrix() && p.name.ends_with("bias"); }
bool is_norm(const Parameter& p) { return is_gamma(p) || is_beta(p); }

std::vector<float> gather(const Parameters& parameters, bool (*wanted)(const Parameter&)) {
  std::vector<float> all;
  for (const Parameter& p : parameters.all())
    if (wanted(p)) all.insert(all.end(), p.value, p.value + p.size);
  return all;
}

struct Spread {
  double mean = 0, deviation = 0, smallest = INFINITY, largest = -INFINITY,
         moved = 0;  // moved: mean |v − start|
};

Spread spread(const std::vector<float>& values, double start) {
  Spread s;
  const auto n = static_cast<double>(values.size());
  for (const float v : values) {
    const auto x = static_cast<double>(v);
    s.mean += x / n;
    s.moved += std::fabs(x - start) / n;
    s.smallest = std::min(s.smallest, x);
    s.largest = std::max(s.largest, x);
  }
  for (const float v : values)
    s.deviation += (static_cast<double>(v) - s.mean) * (static_cast<double>(v) - s.mean) / n;
  s.deviation = std::sqrt(s.deviation);
  return s;
}

LabSeries histogram(BilingualText label, const std::vector<float>& values, double low, double high) {
  LabSeries h{std::move(label), {}, std::vector<double>(kBins)};
  for (int i = 0; i < kBins; i++) h.x.push_back(low + (high - low) * (i + 0.5) / kBins);
  for (const float v : values) {
    const double at = (static_cast<double>(v) - low) / (high - low) * kBins;
    h.y[static_cast<size_t>(std::clamp(at, 0.0, kBins - 1.0))] += 100.0 / static_cast<double>(values.size());
  }
  return h;
}

std::vector<BilingualText> spread_row(BilingualText name, size_t n, const Spread& s) {
  return {std::move(name),    fmt::format("{}", n), number(s.mean), number(s.deviation),
          number(s.smallest), number(s.largest),    number(s.moved)};
}

LabTable spread_table(BilingualText title) {
  return {std::move(title),
          {{"参数", "parameter"},
           {"个数", "count"},
           {"均值", "mean"},
           {"标准差", "deviation"},
           {"最小", "smallest"},
           {"最大", "largest"},
           {"平均移动", "mean distance from start"}},
          {}};
}

struct Runs {
  double learned = 0, frozen = 0;  // held-out losses
  Spread gamma_before, beta_before;
  std::vector<float> gamma, beta;
};

Runs train_both(Bench& bench) {
  StackShape s;
  s.depth = 4;
  s.d_model = 64;
  s.d_ff = 128;
  s.vocab_size = Language28::kVocabulary;
  const Language28 language(bench.settings.seed);
  TrainingSettings t;
  t.steps = bench.quick() ? 60 : 400;
  t.learning_rate = 3e-3;
  t.warm_up = t.steps / 10;
  t.clip = 1;
  Runs runs;
  const size_t repeats = bench.quick() ? 1 : 3;
  std::vector<double> held_out(2 * repeats);
  side_by_side(bench, "training", 2 * repeats, [&](size_t i, Runner& runner) {
    const bool frozen = i % 2 == 1;
    RandomStack stack(s, bench.settings.seed + i / 2);
    TrainingSettings mine = t;
    if (frozen || bench.mutated()) mine.frozen = is_norm;
    if (i == 0) {
      runs.gamma_before = spread(gather(stack.parameters, is_gamma), 1);
      runs.beta_before = spread(gather(stack.parameters, is_beta), 0);
    }
    held_out[i] = train_stack(stack, runner, language, mine).held_out;
    if (i != 0) return;
    runs.gamma = gather(stack.parameters, is_gamma);
    runs.beta = gather(stack.parameters, is_beta);
  });
  for (size_t i = 0; i < 2 * repeats; i++)
    (i % 2 == 1 ? runs.frozen : runs.learned) += held_out[i] / static_cast<double>(repeats);
  return runs;
}

// γ of every norm of a real model, and the mean of each block's.
void real_gammas(Bench& bench, LabReport& report) {
  LabTable table = spread_table({"真实模型的 γ(" + bench.model->file_name() + ")",
                                 "γ of a real model (" + bench.model->file_name() + ")"});
  LabPlot by_block{
      {"真实模型:每块 γ 的均值", "A real model: mean γ by block"}, {"块", "block"}, {"γ"}, false, false, {}};
  LabPlot shape{{"真实模型 γ 的分布", "Distribution of γ in a real model"}, {"γ"}, {"%"}, false, false, {}};
  for (const std::string site : {"ln1", "ln1_post", "ln2", "ln2_post"}) {
    std::vector<float> all;
    LabSeries means{{site}, {}, {}};
    for (int64_t block = 0; block < bench.model->config().n_layers; block++) {
      const std::vector<float> gamma = bench.model->weight(fmt::format("blocks.{}.{}.weight", block, site));
      if (gamma.empty()) continue;
      means.x.push_back(static_cast<double>(block));
      means.y.push_back(spread(gamma, 1).mean);
      all.insert(all.end(), gamma.begin(), gamma.end());
    }
    if (all.empty()) continue;
    const Spread s = spread(all, 1);
    table.rows.push_back(spread_row({site}, all.size(), s));
    shape.series.push_back(histogram({site}, all, std::max(s.smallest, s.mean - 4 * s.deviation),
                                     std::min(s.largest, s.mean + 4 * s.deviation)));
    by_block.series.push_back(std::move(means));
  }
  report.tables.push_back(std::move(table));
  report.plots.push_back(std::move(shape));
  report.plots.push_back(std::move(by_block));
  const ModelConfig& c = bench.model->config();
  report.notes.push_back(
      {fmt::format(
           "这个模型每个归一化层有 {} 个数;文中的 2 × 4096 = 8192 是 LayerNorm 的 γ 与 β,RMSNorm 只有 γ。",
           c.d_model * (c.final_norm == NormKind::layer ? 2 : 1)),
       fmt::format("A norm of this model has {} numbers; the article's 2 × 4096 = 8192 are LayerNorm's γ and "
                   "β, RMSNorm has γ alone.",
                   c.d_model * (c.final_norm == NormKind::layer ? 2 : 1))});
}

}  // namespace

void gamma_beta(Bench& bench, LabReport& report) {
  report.title = {"γ 与 β", "γ and β"};
  report.question = {
      "γ、β 从 1 和 0 出发,真的会被学着移动吗?不让它们动,会损失多少?",
      "Do γ and β really move from 1 and 0 while a model learns, and what does it cost to freeze them?"};
  report.claim = {"γ 与 β 和一行一样长,从 1 和 0 开始,由梯度下降学得。",
                  "γ and β are as long as a row, start at 1 and 0, and are learned by gradient descent."};
  const Runs runs = train_both(bench);
  const Spread gamma = spread(runs.gamma, 1), beta = spread(runs.beta, 0);
  LabTable table =
      spread_table({"训练后的 γ 与 β(4 块,宽 64)", "γ and β after training (4 blocks, width 64)"});
  table.rows.push_back(spread_row({"γ, 开始", "γ, start"}, runs.gamma.size(), runs.gamma_before));
  table.rows.push_back(spread_row({"γ, 训练后", "γ, trained"}, runs.gamma.size(), gamma));
  table.rows.push_back(spread_row({"β, 开始", "β, start"}, runs.beta.size(), runs.beta_before));
  table.rows.push_back(spread_row({"β, 训练后", "β, trained"}, runs.beta.size(), beta));
  report.tables.push_back(std::move(table));
  LabPlot plot{{"训练后的分布", "Distribution after training"}, {"值", "value"}, {"%"}, false, false, {}};
  plot.series.push_back(histogram({"γ"}, runs.gamma, gamma.smallest, gamma.largest + 1e-9));
  plot.series.push_back(histogram({"β"}, runs.beta, beta.smallest, beta.largest + 1e-9));
  report.plots.push_back(std::move(plot));
  report.checks = {essential_check({"开始时 γ 离 1 的平均距离", "at the start, mean distance of γ from 1"},
                                   runs.gamma_before.moved, false, 0),
                   essential_check({"开始时 β 离 0 的平均距离", "at the start, mean distance of β from 0"},
                                   runs.beta_before.moved, false, 0),
                   essential_check({"训练后 γ 的平均移动", "after training, mean distance of γ from 1"},
                                   gamma.moved, true, kMoved),
                   essential_check({"训练后 β 的平均移动", "after training, mean distance of β from 0"},
                                   beta.moved, true, kMoved)};
  report.because = {
      fmt::format("训练后 γ 平均离开 1 有 {},β 平均离开 0 有 {}。冻结两者,验证损失 {},不冻结 {},相差 {}。",
                  number(gamma.moved, 3), number(beta.moved, 3), number(runs.frozen), number(runs.learned),
                  number(runs.frozen - runs.learned, 2)),
      fmt::format("After training γ is {} from 1 on average, β {} from 0. Frozen, the held-out loss is {}; "
                  "learned, {}: a difference of {}.",
                  number(gamma.moved, 3), number(beta.moved, 3), number(runs.frozen), number(runs.learned),
                  number(runs.frozen - runs.learned, 2))};
  if (bench.model != nullptr)
    real_gammas(bench, report);
  else
    report.notes.push_back(left_out("真实模型的 γ 分布", "γ of a real model"));
}

}  // namespace liuli::lab
