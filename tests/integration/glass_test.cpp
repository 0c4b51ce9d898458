// Lens, attribution, ledger and heads on every tiny model: what they split up adds up to what the model computed.
#include <cmath>

#include <fmt/format.h>

#include "golden_support.h"
#include "liuli/attribution.h"
#include "trace/attention_summary.h"
#include "trace/ledger.h"
#include "trace/slices.h"

namespace liuli::golden {
namespace {

const std::vector<int> kIds = {3, 17, 44, 5, 101, 9, 250, 33, 7, 17, 44, 90};

Engine tiny(const std::string& name) { return load(golden_path("tiny/" + name), ProductClassChoice::f32); }

class EveryAdditiveModel : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Families, EveryAdditiveModel,
                         testing::Values("llama", "llama_bias", "llama3_rope", "mistral", "qwen2", "qwen3",
                                         "gemma3", "gemma3_lin", "olmo2", "gpt2", "deepseek_v3",
                                         "deepseek_v3_noq", "qwen2moe", "qwen3moe", "mixtral", "phi3",
                                         "smollm3"),
                         [](const auto& i) { return std::string(i.param); });

// The run's logit as the sum of the terms predicts it: after the soft cap.
double capped(double logit, double cap) { return cap > 0 ? cap * std::tanh(logit / cap) : logit; }

TEST_P(EveryAdditiveModel, AttributionsAddUpToTheLogit) {
  Engine engine = tiny(GetParam());
  for (const AttributeBy by :
       {AttributeBy::layer, AttributeBy::head, AttributeBy::neuron, AttributeBy::token})
    for (const int position : {-1, 0, 4}) {
      SCOPED_TRACE(fmt::format("by {}, position {}", static_cast<int>(by), position));
      const AttributionReport one = attribute_logit(engine, kIds, {61, -1, by, position});
      EXPECT_NEAR(one.sum, one.logit, 1e-4);
      EXPECT_NEAR(capped(one.sum, one.soft_cap), one.run_logit, 1e-4);
      const AttributionReport other = attribute_logit(engine, kIds, {200, -1, by, position}),
                              difference = attribute_logit(engine, kIds, {61, 200, by, position});
      ASSERT_EQ(difference.terms.size(), one.terms.size());
      EXPECT_NEAR(difference.sum, one.sum - other.sum, 1e-6);
      EXPECT_GT(std::fabs(one.sum), 1e-3) << "nothing was attributed";
    }
}

TEST_P(EveryAdditiveModel, HeadsAndNeuronsAddUpToTheirLayer) {
  Engine engine = tiny(GetParam());
  const AttributionReport layers = attribute_logit(engine, kIds, {61, -1, AttributeBy::layer}),
                          heads = attribute_logit(engine, kIds, {61, -1, AttributeBy::head}),
                          neurons = attribute_logit(engine, kIds, {61, -1, AttributeBy::neuron});
  auto sum_below = [](const AttributionReport& report, const std::string& prefix,
                      const std::vector<std::string>& parts) {
    double sum = 0;
    for (const AttributionTerm& term : report.terms)
      for (const std::string& part : parts)
        if (term.name.rfind(prefix + part, 0) == 0) sum += term.value;
    return sum;
  };
  for (const AttributionTerm& layer : layers.terms) {
    if (layer.layer < 0) continue;
    const std::string prefix = fmt::format("blocks.{}.", layer.layer);
    if (layer.name.ends_with("attn_out"))
      EXPECT_NEAR(sum_below(heads, prefix, {"attn.", "ln1_post."}), layer.value, 5e-5) << layer.name;
    else
      EXPECT_NEAR(sum_below(neurons, prefix, {"mlp.", "ln2_post."}), layer.value, 5e-5) << layer.name;
  }
}

TEST_P(EveryAdditiveModel, LedgerAddsUpToTheLastStream) {
  Engine engine = tiny(GetParam());
  LedgerSettings settings;
  settings.coordinates = {0, 5};
  const LedgerReport ledger = residual_ledger(engine, kIds, settings);
  ASSERT_EQ(ledger.positions.size(), kIds.size());
  EXPECT_LE(ledger.largest_difference, 1e-5 * std::max(1.0, ledger.largest_value));
  for (size_t i = 0; i < kIds.size(); i++) {
    double share = 0, first = 0;
    for (const LedgerTerm& term : ledger.terms) {
      share += term.share[i];
      first += term.coordinates[2 * i + 1];
    }
    EXPECT_NEAR(share, 1, 1e-5);
    EXPECT_NEAR(first, ledger.final_coordinates[2 * i + 1], 1e-4);
  }
}

TEST_P(EveryAdditiveModel, LensOfTheLastBlockIsTheModelItself) {
  Engine engine = tiny(GetParam());
  const LensReport lens = logit_lens(engine, kIds);
  const auto logits = all_logits(engine, kIds);
  ASSERT_EQ(lens.rows.size(), 1 + 2 * static_cast<size_t>(engine.config().n_layers));
  const LensRow& last = lens.rows.back();
  for (size_t i = 0; i < kIds.size(); i++) {
    const size_t usable =
        static_cast<size_t>(std::min<int64_t>(engine.vocab_size(), engine.config().vocab_size));
    double sum = 0;
    for (size_t j = 0; j < usable; j++) sum += std::exp(static_cast<double>(logits[i][j]));
    const auto top = static_cast<size_t>(last.cells[i].top_token);
    for (size_t j = 0; j < usable; j++) EXPECT_LE(logits[i][j], logits[i][top]);
    EXPECT_NEAR(last.cells[i].top_probability, std::exp(static_cast<double>(logits[i][top])) / sum, 1e-6);
    EXPECT_EQ(last.cells[i].final_rank, 1);
    EXPECT_EQ(lens.followed[i], i + 1 < kIds.size() ? kIds[i + 1] : last.cells[i].top_token);
  }
}

TEST_P(EveryAdditiveModel, HeadSummariesAreTheMeansOfTheTracedPatterns) {
  Engine engine = tiny(GetParam());
  const HeadsReport report = summarize_heads(engine, kIds);
  ASSERT_EQ(report.heads.size(), static_cast<size_t>(engine.config().n_layers * engine.config().n_heads));
  EXPECT_EQ(report.repeated_positions, 2);  // 17 and 44 come twice
  const size_t n = kIds.size();
  for (const HeadSummary& head : report.heads) {
    const auto pattern =
        engine.trace(kIds, {fmt::format("blocks.{}.attn.pattern[{}]", head.layer, head.head)}).at(0).values;
    double first = 0;
    for (size_t i = 0; i < n; i++) {
      double row = 0;
      for (size_t j = 0; j < n; j++) row += static_cast<double>(pattern[i * n + j]);
      EXPECT_NEAR(row, 1, 1e-5);
      if (i > 0) first += static_cast<double>(pattern[i * n]);
    }
    EXPECT_NEAR(head.on_first, first / static_cast<double>(n - 1), 1e-6);
    // 17 stands at 1 and 9, 44 at 2 and 10: what followed is at 2 and 3.
    EXPECT_NEAR(head.induction, static_cast<double>(pattern[9 * n + 2] + pattern[10 * n + 3]) / 2, 1e-6);
  }
}

TEST(PostNorm, LedgerAndAttributionAreRefusedWithTheReason) {
  Engine bert = tiny("bert");
  for (const auto& work : {std::function<void()>([&] { residual_ledger(bert, kIds); }),
                           std::function<void()>([&] { attribute_logit(bert, kIds, {61}); })}) {
    try {
      work();
      ADD_FAILURE() << "not refused";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::unsupported);
    }
  }
  try {
    residual_ledger(bert, kIds);
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("post-norm"), std::string::npos) << e.what();
  }
}

