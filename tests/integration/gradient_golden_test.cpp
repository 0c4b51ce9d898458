// Gradients of tiny models, every parameter, against a float64 run of the reference implementation's autograd.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "formula_model.h"
#include "learner.h"
#include "train/optimizer.h"
#include "train/schedule.h"

namespace liuli::golden {
namespace {

constexpr double kOfLargest = 1e-4;  // the promise is 1e-3; f32 usually stays below 1e-5

// The reference's name of a parameter may carry the wrapper that its class adds.
std::vector<double> reference(const SafetensorsFile& golden, const std::string& name) {
  for (const char* wrapper : {"", "transformer.", "model."})
    if (golden.find(std::string("grad.") + wrapper + name) != nullptr)
      return golden.doubles(std::string("grad.") + wrapper + name);
  ADD_FAILURE() << "no reference for " << name;
  return {};
}

void expect_gradients(const Learner& l) {
  size_t stored = 0;
  for (const auto& t : l.golden.tensors()) stored += t.name.rfind("grad.", 0) == 0;
  size_t compared = 0;
  for (const Parameter& p : l.parameters.all()) {
    const std::vector<float> ours = l.parameters.file_form(p, true);
    // Not part of the loss, and only part of the choice of experts.
    if (p.name.rfind("pooler.", 0) == 0 || p.name.ends_with("e_score_correction_bias")) {
      EXPECT_TRUE(std::all_of(ours.begin(), ours.end(), [](float g) { return g == 0; })) << p.name;
      continue;
    }
    const std::vector<double> theirs = reference(l.golden, p.name);
    double largest = 1e-5;  // a key's bias has none but rounding: softmax does not see it
    for (const double g : theirs) largest = std::max(largest, std::fabs(g));
    EXPECT_LE(largest_difference(ours, theirs), kOfLargest * largest) << p.name;
    compared++;
  }
  EXPECT_EQ(compared, stored);
}

class Gradients : public testing::TestWithParam<const char*> {};

TEST_P(Gradients, EqualTheReferenceForEveryParameter) {
  Learner l(GetParam());
  TrainStep step(l.model, l.runner, l.padding());
  const CrossEntropy loss =
      step.run({next_token_example(l.ids("p1.input_ids"))}, l.parameters.gradient_map());
  EXPECT_NEAR(loss.sum / static_cast<double>(loss.counted), l.golden.doubles("p1.loss")[0], 2e-5);
  expect_gradients(l);
}
INSTANTIATE_TEST_SUITE_P(Families, Gradients,
                         testing::Values("llama", "qwen2", "qwen3", "gemma3", "olmo2", "gpt2", "deepseek_v3"),
                         [](const auto& family) { return std::string(family.param); });

// An encoder that stands alone: the mean squared distance of its rows from a target, over two segments.
TEST(GradientsOfBert, EqualTheReference) {
  Learner l("bert");
  TrainStep step(l.model, l.runner, l.padding());
  const std::vector<Example> batch = {{l.ids("p2.input_ids"), {}, {}, l.ids("p2.token_type_ids")}};
  const Rows out = step.forward(batch, Keep::everything);
  const std::vector<double> target = l.golden.doubles("mse_target");
  Rows dx = step.new_rows_like_output();
  double loss = 0;
  const auto size = static_cast<double>(out.n * out.width);
  for (int64_t i = 0; i < out.n; i++)
    for (int64_t j = 0; j < out.width; j++) {
      const double d = static_cast<double>(out.row(i)[j]) - target[static_cast<size_t>(i * out.width + j)];
      loss += d * d / size;
      dx.row(i)[j] = static_cast<float>(2 * d / size);
    }
  EXPECT_NEAR(loss, l.golden.doubles("mse_loss")[0], 2e-5);
  step.backward(dx, l.parameters.gradient_map());
  expect_gradients(l);
}

TEST(GradientsOfTheEncoderDecoder, EqualTheReference) {
  Learner l("transformer2017");
  TrainStep step(l.model, l.runner);
  Example e = next_token_example(l.ids("tgt_ids"));
  e.source = l.ids("src_ids");
  const CrossEntropy loss = step.run({e}, l.parameters.gradient_map(), {0.1, 0});
  EXPECT_NEAR(loss.sum / static_cast<double>(loss.counted), l.golden.doubles("loss_label_smoothing_0.1")[0],
              2e-5);
  expect_gradients(l);
}

TEST(GradientsOfBatches, DoNotDependOnThreadsAndAddUp) {
  std::vector<std::vector<float>> all;
  for (const int threads : {1, 2, 3}) {
    Learner l("llama", threads);
    TrainStep step(l.model, l.runner);
    step.run({next_token_example(l.ids("p0.input_ids")), next_token_example(l.ids("p1.input_ids"))},
             l.parameters.gradient_map());
    std::vector<float>& gradients = all.emplace_back();
    for (const Parameter& p : l.parameters.all())
      gradients.insert(gradients.end(), p.gradient, p.gradient + p.size);
  }
  EXPECT_TRUE(all[0] == all[1]);
  EXPECT_TRUE(all[0] == all[2]);

  Learner l("llama");  // one after the other, weighted as in the batch
  TrainStep step(l.model, l.runner);
  const double counted = static_cast<double>(l.ids("p0.input_ids").size() + l.ids("p1.input_ids").size() - 2);
  for (const char* prompt : {"p0.input_ids", "p1.input_ids"})
    step.run({next_token_example(l.ids(prompt))}, l.parameters.gradient_map(), {0, counted});
  std::vector<double> apart;
  for (const Parameter& p : l.parameters.all()) apart.insert(apart.end(), p.gradient, p.gradient + p.size);
  EXPECT_LE(largest_difference(all[0], apart), 1e-6);
}

std::vector<float> all_gradients(const Parameters& parameters) {
  std::vector<float> all;
  for (const Parameter& p : parameters.all()) all.insert(all.end(), p.gradient, p.gradient + p.size);
  return all;
}

TEST(BlocksFormedAgain, GiveTheSameBitsAsBlocksKept) {
  for (const char* family : {"llama", "gemma3", "gpt2"})
    for (const double rate : {0.0, 0.2}) {
      SCOPED_TRACE(family);
      std::vector<std::vector<float>> found;
      for (const Keep keep : {Keep::everything, Keep::block_inputs}) {
        Learner l(family);
        TrainStep step(l.model, l.runner);
        step.set_dropout({rate, 7, 3});
        step.run({next_token_example(l.ids("p0.input_ids")), next_token_example(l.ids("p1.input_ids"))},
                 l.parameters.gradient_map(), {}, keep);
        found.push_back(all_gradients(l.parameters));
      }
      EXPECT_TRUE(found[0] == found[1]) << "dropout " << rate;
    }
}

// With its mask fixed by seed and step, a dropped-out loss is a function like any other: its gradient is its difference.
TEST(Dropout, HasTheGradientOfItsOwnMask) {
  Learner l("gpt2");
  TrainStep step(l.model, l.runner);
  step.set_dropout({0.3, 11, 2});
  const std::vector<Example> batch = {next_token_example(l.ids("p0.input_ids"))};
  auto loss = [&] {
    step.forward(batch, Keep::everything);
    return step.loss({}).sum / static_cast<double>(batch[0].input.size() - 1);
  };
  step.run(batch, l.parameters.gradient_map());
  for (const char* name : {"wte.weight", "h.0.attn.c_proj.weight", "h.1.mlp.c_fc.bias", "h.0.ln_1.weight"}) {
    Parameter& p = *l.parameters.find(name);
    const auto largest =
        static_cast<int64_t>(std::max_element(p.gradient, p.gradient + p.size,
                                              [](float a, float b) { return std::fabs(a) < std::fabs(b); }) -
                             p.gradient);
    const float before = p.value[largest];
    constexpr float kStep = 1e-3f;
    p.value[largest] = before + kStep;
    const double up = loss();
    p.value[largest] = before - kStep;
    const double down = loss();
    p.value[largest] = before;
    EXPECT_NEAR((up - down) / (2 * static_cast<double>(kStep)), p.gradient[largest],
                2e-2 * std::fabs(p.gradient[largest]))
        << name;
  }
}

// Gradients printed for models whose weights are a formula: "layers.0.q_proj[3]" is entry 3 of that tensor, as listed.
class FormulaGradients : public testing::TestWithParam<const char*> {};

TEST_P(FormulaGradients, ReproduceEveryPrintedOne) {
  const FormulaModel formula(GetParam());
  Learner l(formula.path(), golden_path("tiny/llama/golden.safetensors"), 2);  // the golden file is not used
  TrainStep step(l.model, l.runner);
  std::vector<int> ids = formula.tokens();
  Example e = next_token_example(ids);
  if (l.config.is_encoder_decoder()) {
    e = next_token_example({ids.begin(), ids.begin() + 5});
    e.source = ids;
  }
  step.run({e}, l.parameters.gradient_map());
  int compared = 0;
  for (const auto& [place, expected] : formula.description.at("gradients").items()) {
    const std::string listed = place.substr(0, place.find('['));
    const auto entry = std::stol(place.substr(place.find('[') + 1));
    for (const auto& tensor : formula.description.at("tensors")) {
      if (tensor.at("listed_as") != listed) continue;
      const Parameter* p = l.parameters.find(tensor.at("name").get<std::string>());
      ASSERT_NE(p, nullptr) << place;
      // Printed entries count in the formula's own layout: ours, but for the rows that files of DeepSeek interleave.
      const std::vector<float> file = l.parameters.file_form(*p, true);
      const float found = p->spec.transposed ? p->gradient[entry] : file[static_cast<size_t>(entry)];
      EXPECT_NEAR(found, expected.get<double>(), 1e-6 + 1e-4 * std::fabs(expected.get<double>())) << place;
      compared++;
    }
  }
  EXPECT_EQ(compared, static_cast<int>(formula.description.at("gradients").size()));
}
INSTANTIATE_TEST_SUITE_P(Families, FormulaGradients,
                         testing::Values("llama", "qwen2", "qwen3", "gemma3", "olmo2", "gpt2", "deepseek_v3",
                                         "transformer2017"),
                         [](const auto& family) { return std::string(family.param); });

// Ten steps of AdamW on one text, as the reference's optimiser made them.
struct ReferenceRun {
  const char* name;
  OptimizerSettings optimizer;
  double clip;  // 0: none
  double tolerance;
};
const ReferenceRun kRuns[] = {
    {"A", {OptimizerKind::adamw, 0.9, 0.95, 1e-8, 0.1, false, 0, false}, 0, 2e-3},
    {"B", {OptimizerKind::adamw, 0.9, 0.999, 1e-8, 0.01, true, 0, false}, 0.5, 5e-3}};

void expect_run(const std::string& family, const ReferenceRun& run) {
  SCOPED_TRACE(family + " run " + run.name);
  Learner l(family);
  const std::string prefix = std::string("train.") + run.name + ".";
  const auto losses = l.golden.doubles(prefix + "losses"), norms = l.golden.doubles(prefix + "grad_norms"),
             rates = l.golden.doubles(prefix + "lr");
  TrainStep step(l.model, l.runner, l.padding());
  Optimizer optimizer(l.parameters, run.optimizer);
  const std::vector<Example> batch = {next_token_example(l.ids("p1.input_ids"))};
  for (size_t i = 0; i < rates.size(); i++) {
    l.parameters.clear_gradients();
    const CrossEntropy loss = step.run(batch, l.parameters.gradient_map());
    EXPECT_NEAR(loss.sum / static_cast<double>(loss.counted), losses[i], run.tolerance) << "step " << i;
    const double norm = gradient_norm(l.runner.pool, l.parameters);
    EXPECT_NEAR(norm, norms[i], run.tolerance * std::max(1.0, norms[i])) << "step " << i;
    if (run.clip > 0) clip_gradients(l.runner.pool, l.parameters, norm, run.clip);
    optimizer.step(l.runner.pool, rates[i]);
  }
  step.forward(batch, Keep::nothing);
  const CrossEntropy last = step.loss({});
  EXPECT_NEAR(last.sum / static_cast<double>(last.counted), losses.back(), run.tolerance);
}

TEST(TenStepsOfAdamW, FollowTheReference) {
  for (const char* family : {"llama", "gpt2"})
    for (const ReferenceRun& run : kRuns) expect_run(family, run);
}

TEST(TheReferencesSchedule, IsWarmUpAndCosine) {
  const SafetensorsFile golden(golden_path("tiny/llama/golden.safetensors"));
  const auto rates = golden.doubles("train.B.lr");
  Schedule schedule;
  schedule.peak = 3e-3;
  schedule.warm_up = 3;
  schedule.steps = 10;
  for (size_t i = 0; i < rates.size(); i++)
    EXPECT_NEAR(schedule.rate(static_cast<int64_t>(i)), rates[i], 1e-9);
}

}  // namespace
}  // namespace liuli::golden
