// Quantised files run, and importance matrices hold what the model's own points show.
#include <algorithm>
#include <filesystem>
#include <numeric>

#include "convert/imatrix.h"
#include "formats/temporary_folder.h"
#include "golden_support.h"
#include "liuli/convert.h"

namespace liuli::golden {
namespace {

std::vector<int> some_tokens(int n, int vocab_size) {
  std::vector<int> ids;
  for (int i = 0; i < n; i++) ids.push_back((i * 37 + i * i * 11 + 5) % vocab_size);
  return ids;
}

std::string tiny(const std::string& family) {
  return golden_path("tiny/" + family + "/gguf/" + family + ".F32.gguf");
}

/// Σ over tokens of a traced value's squares, by column.
std::vector<double> column_squares(Engine& engine, const std::vector<int>& ids, const std::string& point) {
  const TracedTensor traced = engine.trace(ids, {point}).at(0);
  const auto tokens = static_cast<size_t>(traced.shape[0]);
  const size_t columns = traced.values.size() / tokens;
  std::vector<double> sums(columns);
  for (size_t i = 0; i < traced.values.size(); i++)
    sums[i % columns] += double{traced.values[i]} * traced.values[i];
  return sums;
}

ImportanceMatrix collect(Engine& engine, const std::vector<int>& ids, int chunk) {
  const TemporaryFolder folder("collect");
  ImatrixSettings settings;
  settings.chunk = chunk;
  settings.dataset = "made up";
  collect_imatrix(engine, ids, folder.file("im.gguf"), settings);
  return read_imatrix(folder.file("im.gguf"));
}

void expect_sums(const ImportanceMatrix& matrix, const std::string& tensor,
                 const std::vector<double>& expected) {
  ASSERT_TRUE(matrix.entries.contains(tensor)) << tensor;
  const std::vector<float>& sums = matrix.entries.at(tensor).sums;
  ASSERT_EQ(sums.size(), expected.size()) << tensor;
  for (size_t i = 0; i < sums.size(); i++)
    ASSERT_NEAR(sums[i], expected[i], 1e-5 * expected[i] + 1e-12) << tensor;
}

TEST(CollectImatrix, SumsTheSquaresOfEveryMatrixInput) {
  Engine engine = load(tiny("llama"), ProductClassChoice::f32);
  const std::vector<int> ids = some_tokens(40, engine.config().vocab_size);
  const ImportanceMatrix matrix = collect(engine, ids, 40);
  const std::pair<const char*, const char*> inputs[] = {
      {"blk.1.attn_q.weight", "blocks.1.ln1.out"},     {"blk.1.attn_v.weight", "blocks.1.ln1.out"},
      {"blk.0.attn_output.weight", "blocks.0.attn.z"}, {"blk.0.ffn_gate.weight", "blocks.0.ln2.out"},
      {"blk.0.ffn_down.weight", "blocks.0.mlp.post"},  {"output.weight", "ln_final.out"}};
  for (const auto& [tensor, point] : inputs) expect_sums(matrix, tensor, column_squares(engine, ids, point));
  EXPECT_EQ(matrix.entries.at("blk.0.ffn_down.weight").counts, std::vector<float>{40});
  EXPECT_EQ(matrix.datasets, std::vector<std::string>{"made up"});
}

TEST(CollectImatrix, WindowsStartAfreshAndAShortRestIsLeftOut) {
  Engine engine = load(tiny("llama"), ProductClassChoice::f32);
  const std::vector<int> ids = some_tokens(50, engine.config().vocab_size);
  const ImportanceMatrix matrix = collect(engine, ids, 20);
  EXPECT_EQ(matrix.chunk_count, 2);
  EXPECT_EQ(matrix.chunk_size, 20);
  std::vector<double> expected = column_squares(engine, {ids.begin(), ids.begin() + 20}, "blocks.1.ln2.out");
  const std::vector<double> second =
      column_squares(engine, {ids.begin() + 20, ids.begin() + 40}, "blocks.1.ln2.out");
  for (size_t i = 0; i < expected.size(); i++) expected[i] += second[i];
  expect_sums(matrix, "blk.1.ffn_up.weight", expected);
}

TEST(CollectImatrix, AFamilyWithoutANormBeforeABranchReadsTheResidualStream) {
  Engine engine = load(tiny("olmo2"), ProductClassChoice::f32);
  const std::vector<int> ids = some_tokens(24, engine.config().vocab_size);
  const ImportanceMatrix matrix = collect(engine, ids, 24);
  expect_sums(matrix, "blk.1.attn_k.weight", column_squares(engine, ids, "blocks.1.resid_pre"));
  expect_sums(matrix, "blk.1.ffn_up.weight", column_squares(engine, ids, "blocks.1.resid_mid"));
}

TEST(CollectImatrix, ExpertsAreCountedByTheTokensTheyWereGiven) {
  Engine engine = load(tiny("deepseek_v3"), ProductClassChoice::f32);
  const std::vector<int> ids = some_tokens(30, engine.config().vocab_size);
  const ImportanceMatrix matrix = collect(engine, ids, 30);
  const ImportanceMatrix::Entry& gate = matrix.entries.at("blk.1.ffn_gate_exps.weight");
  const ImportanceMatrix::Entry& down = matrix.entries.at("blk.1.ffn_down_exps.weight");
  const size_t experts = gate.counts.size();
  ASSERT_GT(experts, 1u);
  const double given = std::accumulate(gate.counts.begin(), gate.counts.end(), 0.0);
  const double per_token = given / 30;
  EXPECT_EQ(per_token, std::round(per_token));
  EXPECT_GE(per_token, 1);
  EXPECT_EQ(down.counts, gate.counts);
  // Every token's input is summed once per expert that got it.
  const std::vector<double> all = column_squares(engine, ids, "blocks.1.ln2.out");
  for (size_t c = 0; c < all.size(); c++) {
    double sum = 0;
    for (size_t e = 0; e < experts; e++) sum += gate.sums[e * all.size() + c];
    ASSERT_NEAR(sum, per_token * all[c], 1e-4 * sum) << c;
  }
}

TEST(CollectImatrix, RefusesWhatItCannotRun) {
  Engine engine = load(tiny("llama"), ProductClassChoice::f32);
  const TemporaryFolder folder("collect-bad");
  ImatrixSettings settings;
  EXPECT_THROW(collect_imatrix(engine, {}, folder.file("im.gguf"), settings), Error);
  settings.chunk = 1 << 20;
  EXPECT_THROW(collect_imatrix(engine, {1, 2}, folder.file("im.gguf"), settings), Error);
  EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::path(folder.file("x")).parent_path()));
}