// One head that puts everything on the token after the last occurrence, another one everything on position 0.
TEST(AttentionSummaries, FindTheConstructedInductionHead) {
  const std::vector<int> ids = {5, 6, 7, 8, 6, 7, 8};
  const auto n = static_cast<int64_t>(ids.size());
  std::vector<float> pattern(static_cast<size_t>(2 * n * n));
  for (int64_t i = 0; i < n; i++) {
    pattern[static_cast<size_t>(i * n + (i > 3 ? i - 2 : 0))] = 1;
    pattern[static_cast<size_t>((n + i) * n)] = 1;
  }
  AttentionSummary summary(ids);
  const Place place{Point::attn_pattern, 4};
  ASSERT_TRUE(summary.wants(place));
  summary.see({place, Rows{pattern.data(), n, n, n}, 0, 2, n * n});
  const HeadsReport report = summary.report();
  ASSERT_EQ(report.heads.size(), 2u);
  EXPECT_EQ(report.repeated_positions, 3);
  EXPECT_EQ(report.heads[0].name, "blocks.4.attn.head.0");
  EXPECT_DOUBLE_EQ(report.heads[0].induction, 1);
  EXPECT_DOUBLE_EQ(report.heads[0].prefix_match, 1);
  EXPECT_DOUBLE_EQ(report.heads[0].duplicate, 0);
  EXPECT_DOUBLE_EQ(report.heads[0].on_first, 0.5);
  EXPECT_DOUBLE_EQ(report.heads[1].induction, 0);
  EXPECT_DOUBLE_EQ(report.heads[1].on_first, 1);
  EXPECT_DOUBLE_EQ(report.heads[1].distance, 3);
  EXPECT_DOUBLE_EQ(report.heads[1].entropy, 0);
}

