// Training with products in bf16 beside the same in f32: gradients, losses of a run, and what stays bit for bit.
#include <gtest/gtest.h>

#include <cmath>

#include "learner.h"
#include "train/optimizer.h"

namespace liuli::golden {
namespace {

std::vector<float> all_gradients(const Parameters& parameters) {
  std::vector<float> all;
  for (const Parameter& p : parameters.all()) all.insert(all.end(), p.gradient, p.gradient + p.size);
  return all;
}

double norm(const float* x, const float* y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) {
    const double d = static_cast<double>(x[i]) - (y != nullptr ? static_cast<double>(y[i]) : 0.0);
    sum += d * d;
  }
  return std::sqrt(sum);
}

std::vector<Example> two_prompts(const Learner& l) {
  return {next_token_example(l.ids("p0.input_ids")), next_token_example(l.ids("p1.input_ids"))};
}

class Bf16Products : public testing::TestWithParam<const char*> {};

// bf16 keeps 8 bits: an operand is off by at most 2^−9 of itself, and errors of a sum's terms mostly cancel. A mixture's
// gradients jump where a rounding makes a token choose another expert.
TEST_P(Bf16Products, GiveGradientsNearThoseOfF32) {
  Learner exact(GetParam()), rounded(GetParam());
  rounded.runner.bf16_products = true;
  for (Learner* l : {&exact, &rounded}) {
    TrainStep step(l->model, l->runner, l->padding());
    step.run(two_prompts(*l), l->parameters.gradient_map());
  }
  const std::vector<float> whole = all_gradients(exact.parameters), other = all_gradients(rounded.parameters);
  const auto size = static_cast<int64_t>(whole.size());
  const double difference = norm(whole.data(), other.data(), size);
  const double allowed = GetParam() == std::string("deepseek_v3") ? 0.15 : 0.02;
  EXPECT_LE(difference, allowed * norm(whole.data(), nullptr, size));
  EXPECT_GT(difference, 1e-5 * norm(whole.data(), nullptr, size)) << "nothing was rounded";
}

TEST_P(Bf16Products, ChangeNoBitWithThreadsOrBlocksFormedAgain) {
  std::vector<std::vector<float>> found;
  for (const auto& [threads, keep] :
       {std::pair{1, Keep::everything}, std::pair{3, Keep::everything}, std::pair{2, Keep::block_inputs}}) {
    Learner l(GetParam(), threads);
    l.runner.bf16_products = true;
    TrainStep step(l.model, l.runner, l.padding());
    step.run(two_prompts(l), l.parameters.gradient_map(), {}, keep);
    found.push_back(all_gradients(l.parameters));
  }
  EXPECT_TRUE(found[0] == found[1]) << "threads";
  EXPECT_TRUE(found[0] == found[2]) << "blocks formed again";
}

INSTANTIATE_TEST_SUITE_P(Families, Bf16Products,
                         testing::Values("llama", "qwen2", "qwen3", "gemma3", "olmo2", "gpt2", "deepseek_v3"),
                         [](const auto& family) { return std::string(family.param); });

// The reference's run A (ten steps of AdamW on one text, in float64), followed within 2 % of its losses.
TEST(ARunInBf16Products, FollowsTheReferencesLosses) {
  for (const char* family : {"llama", "gpt2"}) {
    SCOPED_TRACE(family);
    Learner l(family);
    l.runner.bf16_products = true;
    const auto losses = l.golden.doubles("train.A.losses"), rates = l.golden.doubles("train.A.lr");
    TrainStep step(l.model, l.runner, l.padding());
    Optimizer optimizer(l.parameters, {OptimizerKind::adamw, 0.9, 0.95, 1e-8, 0.1, false, 0, false});
    const std::vector<Example> batch = {next_token_example(l.ids("p1.input_ids"))};
    for (size_t i = 0; i < rates.size(); i++) {
      l.parameters.clear_gradients();
      const CrossEntropy loss = step.run(batch, l.parameters.gradient_map());
      EXPECT_NEAR(loss.sum / static_cast<double>(loss.counted), losses[i], 0.02 * losses[i]) << "step " << i;
      optimizer.step(l.runner.pool, rates[i]);
    }
  }
}

}  // namespace
}  // namespace liuli::golden
