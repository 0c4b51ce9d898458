// Families beside the first ones (mixtures of experts, fused matrices, layers without positions) against float64 runs of
// the reference implementation, from both file formats; what their files may not ask for.
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "formats/temporary_folder.h"
#include "golden_compare.h"

namespace liuli::golden {
namespace {

class TinyFamily : public testing::TestWithParam<const char*> {};

TEST_P(TinyFamily, MatchesTheReferenceInEveryStoredNumberFromBothFormats) {
  const std::string folder = golden_path(std::string("tiny/") + GetParam());
  const SafetensorsFile golden(folder + "/golden.safetensors");
  expect_everything(folder, golden, 50);
  expect_everything(folder + "/gguf/" + GetParam() + ".F16.gguf", golden, 50);
}
INSTANTIATE_TEST_SUITE_P(Families, TinyFamily,
                         testing::Values("qwen2moe", "qwen3moe", "mixtral", "phi3", "smollm3"),
                         [](const auto& i) { return std::string(i.param); });

// The error that a tiny model's folder gives once some keys of its config.json are changed; "" when it loads.
std::string error_of(const std::string& name, const nlohmann::json& changes) {
  const TemporaryFolder folder("families");
  const std::string original = golden_path("tiny/" + name);
  nlohmann::json config = nlohmann::json::parse(std::ifstream(original + "/config.json"));
  config.update(changes);
  folder.write("config.json", config.dump());
  std::filesystem::create_symlink(original + "/model.safetensors", folder.file("model.safetensors"));
  try {
    load(folder.file(""), ProductClassChoice::f32);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(FamilyKeys, WhatCannotBeRunIsRefusedByName) {
  using nlohmann::json;
  struct Refusal {
    const char* name;
    json changes;
    const char* message;
  };
  const json longrope = {{"type", "longrope"}, {"short_factor", {1, 1}}, {"long_factor", {1, 1}}};
  const json yarn = {{"type", "yarn"}, {"factor", 4}};
  const Refusal refusals[] = {
      {"phi3", {{"rope_scaling", longrope}}, "\"longrope\", a RoPE scaling that is not supported"},
      {"phi3", {{"rope_scaling", yarn}}, "asks for longrope"},  // what Phi-3 once called it
      {"qwen3moe", {{"num_experts_per_tok", 9}}, "key num_experts_per_tok is 9, there are 8 experts"},
      {"qwen3moe", {{"num_experts_per_tok", 0}}, "key num_experts_per_tok is 0"},
      {"qwen2moe", {{"mlp_only_layers", json::array()}}, "model.layers.1.mlp.gate.weight [7, 60] is missing"},
      {"qwen2moe",
       {{"num_experts", 6}},
       "mlp.gate.weight has shape [7, 60], the configuration demands [6, 60]"},
      {"mixtral", {{"num_local_experts", 0}}, "is missing"},
      {"smollm3", {{"no_rope_layers", {1, 0}}}, "key no_rope_layers has 2 entries for 4 layers"},
  };
  for (const Refusal& r : refusals) {
    SCOPED_TRACE(std::string(r.name) + " " + r.changes.dump());
    EXPECT_EQ(error_of(r.name, json::object()), "");
    const std::string error = error_of(r.name, r.changes);
    EXPECT_NE(error.find(r.message), std::string::npos) << error;
  }
}

// What reaches the router has been rounded by the class; the router itself has not: its logits are the double product of
// what stood before it, to the last digits of f32 (bf16 would leave errors around 1e-2).
TEST(FastClasses, LeaveTheRouterInFloat32) {
  const SafetensorsFile golden(golden_path("tiny/qwen3moe/golden.safetensors")),
      weights(golden_path("tiny/qwen3moe/model.safetensors"));
  const std::vector<double> router = weights.doubles("model.layers.1.mlp.gate.weight");
  for (auto product_class :
       {ProductClassChoice::prompt, ProductClassChoice::decode, ProductClassChoice::f32}) {
    SCOPED_TRACE("class " + std::to_string(static_cast<int>(product_class)));
    Engine engine = load(golden_path("tiny/qwen3moe"), product_class);
    const auto traced =
        engine.trace(token_ids(golden, "p1.input_ids"), {"blocks.1.ln2.out", "blocks.1.mlp.router_logits"});
    const TracedTensor &h = traced.at(0), &logits = traced.at(1);
    ASSERT_EQ(logits.name, "blocks.1.mlp.router_logits");
    const auto width = static_cast<size_t>(h.shape[1]), n_experts = static_cast<size_t>(logits.shape[1]);
    std::vector<double> expected;
    for (size_t i = 0; i < static_cast<size_t>(h.shape[0]); i++)
      for (size_t e = 0; e < n_experts; e++) {
        double sum = 0;
        for (size_t j = 0; j < width; j++)
          sum += router[e * width + j] * static_cast<double>(h.values[i * width + j]);
        expected.push_back(sum);
      }
    EXPECT_LE(largest_difference(logits.values, expected), 5e-6);
  }
}

// What a hook writes at one step of the router counts for the next.
TEST(RouterHooks, ChangeWhatFollows) {
  Engine engine = load(golden_path("tiny/qwen3moe"), ProductClassChoice::f32);
  const std::string at = "blocks.0.mlp.";
  auto traced = [&](const std::string& hooked, auto&& change) {
    TraceSettings settings;
    settings.hooks = {{{at + hooked}, [&](const HookValue& v) {
                         for (int64_t i = 0; i < v.shape[0]; i++) change(v, i);
                       }}};
    return engine.trace({3, 17, 44, 5}, {at + "expert_ids", at + "expert_weights", at + "experts.6.out"},
                        settings);
  };
  const auto by_score = traced("router_scores", [](const HookValue& v, int64_t i) { v.at({i, 6}) = 2; });
  for (size_t i = 0; i < 4; i++) {
    const float* ids = &by_score.at(0).values[i * 3];
    EXPECT_NE(std::find(ids, ids + 3, 6.0f), ids + 3) << "the best score was not chosen";
  }
  const auto by_id = traced("expert_ids", [](const HookValue& v, int64_t i) {
    for (int64_t k = 0; k < 3; k++) v.at({i, k}) = static_cast<float>(6 - k);
  });
  for (size_t i = 0; i < 4; i++) {
    const auto& out = by_id.at(2).values;
    EXPECT_NE(out.at(i * out.size() / 4), 0.0f) << "expert 6 did not see token " << i;
    const float* weights = &by_id.at(1).values[i * 3];
    EXPECT_NEAR(weights[0] + weights[1] + weights[2], 1, 1e-6);
  }
  for (const float wrong : {8.0f, -1.0f, 0.5f, std::nanf("")})
    EXPECT_THROW(traced("expert_ids", [&](const HookValue& v, int64_t i) { v.at({i, 0}) = wrong; }), Error);
}

}  // namespace
}  // namespace liuli::golden
