// Two runs beside each other: against a recomputation in long double, and with a weight changed on purpose.
#include "report/diff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>

#include "formats/temporary_folder.h"
#include "formats/weight_source.h"
#include "model/load.h"
#include "report/logit_diff.h"
#include "trace/point_selection.h"
#include "trace/recorder.h"

namespace liuli {
namespace {

std::string tiny(const std::string& folder, const std::string& name) {
  return std::string(LIULI_SOURCE_DIR) + "/tests/golden/tiny/" + folder + "/gguf/" + name;
}
const std::string kF32 = tiny("llama", "llama.F32.gguf"), kQ4 = tiny("llama", "llama.Q4_0.gguf");

struct Loaded {
  Runner runner{2};
  Model model;
  RunClasses classes;

  explicit Loaded(const std::string& path, ProductClass c = ProductClass::f32)
      : model(load_model(open_weights(path), runner.pool,
                         {c == ProductClass::exact ? WeightForm::file_rows : WeightForm::panels, {}})),
        classes{c, c} {}
  ComparedRun run() { return {model, runner, classes}; }

  // All logits, and the values of all places, of one pass.
  std::vector<std::vector<float>> logits(const std::vector<int>& ids, Probe* listener = nullptr) {
    Sequence sequence(model, classes);
    FeedOptions options;
    options.every_logit = true;
    options.listener = listener;
    const Rows rows = sequence.feed(runner, ids, options);
    std::vector<std::vector<float>> out;
    for (int64_t i = 0; i < rows.n; i++) out.emplace_back(rows.row(i), rows.row(i) + rows.width);
    return out;
  }
  std::vector<TracedTensor> trace(const std::vector<int>& ids) {
    Recorder recorder(model.config, all_places(model.config), {static_cast<int64_t>(ids.size())}, 1 << 30);
    logits(ids, &recorder);
    return recorder.take();
  }
};

std::vector<int> some_ids(int n) {
  std::vector<int> ids;
  for (int i = 0; i < n; i++) ids.push_back((i * 37 + i * i * 5 + 11) % 347);
  return ids;
}

DiffSettings settings_of(int context) {
  DiffSettings settings;
  settings.context = context;
  return settings;
}

std::vector<long double> probabilities(const std::vector<float>& logits) {
  std::vector<long double> p;
  long double sum = 0;
  for (float x : logits) p.push_back(expl(static_cast<long double>(x))), sum += p.back();
  for (long double& x : p) x /= sum;
  return p;
}

std::vector<int> ranking(const std::vector<float>& logits) {
  std::vector<int> order(logits.size());
  for (size_t i = 0; i < order.size(); i++) order[i] = static_cast<int>(i);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  return order;
}

TEST(Diff, AModelAgainstItselfDoesNotDiffer) {
  Loaded a(kQ4, ProductClass::prompt), b(kQ4, ProductClass::prompt);
  const DiffReport r = compare_runs(a.run(), b.run(), some_ids(50), settings_of(512));
  EXPECT_EQ(r.positions, 50);
  EXPECT_EQ(r.max_kl, 0);
  EXPECT_EQ(r.top1_agreement, 1);
  EXPECT_EQ(r.top5_overlap, 1);
  EXPECT_EQ(r.perplexity, r.reference_perplexity);
  EXPECT_GT(r.perplexity, 1);
  EXPECT_TRUE(r.worst.empty());
  EXPECT_EQ(r.points.size(), all_places(a.model.config).size());
  for (const PointDiff& point : r.points) EXPECT_EQ(point.position_error, 0) << point.name;
  EXPECT_FALSE(r.first_divergence);
}

TEST(Diff, TwoRunsMayShareOneRunner) {
  Loaded a(kF32);
  const DiffReport r = compare_runs(a.run(), a.run(), some_ids(20), settings_of(512));
  EXPECT_EQ(r.max_kl, 0);
  EXPECT_FALSE(r.first_divergence);
}

TEST(Diff, PredictionsAgreeWithARecomputation) {
  Loaded a(kQ4, ProductClass::prompt), b(kF32);
  const std::vector<int> ids = some_ids(40);
  const DiffReport r = compare_runs(a.run(), b.run(), ids, settings_of(512));
  const auto logits_a = a.logits(ids), logits_b = b.logits(ids);
  std::vector<double> kl;
  long double nll_a = 0, nll_b = 0, same = 0, common = 0;
  for (size_t i = 0; i < ids.size(); i++) {
    const auto p = probabilities(logits_a[i]), q = probabilities(logits_b[i]);
    long double sum = 0;
    for (size_t t = 0; t < p.size(); t++) sum += q[t] * logl(q[t] / p[t]);
    kl.push_back(static_cast<double>(sum));
    EXPECT_NEAR(r.kl[i], kl.back(), 1e-12 * kl.back() + 1e-14);
    const auto rank_a = ranking(logits_a[i]), rank_b = ranking(logits_b[i]);
    same += rank_a[0] == rank_b[0];
    for (int t = 0; t < 5; t++)
      common += std::count(rank_a.begin(), rank_a.begin() + 5, rank_b[static_cast<size_t>(t)]);
    if (i + 1 == ids.size()) break;
    nll_a -= logl(p[static_cast<size_t>(ids[i + 1])]);
    nll_b -= logl(q[static_cast<size_t>(ids[i + 1])]);
  }
  std::sort(kl.begin(), kl.end());
  EXPECT_GT(kl.front(), 0);
  EXPECT_NEAR(r.median_kl, (kl[19] + kl[20]) / 2, 1e-12);
  EXPECT_NEAR(r.p99_kl, kl[38] + 0.61 * (kl[39] - kl[38]), 1e-12);  // 0.99 · 39 = 38.61
  EXPECT_NEAR(r.max_kl, kl.back(), 1e-12);
  EXPECT_NEAR(r.top1_agreement, static_cast<double>(same / 40), 1e-12);
  EXPECT_NEAR(r.top5_overlap, static_cast<double>(common / 200), 1e-12);
  EXPECT_NEAR(r.perplexity, static_cast<double>(expl(nll_a / 39)), 1e-8 * r.perplexity);
  EXPECT_NEAR(r.reference_perplexity, static_cast<double>(expl(nll_b / 39)), 1e-8 * r.perplexity);
  EXPECT_NEAR(r.nll_difference, static_cast<double>((nll_a - nll_b) / 39), 1e-10);
}

TEST(Diff, TheWorstPositionsAreTheWorstAndShowBothPredictions) {
  Loaded a(kQ4, ProductClass::prompt), b(kF32);
  const std::vector<int> ids = some_ids(40);
  const DiffReport r = compare_runs(a.run(), b.run(), ids, settings_of(512));
  ASSERT_EQ(r.worst.size(), 5u);
  std::vector<double> sorted = r.kl;
  std::sort(sorted.rbegin(), sorted.rend());
  const auto logits_a = a.logits(ids), logits_b = b.logits(ids);
  for (size_t i = 0; i < 5; i++) {
    const PositionDiff& worst = r.worst[i];
    const auto at = static_cast<size_t>(worst.position);
    EXPECT_EQ(worst.kl, sorted[i]);
    EXPECT_EQ(worst.kl, r.kl[at]);
    EXPECT_EQ(worst.token, ids[at]);
    EXPECT_EQ(worst.next, at + 1 < ids.size() ? ids[at + 1] : -1);
    const auto rank = ranking(logits_a[at]), reference_rank = ranking(logits_b[at]);
    const auto p = probabilities(logits_a[at]);
    for (size_t t = 0; t < 5; t++) {
      EXPECT_EQ(worst.top[t].token, rank[t]);
      EXPECT_EQ(worst.reference_top[t].token, reference_rank[t]);
      EXPECT_NEAR(worst.top[t].probability, static_cast<double>(p[static_cast<size_t>(rank[t])]), 1e-12);
    }
  }
}

TEST(Diff, InnerValuesAgreeWithARecomputation) {
  Loaded a(kQ4, ProductClass::f32), b(kF32);
  const std::vector<int> ids = some_ids(30);
  DiffSettings settings = settings_of(512);
  settings.chunk = 30;  // with one pass the scores before the mask are all there, as in a trace
  const DiffReport r = compare_runs(a.run(), b.run(), ids, settings);
  const auto traced_a = a.trace(ids), traced_b = b.trace(ids);
  ASSERT_EQ(r.points.size(), traced_a.size());
  for (size_t k = 0; k < r.points.size(); k++) {
    const TracedTensor &x = traced_a[k], &y = traced_b[k];
    ASSERT_EQ(r.points[k].name, x.name);
    long double difference = 0, norm = 0;
    float largest = 0;
    for (size_t i = 0; i < x.values.size(); i++) {
      if (std::isinf(y.values[i])) continue;
      difference += powl(static_cast<long double>(x.values[i]) - y.values[i], 2);
      norm += powl(y.values[i], 2);
      largest = std::max(largest, std::fabs(x.values[i] - y.values[i]));
    }
    const double expected = difference == 0 ? 0 : static_cast<double>(sqrtl(difference / norm));
    EXPECT_NEAR(r.points[k].error, expected, 1e-9 * expected) << x.name;
    if (difference == 0) continue;
    // The coordinate leads to the values.
    size_t at = 0;
    ASSERT_EQ(r.points[k].coordinate.size(), x.shape.size()) << x.name;
    for (size_t axis = 0; axis < x.shape.size(); axis++)
      at = at * static_cast<size_t>(x.shape[axis]) + static_cast<size_t>(r.points[k].coordinate[axis]);
    EXPECT_EQ(r.points[k].value, static_cast<double>(x.values[at])) << x.name;
    EXPECT_EQ(r.points[k].reference, static_cast<double>(y.values[at])) << x.name;
    EXPECT_EQ(std::fabs(x.values[at] - y.values[at]), largest) << x.name;
  }
  ASSERT_TRUE(r.first_divergence);
  EXPECT_EQ(r.points[*r.first_divergence].name, "embed");  // the table of embeddings is quantised too
}

TEST(Diff, PassesOfAnyLengthGiveTheSameReport) {
  Loaded a(kQ4, ProductClass::prompt), b(kF32);
  const std::vector<int> ids = some_ids(40);
  DiffSettings settings = settings_of(512);
  settings.trace_positions = 20;
  const DiffReport whole = compare_runs(a.run(), b.run(), ids, settings);
  settings.chunk = 7;
  const DiffReport pieces = compare_runs(a.run(), b.run(), ids, settings);
  EXPECT_EQ(whole.kl, pieces.kl);
  EXPECT_EQ(whole.traced_positions, 20);
  for (size_t k = 0; k < whole.points.size(); k++) {
    if (whole.points[k].name.find("attn.scores") != std::string::npos) continue;  // those count unmasked keys
    EXPECT_NEAR(whole.points[k].error, pieces.points[k].error, 1e-12) << whole.points[k].name;
    EXPECT_EQ(whole.points[k].coordinate, pieces.points[k].coordinate) << whole.points[k].name;
  }
}

TEST(Diff, EachWindowStartsFromNothing) {
  Loaded a(kQ4, ProductClass::prompt), b(kF32);
  const std::vector<int> ids = some_ids(25);
  const DiffReport r = compare_runs(a.run(), b.run(), ids, settings_of(10));
  EXPECT_EQ(r.windows, 3);
  EXPECT_EQ(r.predicted_tokens, 9 + 9 + 4);
  EXPECT_EQ(r.traced_positions, 10);
  const std::vector<int> second(ids.begin() + 10, ids.begin() + 20);
  const DiffReport alone = compare_runs(a.run(), b.run(), second, settings_of(10));
  EXPECT_EQ(std::vector<double>(r.kl.begin() + 10, r.kl.begin() + 20), alone.kl);
}

// A copy of the F32 model with some values of one tensor changed.
std::string changed_copy(const TemporaryFolder& folder, const std::string& tensor) {
  std::ifstream in(kF32, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const auto source = open_weights(kF32);
  const TensorInfo* info = source->find(tensor);
  for (int64_t i = 0; i < info->elements(); i += 5) {
    float value;
    char* at = bytes.data() + info->file_offset + i * 4;
    std::memcpy(&value, at, 4);
    value *= 1.25f;
    std::memcpy(at, &value, 4);
  }
  return folder.write("changed.gguf", bytes);
}

TEST(Diff, AChangedWeightIsFoundWhereItActs) {
  const TemporaryFolder folder("diff-test");
  const std::pair<const char*, const char*> cases[] = {{"token_embd.weight", "embed"},
                                                       {"blk.0.attn_norm.weight", "blocks.0.ln1.scaled"},
                                                       {"blk.1.attn_k.weight", "blocks.1.attn.k"},
                                                       {"blk.1.attn_v.weight", "blocks.1.attn.v"},
                                                       {"blk.1.attn_output.weight", "blocks.1.attn.out_proj"},
                                                       {"blk.1.ffn_gate.weight", "blocks.1.mlp.pre"},
                                                       {"blk.1.ffn_up.weight", "blocks.1.mlp.pre_linear"},
                                                       {"blk.1.ffn_down.weight", "blocks.1.mlp.out"},
                                                       {"output_norm.weight", "ln_final.scaled"},
                                                       {"output.weight", "logits"}};
  Loaded good(kF32);
  for (const auto& [tensor, point] : cases) {
    Loaded bad(changed_copy(folder, tensor));
    const DiffReport r = compare_runs(bad.run(), good.run(), some_ids(12), settings_of(512));
    ASSERT_TRUE(r.first_divergence) << tensor;
    EXPECT_EQ(r.points[*r.first_divergence].name, point) << tensor;
    for (size_t i = 0; i < *r.first_divergence; i++) EXPECT_EQ(r.points[i].error, 0) << r.points[i].name;
    EXPECT_GT(r.mean_kl, 1e-6) << tensor;
  }
}

TEST(Diff, AThresholdDecidesWhatDiverges) {
  Loaded a(kF32), b(kF32, ProductClass::exact);
  DiffSettings settings = settings_of(512);
  const DiffReport usual = compare_runs(a.run(), b.run(), some_ids(30), settings);
  EXPECT_EQ(usual.threshold, 1e-3);
  EXPECT_FALSE(usual.first_divergence);
  settings.threshold = 1e-12;
  const DiffReport strict = compare_runs(a.run(), b.run(), some_ids(30), settings);
  ASSERT_TRUE(strict.first_divergence);
  EXPECT_GT(strict.points[*strict.first_divergence].error, 1e-12);
  Loaded prompt(kF32, ProductClass::prompt);
  EXPECT_EQ(compare_runs(prompt.run(), b.run(), some_ids(3), settings_of(512)).threshold, 3e-2);
}

TEST(Diff, ModelsOfOtherShapeAreComparedByTheirPredictions) {
  Loaded a(kF32), b(tiny("qwen2", "qwen2.F32.gguf"));
  const DiffReport r = compare_runs(a.run(), b.run(), some_ids(10), settings_of(512));
  EXPECT_GT(r.mean_kl, 0);
  EXPECT_TRUE(r.points.empty());
  EXPECT_EQ(r.not_traced, "the models differ in n_layers: 2 and 3");
}

TEST(CompareLogits, WhatIsNoNumberCountsAsInfinite) {
  const std::vector<float> good = {1, 2, 3}, bad = {1, NAN, 3}, masked = {1, -INFINITY, 3};
  EXPECT_EQ(compare_logits(bad, good, -1).kl, INFINITY);
  EXPECT_EQ(compare_logits(good, bad, -1).kl, INFINITY);
  EXPECT_EQ(compare_logits(masked, good, -1).kl, INFINITY);  // the reference expects what a rules out
  EXPECT_NEAR(compare_logits(good, masked, -1).kl,
              std::log1p(std::exp(2.0) / (std::exp(1.0) + std::exp(3.0))), 1e-12);
  EXPECT_EQ(compare_logits(masked, masked, -1).kl, 0);
  EXPECT_EQ(compare_logits(good, good, 2).n_top, 3);
}

}  // namespace
}  // namespace liuli