/// Largest difference of the logits, relative to their spread.
double logit_error(const std::string& path, const std::string& reference) {
  Engine a = load(path, ProductClassChoice::f32), b = load(reference, ProductClassChoice::f32);
  const std::vector<int> ids = some_tokens(24, b.config().vocab_size);
  const auto rows_a = all_logits(a, ids), rows_b = all_logits(b, ids);
  double error = 0, total = 0;
  for (size_t i = 0; i < rows_a.size(); i++) {
    for (size_t j = 0; j < rows_a[i].size(); j++) {
      error += std::pow(double{rows_a[i][j]} - rows_b[i][j], 2);
      total += std::pow(double{rows_b[i][j]}, 2);
    }
  }
  return std::sqrt(error / total);
}

TEST(QuantizedModel, RunsAndDriftsLessWithMoreBits) {
  const TemporaryFolder folder("quantized");
  double previous = 1;
  for (const char* type : {"q4_0", "q5_1", "q8_0", "f16"}) {
    QuantizeSettings settings;
    settings.type = type;
    quantize_file(tiny("llama"), folder.file("q.gguf"), settings);
    const double error = logit_error(folder.file("q.gguf"), tiny("llama"));
    EXPECT_GT(error, 0) << type;
    EXPECT_LT(error, 0.6 * previous) << type;
    previous = error;
  }
  EXPECT_LT(previous, 1e-3);
}

TEST(QuantizedModel, ExpertsQuantiseWithTheirOwnImportance) {
  const TemporaryFolder folder("quantized-experts");
  Engine engine = load(tiny("deepseek_v3"), ProductClassChoice::f32);
  ImatrixSettings windows;
  windows.chunk = 32;
  collect_imatrix(engine, some_tokens(64, engine.config().vocab_size), folder.file("im.gguf"), windows);
  QuantizeSettings settings;
  settings.type = "q8_0";  // with fewer bits the router of so small a model sends tokens elsewhere
  settings.imatrix = folder.file("im.gguf");
  const QuantizeReport report = quantize_file(tiny("deepseek_v3"), folder.file("q.gguf"), settings);
  const auto stack = std::find_if(report.tensors.begin(), report.tensors.end(),
                                  [](const auto& t) { return t.name == "blk.1.ffn_down_exps.weight"; });
  ASSERT_NE(stack, report.tensors.end());
  EXPECT_TRUE(stack->weighted_error.has_value());
  EXPECT_LT(logit_error(folder.file("q.gguf"), tiny("deepseek_v3")), 0.3);
}

}  // namespace
}  // namespace liuli::golden
