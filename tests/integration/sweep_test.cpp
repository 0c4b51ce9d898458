// Activation patching: batched branches give the bits of whole runs with one hook, and find what they should.
#include <cmath>
#include <filesystem>
#include <fstream>

#include "golden_support.h"
#include "liuli/sweep.h"

namespace liuli::golden {
namespace {

const std::vector<int> kClean = {3, 17, 44, 5, 101, 9, 250, 33, 7};
const std::vector<int> kCorrupt = {3, 17, 44, 8, 101, 9, 251, 33, 7};

// One thread: whole runs of tiny models are nothing but forks and joins.
Engine load_tiny(const std::string& name, ProductClassChoice product_class) {
  return load(golden_path("tiny/" + name), product_class, false, 1);
}

std::vector<SweepPair> two_pairs() {
  return {{kClean, kCorrupt, 12, 30}, {{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 9, 3, 4, 5, 6, 7, 8, 9}, 5, 12}};
}

class Sweeps : public testing::TestWithParam<const char*> {};

TEST_P(Sweeps, GiveTheBitsOfWholeRunsWithAHookInEveryClass) {
  for (const auto product_class :
       {ProductClassChoice::prompt, ProductClassChoice::decode, ProductClassChoice::f32}) {
    Engine engine = load_tiny(GetParam(), product_class);
    for (const char* point :
         {"resid_pre", "attn.q", "attn.z", "attn_out", "resid_mid", "mlp_out", "resid_post"}) {
      SweepSettings settings;
      settings.point = point;
      const SweepResult batched = sweep(engine, two_pairs(), settings);
      settings.one_by_one = true;
      const SweepResult whole = sweep(engine, two_pairs(), settings);
      EXPECT_TRUE(batched.values == whole.values) << point;
      EXPECT_TRUE(batched.clean == whole.clean && batched.corrupt == whole.corrupt);
      EXPECT_GT(batched.known, 0);
      EXPECT_LT(batched.known, batched.patches * 2 / 3);
      settings.one_by_one = false;
      settings.batch_rows = 10;
      EXPECT_TRUE(sweep(engine, two_pairs(), settings).values == whole.values) << point;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Families, Sweeps,
                         testing::Values("llama", "qwen3", "gemma3", "olmo2", "gpt2", "qwen2moe", "mixtral",
                                         "deepseek_v3"),
                         [](const auto& family) { return std::string(family.param); });

TEST(Sweep, OfKeysValuesAndPatternsGoesByHead) {
  Engine engine = load_tiny("llama", ProductClassChoice::prompt);
  for (const char* point : {"attn.k", "attn.v", "attn.pattern", "attn.scores", "attn.z"}) {
    SweepSettings settings;
    settings.point = point;
    settings.by_head = true;
    settings.metric = SweepMetric::kl;
    const SweepResult batched = sweep(engine, two_pairs(), settings);
    EXPECT_GT(batched.heads.size(), 1u);
    settings.one_by_one = true;
    EXPECT_TRUE(batched.values == sweep(engine, two_pairs(), settings).values) << point;
  }
}

TEST(Sweep, OfANormsStagesKnowsTheOtherRowsQueries) {
  for (const char* model : {"llama", "gpt2", "qwen3"}) {
    Engine engine = load_tiny(model, ProductClassChoice::f32);
    for (const char* point : {"ln1.sigma", "ln1.normalized", "ln1.out", "ln2.out"}) {
      SweepSettings settings;
      settings.point = point;
      const SweepResult batched = sweep(engine, two_pairs(), settings);
      settings.one_by_one = true;
      EXPECT_TRUE(batched.values == sweep(engine, two_pairs(), settings).values) << model << " " << point;
    }
  }
}

TEST(Sweep, OverLongPromptsSharesWholePagesOfTheCache) {
  Engine engine = load_tiny("llama", ProductClassChoice::prompt);
  SweepPair pair;
  for (int i = 0; i < 150; i++) {
    pair.clean.push_back((i * 37 + 11) % 256);
    pair.corrupt.push_back(i % 3 == 0 ? (i * 31 + 5) % 256 : pair.clean.back());
  }
  pair.answer = 3;
  SweepSettings settings;
  settings.metric = SweepMetric::probability;
  settings.positions = {0, 5, 63, 64, 65, 100, 127, 128, -2, -1};
  const SweepResult batched = sweep(engine, {pair}, settings);
  settings.one_by_one = true;
  EXPECT_TRUE(batched.values == sweep(engine, {pair}, settings).values);
}

// All of a block's output replaced at the last token is the other run's answer.
TEST(Sweep, BringsTheCleanAnswerBackWhereEverythingPassesThrough) {
  Engine engine = load_tiny("gpt2", ProductClassChoice::f32);
  SweepSettings settings;
  settings.point = "resid_post";
  settings.layers = {static_cast<int>(engine.config().n_layers) - 1};
  settings.positions = {0, -1};
  for (const bool into_clean : {false, true}) {
    settings.into_clean = into_clean;
    const SweepResult result = sweep(engine, {{kClean, kCorrupt, 12, 30}}, settings);
    EXPECT_EQ(result.values[0], into_clean ? result.clean[0] : result.corrupt[0]);
    EXPECT_EQ(result.values[1], into_clean ? result.corrupt[0] : result.clean[0]);
    EXPECT_EQ(result.effect[1], into_clean ? 0 : 1);
  }
  std::vector<float> last;
  engine.logits(kClean, [&](int, std::span<const float> row) { last.assign(row.begin(), row.end()); });
  settings.into_clean = false;
  EXPECT_EQ(sweep(engine, {{kClean, kCorrupt, 12, 30}}, settings).clean[0],
            static_cast<double>(last[12]) - static_cast<double>(last[30]));
}

TEST(Sweep, GoesOnWhereItsJournalEnds) {
  Engine engine = load_tiny("llama", ProductClassChoice::f32);
  const std::string path = testing::TempDir() + "liuli_sweep_journal";
  std::filesystem::remove(path);
  SweepSettings settings;
  const SweepResult whole = sweep(engine, two_pairs(), settings);
  settings.journal = path;
  settings.batch_rows = 20;
  int batches = 0;
  settings.on_progress = [&](int64_t, int64_t) {
    if (++batches == 3) throw Error(ErrorCode::cancelled, "enough");
  };
  EXPECT_THROW(sweep(engine, two_pairs(), settings), Error);
  std::ofstream(path, std::ios::app) << "{\"at\": [1, 2";  // killed while writing
  settings.on_progress = {};
  const SweepResult resumed = sweep(engine, two_pairs(), settings);
  EXPECT_GT(resumed.resumed, 0);
  EXPECT_LT(resumed.resumed, resumed.patches);
  EXPECT_TRUE(resumed.values == whole.values);
  EXPECT_EQ(sweep(engine, two_pairs(), settings).resumed + whole.known, whole.patches);
  settings.point = "mlp_out";
  EXPECT_THROW(sweep(engine, two_pairs(), settings), Error);
  std::filesystem::remove(path);
}

TEST(Sweep, MeasuresWhatItsMetricSays) {
  Engine engine = load_tiny("llama", ProductClassChoice::f32);
  const auto last_logits = [&](const std::vector<int>& ids) {
    std::vector<double> last;
    engine.logits(ids, [&](int, std::span<const float> row) { last.assign(row.begin(), row.end()); });
    return last;
  };
  const auto probabilities = [](std::vector<double> x) {
    double sum = 0;
    for (double& v : x) sum += v = std::exp(v);
    for (double& v : x) v /= sum;
    return x;
  };
  const auto clean = last_logits(kClean), corrupt = last_logits(kCorrupt);
  const auto p = probabilities(clean), q = probabilities(corrupt);
  double kl = 0;
  for (size_t i = 0; i < p.size(); i++) kl += p[i] * std::log(p[i] / q[i]);
  const auto measured = [&](SweepMetric metric) {
    SweepSettings settings;
    settings.metric = metric;
    settings.layers = {0};
    settings.positions = {3};
    const SweepResult result = sweep(engine, {{kClean, kCorrupt, 12, 30}}, settings);
    return std::make_pair(result.clean[0], result.corrupt[0]);
  };
  EXPECT_EQ(measured(SweepMetric::logit), std::make_pair(clean[12], corrupt[12]));
  EXPECT_EQ(measured(SweepMetric::logit_difference),
            std::make_pair(clean[12] - clean[30], corrupt[12] - corrupt[30]));
  EXPECT_NEAR(measured(SweepMetric::probability).first, p[12], 1e-6 * p[12]);
  EXPECT_NEAR(measured(SweepMetric::kl).first, 0, 1e-6);
  EXPECT_NEAR(measured(SweepMetric::kl).second, kl, 1e-5 * kl);
}

void expect_error(Engine& engine, const std::vector<SweepPair>& pairs, const SweepSettings& settings,
                  const std::string& words) {
  try {
    sweep(engine, pairs, settings);
    FAIL() << "accepted; expected: " << words;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
  }
}

TEST(Sweep, RefusesWhatHasNoMeaning) {
  Engine engine = load_tiny("llama", ProductClassChoice::f32);
  const SweepPair pair{kClean, kCorrupt, 12, 30};
  SweepSettings settings;
  expect_error(engine, {}, settings, "no pairs");
  expect_error(engine, {{kClean, {1, 2}, 1, 2}}, settings, "9 tokens, the corrupt one 2");
  expect_error(engine, {{kClean, kCorrupt, 12, -1}}, settings, "wrong");
  expect_error(engine, {{kClean, kClean, 12, 30}}, settings, "no difference");
  settings.layers = {99};
  expect_error(engine, {pair}, settings, "layer 99");
  settings.layers = {};
  settings.positions = {9};
  expect_error(engine, {pair}, settings, "position 9");
  settings.positions = {};
  settings.point = "resid_prae";
  expect_error(engine, {pair}, settings, "resid_pre");
  settings.point = "resid_pre";
  settings.by_head = true;
  expect_error(engine, {pair}, settings, "no heads");
  Engine bert = load_tiny("bert", ProductClassChoice::f32);
  expect_error(bert, {pair}, {}, "hidden states");
}

}  // namespace
}  // namespace liuli::golden
