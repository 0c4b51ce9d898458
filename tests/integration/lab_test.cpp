// The experiments: their verdicts, that a run of the opposite turns each of them round, and their gradients against
// another implementation's.
#include <nlohmann/json.hpp>

#include "golden_support.h"
#include "liuli/lab.h"
#include "model/config_in_gguf.h"
#include "model/load.h"
#include "train/lab/experiments.h"
#include "train/lab/training.h"
#include "train/lab/warm_up.h"

namespace liuli::golden {
namespace {

LabReport quick(const std::string& name, bool mutate, int threads = 2) {
  LabSettings settings;
  settings.quick = true;
  settings.mutate = mutate;
  settings.threads = threads;
  settings.model = real_model("smollm2");
  return run_lab({name}, settings).front();
}

void expect_complete(const LabReport& r) {
  for (const BilingualText* text : {&r.title, &r.question, &r.claim, &r.because}) {
    EXPECT_FALSE(text->zh.empty()) << r.name;
    EXPECT_FALSE(text->en.empty()) << r.name;
  }
  EXPECT_FALSE(r.checks.empty()) << r.name;
  EXPECT_FALSE(r.tables.empty()) << r.name;
  EXPECT_FALSE(r.plots.empty()) << r.name;
  for (const LabTable& t : r.tables)
    for (const auto& row : t.rows) EXPECT_EQ(row.size(), t.columns.size()) << r.name << ": " << t.title.en;
  for (const LabPlot& p : r.plots)
    for (const LabSeries& s : p.series) EXPECT_EQ(s.x.size(), s.y.size()) << r.name << ": " << p.title.en;
}

struct Expected {
  const char* name;
  Verdict verdict;
};
void PrintTo(const Expected& e, std::ostream* out) { *out << e.name; }

class Lab : public testing::TestWithParam<Expected> {};

TEST_P(Lab, FindsWhatTheNumbersSayAndTheOppositeOfItsOpposite) {
  const LabReport report = quick(GetParam().name, false);
  expect_complete(report);
  EXPECT_EQ(report.verdict, GetParam().verdict) << report.because.en;
  EXPECT_EQ(report.model, "smollm2.gguf");
  const LabReport mutated = quick(GetParam().name, true);
  expect_complete(mutated);
  EXPECT_EQ(mutated.verdict, Verdict::contradicted) << mutated.because.en;
  EXPECT_NE(mutated.because.en, report.because.en);
}
// pre- and post-norm: at initialisation gradients do not vanish. layers: grammar is not settled before meaning.
INSTANTIATE_TEST_SUITE_P(
    Claims, Lab,
    testing::Values(Expected{"explosion", Verdict::holds}, Expected{"layernorm", Verdict::holds},
                    Expected{"prenorm-postnorm", Verdict::partly}, Expected{"gamma-beta", Verdict::holds},
                    Expected{"batchnorm-layernorm", Verdict::holds}, Expected{"shape", Verdict::holds},
                    Expected{"layers", Verdict::partly}, Expected{"residual", Verdict::holds}),
    [](const auto& e) {
      std::string name = e.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// Whether warm-up is needed is read off the runs: with pre- and post-norm's names changed round, so are the two numbers.
TEST(Lab, JudgesWarmUpByTheRunsOfEachPlacement) {
  const auto from_warm_up = [](const LabReport& r, const std::string& placement) {
    const auto found = std::find_if(r.checks.begin(), r.checks.end(), [&](const LabCheck& c) {
      return c.what.en.rfind(placement + " needs", 0) == 0;
    });
    EXPECT_NE(found, r.checks.end()) << placement;
    return found->measured;
  };
  const LabReport plain = quick("prenorm-postnorm", false), turned = quick("prenorm-postnorm", true);
  const double pre = from_warm_up(plain, "pre-norm"), post = from_warm_up(plain, "post-norm");
  EXPECT_NE(pre, post);
  EXPECT_EQ(from_warm_up(turned, "pre-norm"), post);
  EXPECT_EQ(from_warm_up(turned, "post-norm"), pre);
}

// … and each of the two checks says yes and no, as gains at two rates have it.
TEST(Lab, SaysThatWarmUpIsNeededWhereOneRateLearnsOnlyWithIt) {
  const auto checks_of = [](double pre_gain, double post_gain) {  // what warm-up adds at the second rate
    std::vector<lab::WarmUpRun> runs;
    for (const bool warm_up : {false, true}) {
      runs.push_back({lab::Placement::pre, 1e-3, warm_up, 1, {}, 1.0});
      runs.push_back({lab::Placement::post, 1e-3, warm_up, 1, {}, 1.0});
      runs.push_back({lab::Placement::pre, 3e-3, warm_up, 1, {}, warm_up ? pre_gain : 0.0});
      runs.push_back({lab::Placement::post, 3e-3, warm_up, 1, {}, warm_up ? post_gain : -INFINITY});
    }
    LabReport report;
    lab::judge_warm_up(runs, report);
    return std::pair(report.checks.at(0).holds(), report.checks.at(1).holds());
  };
  EXPECT_EQ(checks_of(0.1, 0.5), std::pair(true, true));
  EXPECT_EQ(checks_of(0.5, 0.1), std::pair(false, false));
}

TEST(Lab, ListsEveryExperimentOnceAndRefusesOthers) {
  EXPECT_EQ(lab_names().size(), 8u);
  try {
    run_lab({"shape", "shapes"});
    FAIL() << "an experiment that does not exist was run";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(e.what()).find("explosion, layernorm"), std::string::npos) << e.what();
  }
}

TEST(Lab, SaysWhatItLeavesOutWithoutAModel) {
  LabSettings settings;
  settings.quick = true;
  settings.threads = 1;
  const auto reports = run_lab({"shape", "layers"}, settings);
  EXPECT_EQ(reports[0].verdict, Verdict::holds) << reports[0].because.en;
  EXPECT_EQ(reports[1].verdict, Verdict::untested);
  for (const LabReport& r : reports) {
    ASSERT_FALSE(r.notes.empty()) << r.name;
    EXPECT_NE(r.notes.back().en.find("--model"), std::string::npos) << r.notes.back().en;
  }
}

// Everything but the clock.
nlohmann::ordered_json numbers_of(LabReport report) {
  report.seconds = 0;
  report.threads = 0;
  return report;
}

TEST(Lab, GivesTheSameNumbersWithAnyNumberOfThreads) {
  for (const char* name : {"gamma-beta", "batchnorm-layernorm"})
    EXPECT_EQ(numbers_of(quick(name, false, 1)), numbers_of(quick(name, false, 3))) << name;
}

TEST(Lab, StopsWhereItsProgressThrows) {
  struct Stop {};
  LabSettings settings;
  settings.quick = true;
  settings.threads = 2;
  settings.on_progress = [](const std::string&, double) { throw Stop(); };
  EXPECT_THROW(run_lab({"residual"}, settings), Stop);
}

TEST(Verdicts, FollowFromTheChecks) {
  using lab::essential_check, lab::judge, lab::side_check;
  const LabCheck good = essential_check("a", 2, true, 1), bad = essential_check("b", 0, true, 1),
                 aside = side_check("c", 2, false, 1), no_number = essential_check("d", NAN, true, 1);
  EXPECT_EQ(judge({}), Verdict::untested);
  EXPECT_EQ(judge({good}), Verdict::holds);
  EXPECT_EQ(judge({good, aside}), Verdict::partly);
  EXPECT_EQ(judge({good, bad}), Verdict::contradicted);
  EXPECT_EQ(judge({good, no_number}), Verdict::contradicted);
}

TEST(LabReports, AreOnePageWithoutAnythingFromElsewhere) {
  LabSettings settings;
  settings.quick = true;
  const auto reports = run_lab({"explosion", "layernorm"}, settings);
  const std::string page = render_lab_html(reports, Language::zh);
  for (const char* outside : {"http:", "https:", "src=", "<link", "@import", "url(", "//cdn"})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  for (const LabReport& r : reports)
    for (const BilingualText* text : {&r.claim, &r.title})
      for (const Language language : {Language::zh, Language::en})
        EXPECT_NE(page.find(text->in(language).substr(0, 20)), std::string::npos) << text->in(language);
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_NE(page.find("data-lang=\"zh\""), std::string::npos);
  EXPECT_EQ(page.find("{lang}"), std::string::npos);
  EXPECT_NE(page.find("prefers-color-scheme: dark"), std::string::npos);
}

TEST(LabReports, PrintThresholdsBesideWhatWasMeasured) {
  LabSettings settings;
  settings.quick = true;
  const LabReport report = run_lab({"explosion"}, settings).front();
  for (const Language language : {Language::zh, Language::en}) {
    const std::string text = render_lab_text(report, language);
    for (const LabCheck& c : report.checks) {
      EXPECT_NE(text.find(c.what.in(language)), std::string::npos) << c.what.en;
      EXPECT_NE(text.find(lab::number(c.threshold)), std::string::npos) << c.what.en;
    }
  }
}

// ---- gradients by block ----
struct Stack {
  const char* folder;
  lab::Placement placement;
};
void PrintTo(const Stack& s, std::ostream* out) { *out << s.folder; }

class StackGradients : public testing::TestWithParam<Stack> {
 protected:
  std::string path() const { return golden_path(std::string("lab/") + GetParam().folder); }
};

TEST_P(StackGradients, OfEveryBlockEqualAutograd) {
  const SafetensorsFile golden(path() + "/golden.safetensors");
  lab::StackShape shape;
  shape.placement = GetParam().placement;
  shape.depth = 12;
  shape.d_model = shape.d_ff = 32;
  shape.vocab_size = 48;
  lab::RandomStack stack(shape, 1);
  const auto source = open_weights(path());
  EXPECT_EQ(first_difference(stack.config, read_model_config(*source)), "");
  stack.parameters.copy_from(*source);
  Runner runner(1);
  const auto found = lab::measure_gradients(
      stack, runner, {{token_ids(golden, "ids"), token_ids(golden, "targets"), {}, {}}});
  EXPECT_NEAR(found.loss, golden.doubles("loss")[0], 1e-5);
  for (const auto& [name, ours] : {std::pair("stream", &found.stream), std::pair("w2", &found.w2)}) {
    const std::vector<double> theirs = golden.doubles(name);
    ASSERT_EQ(ours->size(), theirs.size());
    for (size_t i = 0; i < theirs.size(); i++)
      EXPECT_NEAR((*ours)[i], theirs[i], 1e-4 * theirs[i]) << name << " of block " << i;
  }
}

TEST_P(StackGradients, BelongToAFolderThatTheEngineRuns) {
  const SafetensorsFile golden(path() + "/golden.safetensors");
  Engine engine = load(path(), ProductClassChoice::f32);
  const auto logits = all_logits(engine, token_ids(golden, "ids"));
  EXPECT_LE(largest_difference(logits.back(), golden.doubles("logits")), 2e-5);
}
INSTANTIATE_TEST_SUITE_P(Placements, StackGradients,
                         testing::Values(Stack{"pre", lab::Placement::pre},
                                         Stack{"post", lab::Placement::post},
                                         Stack{"deepnorm", lab::Placement::deepnorm}),
                         [](const auto& s) { return std::string(s.param.folder); });

// Xiong et al. 2020 and DeepNorm, at initialisation: an encoder of width 128, 16 rows of unit variance.
double mean_w2(lab::Placement placement, int64_t depth, bool last, double* last_square = nullptr) {
  constexpr int kSeeds = 16;
  Runner runner(1);
  double sum = 0;
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    lab::StackShape shape;
    shape.placement = placement;
    shape.depth = depth;
    shape.d_model = shape.d_ff = 128;
    shape.causal = false;
    lab::RandomStack stack(shape, 500 + seed);
    Example e;
    for (int i = 0; i < 16; i++) {
      e.input.push_back(4 * i);
      e.target.push_back(static_cast<int>((static_cast<uint64_t>(i) * 37 + seed * 11) % 64));
    }
    const auto g = lab::measure_gradients(stack, runner, {e});
    sum += (last ? g.w2.back() : g.w2.front()) / kSeeds;
    if (last_square != nullptr) *last_square += g.rms.back() * g.rms.back() / kSeeds;
  }
  return sum;
}

TEST(InitialGradients, AreThePublishedPicture) {
  using lab::Placement;
  constexpr double kTolerance = 0.25;
  const auto expect = [&](double found, double expected, const char* what) {
    EXPECT_NEAR(found, expected, kTolerance * expected) << what;
  };
  double square6 = 0, square12 = 0;
  expect(mean_w2(Placement::pre, 6, true, &square6), 0.834, "pre-norm 6, last");
  expect(mean_w2(Placement::pre, 12, true, &square12), 0.607, "pre-norm 12, last");
  expect(mean_w2(Placement::pre, 12, false), 1.919, "pre-norm 12, first");
  expect(mean_w2(Placement::post, 6, true), 1.825, "post-norm 6, last");
  expect(mean_w2(Placement::post, 12, true), 1.880, "post-norm 12, last");
  expect(mean_w2(Placement::post, 12, false), 1.831, "post-norm 12, first");
  expect(mean_w2(Placement::deepnorm, 12, true), 0.290, "DeepNorm 12, last");
  expect(mean_w2(Placement::deepnorm, 12, false), 0.288, "DeepNorm 12, first");
  EXPECT_GT(square6, 1 + 6 / 2.0);  // (1 + l/2) d ≤ ‖x_l‖² ≤ (1 + 3l/2) d
  EXPECT_LT(square6, 1 + 3 * 6 / 2.0);
  EXPECT_GT(square12, 1 + 12 / 2.0);
  EXPECT_LT(square12, 1 + 3 * 12 / 2.0);
}

}  // namespace
}  // namespace liuli::golden
