// The loop in memory: what a small model begins with, learns, and says when it goes wrong.
#include "train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/load.h"
#include "train/config_source.h"
#include "train/initialise.h"
#include "train/loss_plot.h"

namespace liuli {
namespace {

ModelConfig small_config(const char* type = "llama") {
  nlohmann::json json = {{"model_type", type},
                         {"hidden_size", 32},
                         {"intermediate_size", 64},
                         {"num_hidden_layers", 2},
                         {"num_attention_heads", 4},
                         {"num_key_value_heads", 2},
                         {"max_position_embeddings", 32},
                         {"vocab_size", 40},
                         {"rms_norm_eps", 1e-5}};
  if (std::string(type) == "gpt2")
    json = {{"model_type", "gpt2"},
            {"n_embd", 32},
            {"n_layer", 8},
            {"n_head", 4},
            {"n_positions", 32},
            {"vocab_size", 400},
            {"layer_norm_epsilon", 1e-5}};
  return read_model_config(*config_source("model", json));
}

// Tokens count upwards: the next one can be known.
std::vector<Example> counting_batch(int64_t step, int64_t part) {
  Example e;
  for (int i = 0; i < 16; i++) {
    e.input.push_back(static_cast<int>((7 * step + 3 * part + i) % 40));
    e.target.push_back((e.input.back() + 1) % 40);
  }
  return {e, e};
}

struct Small {
  explicit Small(TrainerSettings settings = {}, int threads = 1)
      : config(small_config()), weights(config), runner(threads) {
    initialise(weights, config, {InitialScheme::automatic, 0.05, 4}, runner.pool);
    settings.schedule.kind = ScheduleKind::constant;
    settings.schedule.peak = 0.01;
    trainer = std::make_unique<Trainer>(config, weights, runner, settings, counting_batch);
  }
  ModelConfig config;
  Parameters weights;
  Runner runner;
  std::unique_ptr<Trainer> trainer;
};

double deviation(const Parameter& p) {
  double squares = 0;
  for (int64_t i = 0; i < p.size; i++)
    squares += static_cast<double>(p.value[i]) * static_cast<double>(p.value[i]);
  return std::sqrt(squares / static_cast<double>(p.size));
}

TEST(InitialValues, OfGpt2HaveItsDeviations) {
  const ModelConfig config = small_config("gpt2");
  Parameters weights(config);
  ThreadPool pool(2);
  initialise(weights, config, {}, pool);
  EXPECT_NEAR(deviation(*weights.find("wte.weight")), 0.02, 0.001);
  EXPECT_NEAR(deviation(*weights.find("h.3.mlp.c_fc.weight")), 0.02, 0.001);
  EXPECT_NEAR(deviation(*weights.find("h.3.mlp.c_proj.weight")), 0.02 / std::sqrt(16), 0.0005);
  EXPECT_EQ(weights.find("h.3.ln_1.weight")->value[5], 1.0f);
  EXPECT_EQ(weights.find("h.3.ln_1.bias")->value[5], 0.0f);
}

TEST(InitialValues, CutAtTwoDeviationsAreNarrower) {
  const ModelConfig config = small_config("gpt2");
  Parameters weights(config);
  ThreadPool pool(1);
  initialise(weights, config, {InitialScheme::truncated_normal, 0.02, 3}, pool);
  const Parameter& p = *weights.find("wte.weight");
  EXPECT_NEAR(deviation(p), 0.017592513, 0.0005);
  for (int64_t i = 0; i < p.size; i++) EXPECT_LE(std::fabs(p.value[i]), 0.04f);
}

TEST(InitialValues, OfXavierStayWithinTheirBound) {
  const ModelConfig config = small_config();
  Parameters weights(config);
  ThreadPool pool(1);
  initialise(weights, config, {InitialScheme::xavier, 0, 3}, pool);
  const Parameter& p = *weights.find("model.layers.1.mlp.up_proj.weight");
  const double bound = std::sqrt(6.0 / (32 + 64));
  EXPECT_NEAR(deviation(p), bound / std::sqrt(3), 0.01);
  for (int64_t i = 0; i < p.size; i++) EXPECT_LE(std::fabs(static_cast<double>(p.value[i])), bound);
}

TEST(InitialValues, DoNotDependOnThreads) {
  const ModelConfig config = small_config();
  Parameters a(config), b(config);
  ThreadPool one(1), three(3);
  initialise(a, config, {}, one);
  initialise(b, config, {}, three);
  for (size_t i = 0; i < a.all().size(); i++)
    for (int64_t j = 0; j < a.all()[i].size; j++) ASSERT_EQ(a.all()[i].value[j], b.all()[i].value[j]);
}

TEST(Trainer, BeginsAtTheLossOfGuessingAndLearnsToCount) {
  Small small;
  const StepReport first = small.trainer->step();
  EXPECT_NEAR(first.loss, std::log(40), 0.3);
  EXPECT_EQ(first.tokens, 32);
  double last = 0;
  for (int i = 0; i < 150; i++) last = small.trainer->step().loss;
  EXPECT_LT(last, 0.05);
  EXPECT_LT(small.trainer->evaluate(counting_batch(1000, 0), 1), 0.05);
  EXPECT_EQ(small.trainer->steps_made(), 151);
}

TEST(Trainer, GathersPartsOfAStepAsOneBatch) {
  TrainerSettings parts;
  parts.accumulate = 3;
  Small a(parts);
  a.trainer->step();
  Small b;
  auto together = [](int64_t step, int64_t) {
    std::vector<Example> all;
    for (int64_t part = 0; part < 3; part++)
      for (const Example& e : counting_batch(step, part)) all.push_back(e);
    return all;
  };
  TrainerSettings settings;
  settings.schedule = {ScheduleKind::constant, 0.01, 0.1, 0.2, 0, 1};
  Trainer whole(b.config, b.weights, b.runner, settings, together);
  whole.step();
  for (size_t i = 0; i < a.weights.all().size(); i++) {
    const Parameter &x = a.weights.all()[i], &y = b.weights.all()[i];
    for (int64_t j = 0; j < x.size; j++) ASSERT_NEAR(x.gradient[j], y.gradient[j], 2e-6f) << x.name;
  }
}

TEST(Trainer, NamesTheFirstPointThatIsNoNumber) {
  Small small;
  small.trainer->step();
  const float before = small.weights.find("model.norm.weight")->value[0];
  Parameter& gamma = *small.weights.find("model.layers.1.post_attention_layernorm.weight");
  gamma.value[3] = 3e38f;  // a number, but nothing that is multiplied with it
  const StepReport report = small.trainer->step();
  ASSERT_TRUE(report.non_finite.has_value());
  EXPECT_EQ(report.non_finite->point.rfind("blocks.1.", 0), 0u) << report.non_finite->text();
  EXPECT_GE(report.non_finite->position, 0);
  EXPECT_LT(report.non_finite->position, 16);
  EXPECT_EQ(small.weights.find("model.norm.weight")->value[0], before);
  EXPECT_EQ(small.trainer->steps_made(), 1);
}

TEST(Trainer, NamesAWeightThatIsNoNumber) {
  Small small;
  small.weights.find("model.layers.0.mlp.up_proj.weight")->value[77] = NAN;
  const StepReport report = small.trainer->step();
  ASSERT_TRUE(report.non_finite.has_value());
  EXPECT_EQ(report.non_finite->text(), "the weight model.layers.0.mlp.up_proj.weight, value 77 is nan");
}

// The loss as a function of one number of an adapter: its slope is the gradient.
TEST(Lora, HasTheGradientOfItsOwnNumbers) {
  Small small;
  for (int i = 0; i < 5; i++) small.trainer->step();
  Lora lora(small.weights, {4, 8, {"q", "up"}, 5, ""});
  for (Parameter& p : lora.adapters().all())
    for (int64_t i = 0; i < p.size; i++) p.value[i] += 0.01f * static_cast<float>(i % 7);
  Trainer trainer(small.config, small.weights, small.runner, {}, counting_batch, &lora);
  const auto loss = [&] {
    lora.form_weights(small.runner.pool);
    return trainer.evaluate(counting_batch(0, 0), 2);
  };
  loss();
  small.weights.clear_gradients();
  trainer.train_step().run(counting_batch(0, 0), small.weights.gradient_map());
  lora.form_gradients(small.runner.pool);
  for (Parameter& p : lora.adapters().all()) {
    int64_t at = 0;
    for (int64_t i = 0; i < p.size; i++)
      if (std::fabs(p.gradient[i]) > std::fabs(p.gradient[at])) at = i;
    const float value = p.value[at];
    p.value[at] = value + 2e-2f;
    const double up = loss();
    p.value[at] = value - 2e-2f;
    const double down = loss();
    p.value[at] = value;
    EXPECT_NEAR((up - down) / 4e-2, p.gradient[at], 0.03 * std::fabs(p.gradient[at]) + 1e-4) << p.name;
  }
}

TEST(Lora, BeginsAsTheModelItAdapts) {
  Small small;
  const std::vector<float> before(small.weights.find("model.layers.0.self_attn.q_proj.weight")->value,
                                  small.weights.find("model.layers.0.self_attn.q_proj.weight")->value + 64);
  Lora lora(small.weights, {});
  lora.form_weights(small.runner.pool);
  for (size_t i = 0; i < before.size(); i++)
    EXPECT_EQ(before[i], small.weights.find("model.layers.0.self_attn.q_proj.weight")->value[i]);
  EXPECT_EQ(lora.target_modules(), (std::vector<std::string>{"q_proj", "v_proj"}));
}

TEST(Sparkline, FallsWithTheLoss) {
  std::vector<CurvePoint> points;
  for (int64_t i = 0; i < 80; i++) points.push_back({i, 8.0 - 0.1 * static_cast<double>(i)});
  EXPECT_EQ(sparkline(points, 8), "█▇▆▅▄▃▂▁");
  EXPECT_EQ(sparkline({}, 8), "");
}

TEST(LossPicture, HoldsBothCurvesAndNoHalfTag) {
  RunCurves curves;
  for (int64_t i = 1; i <= 5000; i++) curves.training.push_back({i, 1 + 5 / static_cast<double>(i)});
  curves.held_out = {{0, 6}, {5000, 1.1}};
  const std::string svg = loss_svg(curves, "a < b");
  EXPECT_NE(svg.find("a &lt; b"), std::string::npos);
  EXPECT_NE(svg.find("held out 1.100"), std::string::npos);
  EXPECT_LT(svg.size(), 60000u);
}

}  // namespace
}  // namespace liuli
