// Seeded random models against float64 runs of the reference implementation: logits, every stored
// intermediate, greedy text.
#include <filesystem>

#include "golden_support.h"

namespace liuli::golden {
namespace {

constexpr double kLogits = 2e-4, kActivations = 1e-4, kPatterns = 1e-5;

// The reference's name of a value → ours. Ours is empty for what is not a point.
std::string our_name(std::string name) {
  auto replace_end = [&](const std::string& from, const std::string& to) {
    if (name.size() < from.size() || name.compare(name.size() - from.size(), from.size(), from) != 0)
      return false;
    name.replace(name.size() - from.size(), from.size(), to);
    return true;
  };
  for (const char* other : {"input_ids", "logits", "loss", "greedy", "greedy_gap"})
    if (name == other) return "";
  if (name.rfind("grad.", 0) == 0 || name.rfind("train.", 0) == 0) return "";
  replace_end(".scale", ".sigma") || replace_end(".attn.q", ".attn.rot_q") ||
      replace_end(".attn.k", ".attn.rot_k") || replace_end(".attn.q_proj", ".attn.q") ||
      replace_end(".attn.k_proj", ".attn.k");
  return name;
}

// q_normed and k_normed: some references store the heads first.
std::vector<float> heads_first(const TracedTensor& t) {
  const int64_t tokens = t.shape[0], heads = t.shape[1], width = t.shape[2];
  std::vector<float> out(t.values.size());
  for (int64_t i = 0; i < tokens; i++)
    for (int64_t h = 0; h < heads; h++)
      for (int64_t d = 0; d < width; d++)
        out[static_cast<size_t>((h * tokens + i) * width + d)] =
            t.values[static_cast<size_t>((i * heads + h) * width + d)];
  return out;
}

struct Mode {
  const char* name;
  ProductClassChoice product_class;
  bool exact;
};
constexpr Mode kModes[] = {{"f32", ProductClassChoice::f32, false},
                           {"exact", ProductClassChoice::automatic, true}};

void expect_logits(Engine& engine, const SafetensorsFile& golden, const std::string& prompt) {
  const auto rows = all_logits(engine, token_ids(golden, prompt + ".input_ids"));
  std::vector<float> flat;
  for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  EXPECT_LE(largest_difference(flat, golden.doubles(prompt + ".logits")), kLogits) << prompt;
}

int expect_intermediates(Engine& engine, const SafetensorsFile& golden, const std::string& prompt) {
  const std::string prefix = prompt + ".";
  std::vector<std::string> points, stored;
  for (const auto& tensor : golden.tensors()) {
    if (tensor.name.rfind(prefix, 0) != 0) continue;
    const std::string ours = our_name(tensor.name.substr(prefix.size()));
    if (ours.empty()) continue;
    points.push_back(ours);
    stored.push_back(tensor.name);
  }
  const auto traced = engine.trace(token_ids(golden, prefix + "input_ids"), points);
  for (size_t i = 0; i < points.size(); i++) {
    const auto it =
        std::find_if(traced.begin(), traced.end(), [&](const auto& t) { return t.name == points[i]; });
    if (it == traced.end()) {
      ADD_FAILURE() << points[i] << " was not traced";
      continue;
    }
    const bool heads_lead =
        points[i].find("_normed") != std::string::npos &&
        golden.find(stored[i])->shape == std::vector{it->shape[1], it->shape[0], it->shape[2]};
    const double tolerance = points[i].find("pattern") != std::string::npos ? kPatterns : kActivations;
    EXPECT_LE(largest_difference(heads_lead ? heads_first(*it) : it->values, golden.doubles(stored[i])),
              tolerance)
        << stored[i];
  }
  return static_cast<int>(points.size());
}

class TinyModel : public testing::TestWithParam<const char*> {};

void expect_everything(const std::string& path, const SafetensorsFile& golden, int at_least) {
  SCOPED_TRACE(path);
  for (const Mode& mode : kModes) {
    SCOPED_TRACE(mode.name);
    Engine engine = load(path, mode.product_class, mode.exact);
    int compared = 0;
    for (const std::string prompt : {"p0", "p1"}) {
      SCOPED_TRACE(prompt);
      expect_logits(engine, golden, prompt);
      compared += expect_intermediates(engine, golden, prompt);
      expect_greedy(engine, token_ids(golden, prompt + ".input_ids"), token_ids(golden, prompt + ".greedy"),
                    golden.doubles(prompt + ".greedy_gap"), 2 * kLogits);
    }
    EXPECT_GT(compared, at_least);
  }
}

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
