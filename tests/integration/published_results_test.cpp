// What others published about transformers, seen again in real models: induction heads (Olsson et al. 2022), attention
// sinks (Xiao et al. 2023), massive activations and what removing them does (Sun et al. 2024). Figures: docs/lens.md.
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "golden_support.h"
#include "liuli/attribution.h"

namespace liuli::golden {
namespace {

struct Published {
  const char* model;
  double induction;  // at least, of the best head
  double sink;       // at least: attention to position 0, mean of one layer's heads
  int layer;         // after which the massive coordinates are edited
  std::vector<int> coordinates;
  bool behind_first;   // at every position but the first, otherwise only at the first
  double destruction;  // perplexity without the coordinates over that with them, at least
};

std::ostream& operator<<(std::ostream& out, const Published& p) { return out << p.model; }

class PublishedResults : public testing::TestWithParam<Published> {
 protected:
  Engine engine = load(real_model(GetParam().model), ProductClassChoice::automatic);
  std::vector<int> text() const {
    std::ifstream file(std::string(LIULI_SOURCE_DIR) + "/LICENSE");
    std::stringstream all;
    all << file.rdbuf();
    std::vector<int> ids = engine.tokenize(all.str());
    EXPECT_GT(ids.size(), 512u);
    ids.resize(512);
    return ids;
  }
};

INSTANTIATE_TEST_SUITE_P(Models, PublishedResults,
                         testing::Values(Published{"smollm2", 0.8, 0.7, 11, {507}, false, 1000},
                                         Published{"qwen2.5", 0.9, 0.4, 3, {62, 490}, false, 1.5},
                                         Published{"gemma3", 0.8, 0.7, 14, {163}, true, 2}),
                         [](const auto& i) {
                           std::string name = i.param.model;
                           std::erase(name, '.');
                           return name;
                         });

TEST_P(PublishedResults, RepeatedRandomTokensShowInductionHeadsAndASink) {
  const std::vector<int> ids = repeated_random_tokens(engine, 50, 2, 1);
  const HeadsReport report = summarize_heads(engine, ids);
  EXPECT_GE(report.repeated_positions, 50);
  double best = 0;
  std::vector<double> sink(static_cast<size_t>(engine.config().n_layers));
  for (const HeadSummary& head : report.heads) {
    best = std::max(best, head.induction);
    sink[static_cast<size_t>(head.layer)] += head.on_first / static_cast<double>(engine.config().n_heads);
  }
  EXPECT_GE(best, GetParam().induction);
  EXPECT_GE(*std::max_element(sink.begin(), sink.end()), GetParam().sink);
}

TEST_P(PublishedResults, TheFirstPositionHoldsTheMassiveCoordinates) {
  const LedgerReport ledger = residual_ledger(engine, text());
  for (const int coordinate : GetParam().coordinates) {
    bool found = false;
    for (const MassiveActivation& m : ledger.massive)
      found |= m.position == 0 && m.coordinate == coordinate && m.first_layer <= GetParam().layer &&
               m.last_layer >= GetParam().layer;
    EXPECT_TRUE(found) << coordinate;
  }
  ASSERT_FALSE(ledger.massive.empty());
  EXPECT_EQ(ledger.massive.front().position, 0);
  EXPECT_EQ(ledger.massive.front().coordinate, GetParam().coordinates.front());
}

TEST_P(PublishedResults, RemovingMassiveCoordinatesDestroysPerplexityTheirMeanDoesNot) {
  const Published& p = GetParam();
  const std::vector<int> ids = text();
  const std::string point = fmt::format("blocks.{}.resid_post", p.layer);
  // The mean is that of other texts of the same kind: the later parts of this one, each as a text of its own.
  std::vector<double> mean(p.coordinates.size());
  constexpr int kParts = 8;
  for (int part = 0; part < kParts; part++) {
    const std::vector<int> other(ids.begin() + part * 60, ids.begin() + part * 60 + 40);
    const auto rows = engine.trace(other, {point}).at(0);
    const auto n_rows = static_cast<size_t>(rows.shape[0]), width = static_cast<size_t>(rows.shape[1]);
    const size_t begin = p.behind_first ? 1 : 0, end = p.behind_first ? n_rows : 1;
    for (size_t c = 0; c < mean.size(); c++)
      for (size_t i = begin; i < end; i++)
        mean[c] += static_cast<double>(rows.values[i * width + static_cast<size_t>(p.coordinates[c])]) /
                   static_cast<double>(kParts * (end - begin));
  }
  auto perplexity = [&](auto&& value) {
    const Hook hook{{point}, [&](const HookValue& v) {
                      for (int64_t i = 0; i < v.shape[0]; i++) {
                        if ((v.first_position + i > 0) != p.behind_first) continue;
                        for (size_t c = 0; c < p.coordinates.size(); c++)
                          v.at({i, p.coordinates[c]}) = value(c, v.at({i, p.coordinates[c]}));
                      }
                    }};
    return engine.perplexity(ids, 512, {}, {hook}).perplexity;
  };
  const double plain = perplexity([](size_t, float was) { return was; }),
               zero = perplexity([](size_t, float) { return 0.0f; }),
               at_mean = perplexity([&](size_t c, float) { return static_cast<float>(mean[c]); });
  std::printf("  %s: perplexity %.2f, without the massive coordinates %.2f, at their mean %.2f\n", p.model,
              plain, zero, at_mean);
  EXPECT_GE(zero, p.destruction * plain);
  EXPECT_LE(at_mean, 1.1 * plain);
}

}  // namespace
}  // namespace liuli::golden
