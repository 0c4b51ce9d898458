// The two sides of a roofline: what the machine can do is measured, what tokens ask of it is counted.
#include "liuli/machine_limits.h"

#include <set>

#include "golden_support.h"
#include "liuli/shape.h"

namespace liuli::golden {
namespace {

TEST(MachineLimits, EveryLevelInUseHasAPeakAndAllAreFinite) {
  const MachineLimits limits = measure_machine_limits(1, 0.01);
  EXPECT_EQ(limits.threads, 1);
  EXPECT_TRUE(std::isfinite(limits.read_bytes_per_second) && limits.read_bytes_per_second > 0);
  std::set<std::pair<std::string, std::string>> names;
  std::set<std::string> levels;
  for (const ArithmeticPeak& peak : limits.peaks) {
    EXPECT_TRUE(std::isfinite(peak.ops_per_second) && peak.ops_per_second > 0) << peak.name;
    EXPECT_TRUE(names.insert({peak.name, peak.isa}).second) << peak.name << " of " << peak.isa << " twice";
    levels.insert(peak.isa);
  }
  EXPECT_TRUE(levels.count(active_isa())) << active_isa();
  EXPECT_TRUE(levels.count("scalar"));
  double best = 0;
  for (const ArithmeticPeak& peak : limits.peaks) best = std::max(best, peak.ops_per_second);
  EXPECT_EQ(best, std::max(limits.highest(false), limits.highest(true)));
}

TEST(MachineLimits, SettingsWithoutSenseAreErrors) {
  EXPECT_THROW(measure_machine_limits(0), Error);
  EXPECT_THROW(measure_machine_limits(1, 0), Error);
}

double plan_bytes(const Engine& engine) {
  double bytes = 0;
  for (const PlannedWeight& weight : engine.plan().weights) bytes += static_cast<double>(weight.run_bytes);
  return bytes;
}

TEST(TokenWork, ADenseModelReadsEveryWeightButAnUntiedEmbedding) {
  const std::string path = golden_path("tiny/llama/gguf/llama.Q4_0.gguf");
  Engine engine = load(path, ProductClassChoice::automatic, false, 1);
  double expected = plan_bytes(engine);
  if (!engine.config().tied_embeddings)
    expected -= static_cast<double>(engine.plan().weights.front().run_bytes);
  EXPECT_EQ(token_work(engine, 0, 1, 1).weight_bytes, expected);
  EXPECT_EQ(token_work(engine, 0, 7, 7).weight_bytes, expected) << "a pass reads them once";
}

TEST(TokenWork, OperationsAreThoseOfTheShape) {
  const std::string path = golden_path("tiny/llama/gguf/llama.Q4_0.gguf");
  Engine engine = load(path, ProductClassChoice::automatic, false, 1);
  const ModelShape shape = shape_of_file(path);
  const TokenWork work = token_work(engine, 20, 3, 3);
  EXPECT_NEAR(work.product_ops + work.output_ops, 3 * shape.product_flops, 1);
  EXPECT_NEAR(work.attention_ops, (21 + 22 + 23) * shape.attention_flops, 1);
  const ModelConfig& c = engine.config();
  const int64_t behind_keys = c.d_model * (c.n_heads * c.head_dim + 3 * c.d_ff);
  EXPECT_NEAR(
      work.last_block_ops,
      3 * 2.0 * static_cast<double>(behind_keys) + work.attention_ops / static_cast<double>(c.n_layers), 1);
}

TEST(TokenWork, WhereAllRowsOfTheLastBlockGoOnNoneIsLeftOut) {
  Engine engine = load(golden_path("tiny/bert/gguf/bert.F32.gguf"), ProductClassChoice::automatic, false, 1);
  EXPECT_EQ(token_work(engine, 0, 3, 3).last_block_ops, 0);
}

TEST(TokenWork, AWindowHidesKeys) {
  Engine engine =
      load(golden_path("tiny/gemma3/gguf/gemma3.Q8_0.gguf"), ProductClassChoice::automatic, false, 1);
  const ModelConfig& config = engine.config();
  double keys = 0;
  int windows = 0;
  for (const LayerPlan& layer : config.layers) {
    keys += layer.sliding_window > 0 ? std::min(layer.sliding_window, 100) : 100;
    windows += layer.sliding_window > 0 && layer.sliding_window < 100;
  }
  ASSERT_GT(windows, 0);
  const auto heads = static_cast<double>(config.n_heads * config.head_dim);
  EXPECT_NEAR(token_work(engine, 99, 1, 1).attention_ops, 4 * heads * keys, 1);
}

TEST(TokenWork, ABatchMeetsMoreExpertsThanOneTokenAndNeverMoreThanThereAre) {
  Engine engine =
      load(golden_path("tiny/qwen2moe/gguf/qwen2moe.F16.gguf"), ProductClassChoice::automatic, false, 1);
  const double one = token_work(engine, 0, 1, 1).weight_bytes,
               four = token_work(engine, 0, 1, 4).weight_bytes;
  EXPECT_LT(one, four);
  EXPECT_LT(four, plan_bytes(engine));
  EXPECT_EQ(token_work(engine, 0, 1, 1).product_ops, token_work(engine, 0, 1, 4).product_ops);
}

TEST(TokenWork, ATokenizerAloneDoesNoWork) {
  Engine words = Engine::load_tokenizer(golden_path("tiny/llama/gguf/llama.Q4_0.gguf"));
  EXPECT_THROW(token_work(words, 0, 1, 1), Error);
}

}  // namespace
}  // namespace liuli::golden
