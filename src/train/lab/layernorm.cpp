// Claims 10 and 12: LayerNorm takes the mean and deviation of one row; 西安 by hand; the six printed rows.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ops/norm.h"
#include "trace/article_data.h"
#include "train/lab/experiments.h"
#include "train/lab/matrix_rows.h"
#include "train/lab/training.h"

namespace liuli::lab {
namespace {

using worked::kArticleOutputs;
constexpr double kLastPlace =
    0.0015;                    // one unit of the third decimal, and the rounding of the printed number
constexpr int64_t kShown = 8;  // tokens of a real model in the table

// Row by row, as the block does it; mutated: column by column, which is what a batch norm does.
MatrixRows normalise(Bench& bench, const MatrixRows& x, const std::vector<float>& gamma,
                     const std::vector<float>& beta, double eps) {
  OpContext ops = make_context(bench.runner, ProductClass::f32);
  MatrixRows y(x.rows().n, x.rows().width);
  const Norm norm{bench.mutated() ? NormKind::batch : NormKind::layer, gamma.data(), beta.data(),
                  static_cast<float>(eps)};
  if (!bench.mutated()) {
    norm_forward(ops, norm, x.rows(), y.rows());
    return y;
  }
  std::vector<float> mean(gamma.size()), var(gamma.size(), 1.0f);
  Norm by_columns = norm;
  by_columns.kind = NormKind::batch;
  batch_norm_train_forward(ops, by_columns, x.rows(), y.rows(), mean.data(), var.data());
  return y;
}

std::vector<float> floats(const std::vector<double>& x) { return {x.begin(), x.end()}; }

// The article's row among its other printed ones (whose inputs it does not give: outputs stand in for them).
void worked_row(Bench& bench, LabReport& report) {
  std::vector<std::vector<double>> rows = kArticleOutputs;
  rows[worked::kArticleTokenRow] = worked::kArticleRow;
  const MatrixRows x(rows);
  const MatrixRows y = normalise(bench, x, floats(worked::kArticleGamma), floats(worked::kArticleBeta), 0);
  NormInputs inputs;
  inputs.row = worked::kArticleRow;
  inputs.gamma = worked::kArticleGamma;
  inputs.beta = worked::kArticleBeta;
  const Explanation by_hand = explain_norm(inputs, Language::en);
  const std::vector<double>&mean_var = by_hand.step("mean_var")->values,
        &sigma = by_hand.step("sigma")->values, &hat = by_hand.step("normalized")->values;
  const std::vector<double>& printed = kArticleOutputs[worked::kArticleTokenRow];
  LabTable table{
      {"「西安」的四步", "西安 in four steps"},
      {{"维", "dimension"}, {"x"}, {"x − μ"}, {"(x − μ)/σ"}, {"γ"}, {"β"}, {"y"}, {"文中 y", "printed y"}},
      {}};
  double worst = 0;
  for (size_t i = 0; i < printed.size(); i++) {
    const auto ours = static_cast<double>(y.rows().row(worked::kArticleTokenRow)[i]);
    worst = std::max(worst, std::fabs(ours - printed[i]));
    table.rows.push_back({fmt::format("{}", i), number(worked::kArticleRow[i]),
                          number(worked::kArticleRow[i] - mean_var[0]), number(hat[i]),
                          number(worked::kArticleGamma[i]), number(worked::kArticleBeta[i]), number(ours),
                          number(printed[i])});
  }
  report.tables.push_back(std::move(table));
  report.checks.push_back(
      essential_check({"「西安」与文中数值的最大差", "西安: largest difference from the printed numbers"},
                      worst, false, kLastPlace));
  report.because = {fmt::format("「西安」:μ = {},σ = {},输出与文中最多差 {}。", number(mean_var[0]),
                                number(sigma[0]), number(worst, 2)),
                    fmt::format("西安: μ = {}, σ = {}; the output differs from the print by {} at most. ",
                                number(mean_var[0]), number(sigma[0]), number(worst, 2))};
}

// x̂ = (y − β) / γ of the printed outputs has mean 0 and variance 1, as far as three decimals tell.
void printed_rows(LabReport& report) {
  LabTable table{
      {"文中六行:还原 x̂ 后的均值与方差", "The six printed rows: mean and variance of x̂, worked back"},
      {{"行", "row"}, {"y"}, {"mean x̂"}, {"var x̂"}},
      {}};
  double worst = 0;
  for (size_t r = 0; r < kArticleOutputs.size(); r++) {
    double mean = 0, var = 0;
    std::string shown;
    const size_t n = kArticleOutputs[r].size();
    std::vector<double> hat(n);
    for (size_t i = 0; i < n; i++) {
      hat[i] = (kArticleOutputs[r][i] - worked::kArticleBeta[i]) / worked::kArticleGamma[i];
      mean += hat[i] / static_cast<double>(n);
      shown += (i > 0 ? "  " : "") + number(kArticleOutputs[r][i]);
    }
    for (const double h : hat) var += (h - mean) * (h - mean) / static_cast<double>(n);
    worst = std::max({worst, std::fabs(mean), std::fabs(var - 1)});
    table.rows.push_back({fmt::format("{}", r), shown, number(mean, 2), number(var, 5)});
  }
  report.tables.push_back(std::move(table));
  report.checks.push_back(side_check({"文中六行的 x̂ 离均值 0、方差 1 的最大偏差",
                                      "six printed rows: largest distance of x̂ from mean 0, variance 1"},
                                     worst, false, 0.003));
}

// What changes in row 0 when all other rows change: nothing, if each row is normalised by itself.
void independence(Bench& bench, LabReport& report, const MatrixRows& x) {
  const auto width = static_cast<size_t>(x.rows().width);
  const std::vector<float> ones(width, 1.0f), zeros(width, 0.0f);
  const MatrixRows before = normalise(bench, x, ones, zeros, 1e-5);
  MatrixRows changed(x.rows().n, x.rows().width);
  for (int64_t i = 0; i < x.rows().n; i++)
    for (int64_t j = 0; j < x.rows().width; j++)
      changed.rows().row(i)[j] = x.rows().row(i)[j] * (i == 0 ? 1.0f : 7.0f) + (i == 0 ? 0.0f : 3.0f);
  const MatrixRows after = normalise(bench, changed, ones, zeros, 1e-5);
  double moved = 0, mean = 0, variance = 0;
  for (int64_t j = 0; j < x.rows().width; j++)
    moved = std::max(moved, std::fabs(static_cast<double>(before.rows().row(0)[j]) -
                                      static_cast<double>(after.rows().row(0)[j])));
  for (int64_t i = 0; i < x.rows().n; i++) {
    const RowStatistics s = row_statistics(before.rows(), i);
    mean = std::max(mean, std::fabs(s.mean));
    variance = std::max(variance, std::fabs(s.sigma * s.sigma - 1));
  }
  report.checks.push_back(essential_check(
      {"改动其他各行时第 0 行的最大变化", "largest change of row 0 when all other rows change"}, moved, false,
      0));
  report.checks.push_back(essential_check(
      {"归一化后各行均值离 0 的最大偏差", "after the norm, largest row mean (distance from 0)"}, mean, false,
      1e-4));
  report.checks.push_back(essential_check(
      {"归一化后各行方差离 1 的最大偏差", "after the norm, largest distance of a row's variance from 1"},
      variance, false, 1e-2));
  report.because.zh += fmt::format("把其他各行都改掉,第 0 行的变化是 {};各行均值离 0 不超过 {}。",
                                   number(moved, 2), number(mean, 2));
  report.because.en +=
      fmt::format("With every other row changed, row 0 moves by {}; row means are within {} of 0.",
                  number(moved, 2), number(mean, 2));
}

// The rows of a model's stream with their own μ and σ; those of the middle block are given back.
MatrixRows model_rows(Bench& bench, LabReport& report) {
  RealModel& model = *bench.model;
  std::vector<int> ids = model.tokenize("今天西安的天气很好,适合出去走走。");
  const auto last = static_cast<int>(model.config().n_layers) - 1;
  const std::vector<int> blocks = {0, last / 2, last};
  std::vector<std::string> points;
  for (const int block : blocks) points.push_back(fmt::format("blocks.{}.resid_mid", block));
  const auto traced = model.trace(ids, points);
  LabTable table{
      {"真实模型:每行自己的 μ 与 σ", "A real model: each row's own μ and σ"}, {{"词", "token"}}, {}};
  for (const int block : blocks) {
    table.columns.push_back({fmt::format("μ, 块 {}", block), fmt::format("μ, block {}", block)});
    table.columns.push_back({fmt::format("σ, 块 {}", block), fmt::format("σ, block {}", block)});
  }
  std::vector<MatrixRows> streams;
  for (const auto& t : traced) streams.emplace_back(t.values, t.shape.back());
  LabPlot plot{
      {"真实模型:每个词的 σ", "A real model: σ of every token"}, {"词", "token"}, {"σ"}, false, true, {}};
  for (size_t b = 0; b < blocks.size(); b++) {
    LabSeries series{{fmt::format("块 {}", blocks[b]), fmt::format("block {}", blocks[b])}, {}, {}};
    for (int64_t i = 0; i < streams[b].rows().n; i++)
      series.y.push_back(row_statistics(streams[b].rows(), i).sigma);
    series.x = counting(series.y.size());
    plot.series.push_back(std::move(series));
  }
  for (int64_t i = 0; i < std::min<int64_t>(kShown, static_cast<int64_t>(ids.size())); i++) {
    auto& row =
        table.rows.emplace_back(std::vector<BilingualText>{model.token_text(ids[static_cast<size_t>(i)])});
    for (const auto& stream : streams) {
      const RowStatistics s = row_statistics(stream.rows(), i);
      row.insert(row.end(), {number(s.mean, 3), number(s.sigma, 4)});
    }
  }
  report.tables.push_back(std::move(table));
  report.plots.push_back(std::move(plot));
  return std::move(streams[1]);
}

}  // namespace

void layernorm(Bench& bench, LabReport& report) {
  report.title = {"层归一化", "Layer normalisation"};
  report.question = {"LayerNorm 是不是每个词自己算自己的?文中的数对吗?",
                     "Does LayerNorm treat each token by itself, and are the article's numbers right?"};
  report.claim = {"LayerNorm 取一行(一个词)的均值与标准差,(x − μ)/σ ⊙ γ + β;各行互不影响。",
                  "LayerNorm takes mean and standard deviation of one row (one token), (x − μ)/σ ⊙ γ + β; "
                  "rows do not affect each other."};
  worked_row(bench, report);
  printed_rows(report);
  if (bench.model != nullptr) {
    independence(bench, report, model_rows(bench, report));
    if (bench.model->config().final_norm == NormKind::rms)
      report.notes.push_back(
          {"这个模型用的是 RMSNorm:不减 μ,除以均方根;上表的 μ 与 σ 是按 LayerNorm 的定义算的。",
           "This model uses RMSNorm: no μ is taken off, and it divides by the root mean square; μ and σ "
           "above are LayerNorm's."});
  } else {
    report.notes.push_back(left_out("真实模型各行的 μ 与 σ", "a real model's rows with their μ and σ"));
    independence(bench, report, MatrixRows::random(bench.settings.seed, 16, 64));
  }
}

}  // namespace liuli::lab
