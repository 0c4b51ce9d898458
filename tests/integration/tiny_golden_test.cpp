// Seeded random models against float64 runs of the reference implementation: logits, every stored
// intermediate, greedy text.
#include <filesystem>

#include "golden_compare.h"

namespace liuli::golden {
namespace {

class TinyModel : public testing::TestWithParam<const char*> {};

// The Hugging Face folder and, where there is one, its GGUF twin.
TEST_P(TinyModel, MatchesTheReferenceInEveryStoredNumber) {
  const std::string name = GetParam();
  const SafetensorsFile golden(golden_path("tiny/" + name + "/golden.safetensors"));
  expect_everything(golden_path("tiny/" + name), golden, 8);
  const std::string gguf = golden_path("tiny/" + name + "/gguf/" + name + ".F32.gguf");
  if (std::filesystem::exists(gguf)) expect_everything(gguf, golden, 8);
}
INSTANTIATE_TEST_SUITE_P(Families, TinyModel,
                         testing::Values("llama", "llama3_rope", "llama_bf16", "llama_f16", "llama_sharded",
                                         "llama_bias", "mistral", "qwen2", "qwen2_yarn", "qwen3", "gemma3",
                                         "gemma3_lin", "olmo2", "gpt2"),
                         [](const auto& i) { return std::string(i.param); });

// The fast classes round, but what they show is the same value: scores with the bias that was taken off the
// stored keys, patterns that sum to one.
TEST(FastClasses, ShowScoresAndPatternsNearTheReference) {
  for (const std::string name : {"llama", "qwen2", "gemma3"})
    for (auto product_class : {ProductClassChoice::prompt, ProductClassChoice::decode}) {
      SCOPED_TRACE(name + " class " + std::to_string(static_cast<int>(product_class)));
      const SafetensorsFile golden(golden_path("tiny/" + name + "/golden.safetensors"));
      Engine engine = load(golden_path("tiny/" + name + "/gguf/" + name + ".F32.gguf"), product_class);
      const auto traced =
          engine.trace(token_ids(golden, "p0.input_ids"), {"blocks.0.attn.scores", "blocks.0.attn.pattern"});
      for (const TracedTensor& t : traced) {
        const double tolerance = t.name.find("pattern") != std::string::npos ? 0.01 : 0.06;
        EXPECT_LE(largest_difference(t.values, golden.doubles("p0." + t.name)), tolerance) << t.name;
      }
    }
}

// Every quantised twin has its own reference, computed from the decoded weights.
TEST(QuantisedTwins, MatchTheReferenceOfTheirDecodedWeights) {
  int files = 0;
  for (const char* model : {"llama", "llama_k256", "qwen2_q", "gemma3", "gpt2", "gpt2_q"})
    for (const auto& entry :
         std::filesystem::directory_iterator(golden_path(std::string("tiny/") + model + "/gguf"))) {
      const std::string path = entry.path().string();
      const std::string reference = path.substr(0, path.size() - 5) + ".golden.safetensors";
      if (entry.path().extension() != ".gguf" || !std::filesystem::exists(reference)) continue;
      SCOPED_TRACE(entry.path().filename().string());
      files++;
      const SafetensorsFile golden(reference);
      for (const Mode& mode : kModes) {
        SCOPED_TRACE(mode.name);
        Engine engine = load(path, mode.product_class, mode.exact);
        for (const std::string prompt : {"p0", "p1"}) {
          expect_logits(engine, golden, prompt);
          expect_greedy(engine, token_ids(golden, prompt + ".input_ids"),
                        token_ids(golden, prompt + ".greedy"), golden.doubles(prompt + ".greedy_gap"),
                        2 * kLogits);
        }
      }
    }
  EXPECT_GE(files, 30);
}

}  // namespace
}  // namespace liuli::golden