TEST(MassiveActivations, AreFoundWithTheirLayersAndWriter) {
  std::vector<float> quiet(40), loud(40), written(40);
  for (size_t j = 0; j < 40; j++) quiet[j] = loud[j] = j % 2 ? 0.5f : -0.5f;
  loud[23] = -900;  // position 1 of two, coordinate 3
  written[23] = -899.5f;
  const auto found = find_massive(
      {7, 8}, {{"r0", 0, quiet}, {"r1", 1, loud}, {"r2", 2, loud}},
      {{"embed", -1, quiet}, {"blocks.1.mlp_out", 1, written}, {"blocks.2.mlp_out", 2, loud}}, 100);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].position, 8);
  EXPECT_EQ(found[0].coordinate, 3);
  EXPECT_EQ(found[0].first_layer, 1);
  EXPECT_EQ(found[0].last_layer, 2);
  EXPECT_DOUBLE_EQ(found[0].value, -900);
  EXPECT_DOUBLE_EQ(found[0].ratio, 1800);
  EXPECT_EQ(found[0].written_by, "blocks.1.mlp_out");
  EXPECT_TRUE(found[0].meets_published_bound);
}

TEST(Slices, AreReadAsPythonReadsThem) {
  const std::string what = "axis";
  EXPECT_EQ(parse_slice(":", 3, what), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(parse_slice("3:7", 5, what), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(parse_slice("-1, 0,0", 5, what), (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(parse_slice("::2", 5, what), (std::vector<int64_t>{0, 2, 4}));
  for (const char* wrong : {"5", "-6", "x", "", "3:2", "::0", "1:2:3:4", "1.5"})
    EXPECT_THROW(parse_slice(wrong, 5, what), Error) << wrong;
}

// Every slice against the same numbers picked out of the whole value, in one pass and in several.
TEST(SlicedTraces, HoldTheSameNumbersAsTheWholeValue) {
  Engine engine = tiny("llama");
  const auto n = static_cast<int64_t>(kIds.size());
  const auto whole = engine.trace(kIds, {"blocks.1.attn.pattern", "blocks.1.attn.z"});
  const auto& z = whole.at(1);
  for (const int chunk : {512, 5}) {
    TraceSettings settings;
    settings.chunk = chunk;
    const auto cut =
        engine.trace(kIds, {"blocks.1.attn.pattern[:,2,:5]", "blocks.1.attn.z[3:7,-1]"}, settings);
    ASSERT_EQ(cut.at(0).shape, (std::vector<int64_t>{whole[0].shape[0], 5}));
    for (int64_t h = 0; h < whole[0].shape[0]; h++)
      for (int64_t k = 0; k < 5; k++)
        EXPECT_EQ(cut[0].values.at(static_cast<size_t>(h * 5 + k)),
                  whole[0].values.at(static_cast<size_t>((h * n + 2) * n + k)));
    ASSERT_EQ(cut.at(1).shape, (std::vector<int64_t>{4, z.shape[2]}));
    for (int64_t i = 0; i < 4; i++)
      for (int64_t d = 0; d < z.shape[2]; d++)
        EXPECT_EQ(cut[1].values.at(static_cast<size_t>(i * z.shape[2] + d)),
                  z.values.at(static_cast<size_t>(((i + 3) * z.shape[1] + z.shape[1] - 1) * z.shape[2] + d)));
  }
  TraceSettings settings;
  settings.slices = {"3:7", "0,2", "1"};
  const auto cut = engine.trace(kIds, {"blocks.*.attn.z", "blocks.*.attn.v"}, settings);
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_EQ(cut[0].name, "blocks.1.attn.v");
  EXPECT_EQ(cut[1].shape, (std::vector<int64_t>{4, 2, z.shape[2]}));
  EXPECT_EQ(engine.trace_bytes(n, {"blocks.*.attn.z"}, 0, settings.slices), 4 * 2 * z.shape[2] * 4);
  settings.max_bytes = 100;
  EXPECT_THROW(engine.trace(kIds, {"blocks.*.attn.z"}, settings), Error);
}

// Collects what a sink is given.
struct KeepingSink : TraceSink {
  std::vector<TracedTensor> tensors;
  void begin(const std::vector<TracedTensor>& all) override {
    tensors = all;
    for (TracedTensor& t : tensors) {
      int64_t n = 1;
      for (const int64_t d : t.shape) n *= d;
      t.values.resize(static_cast<size_t>(n));
    }
  }
  void write(size_t tensor, int64_t first, const float* values, int64_t n) override {
    std::copy_n(values, n, tensors.at(tensor).values.begin() + first);
  }
};

TEST(TraceSinks, GetTheNumbersThatAreKeptOtherwise) {
  Engine engine = tiny("deepseek_v3");
  const auto kept = engine.trace(kIds, {"*"});
  KeepingSink sink;
  TraceSettings settings;
  settings.sink = &sink;
  const auto names = engine.trace(kIds, {"*"}, settings);
  ASSERT_EQ(sink.tensors.size(), kept.size());
  for (size_t i = 0; i < kept.size(); i++) {
    EXPECT_TRUE(names.at(i).values.empty());
    EXPECT_EQ(sink.tensors[i].name, kept[i].name);
    ASSERT_EQ(sink.tensors[i].values, kept[i].values) << kept[i].name;
  }
}

}  // namespace
}  // namespace liuli::golden
