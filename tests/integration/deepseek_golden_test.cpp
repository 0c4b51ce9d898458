// Latent attention and mixtures of experts against float64 runs of the reference implementation: Hugging Face folders,
// both generations of GGUF files, every class.
#include "golden_compare.h"

namespace liuli::golden {
namespace {

constexpr int kThreads =
    1;  // threads change no bit (promises_test), and waking them costs more than such a model

const std::string kTiny = golden_path("tiny/");

SafetensorsFile reference_of(const std::string& name) {
  return SafetensorsFile(kTiny + name + "/golden.safetensors");
}

TEST(DeepSeek, FoldersMatchTheReferenceInEveryStoredNumber) {
  for (const std::string name : {"deepseek_v3", "deepseek_v3_noq", "deepseek_v3_mscale"})
    expect_everything(kTiny + name, reference_of(name), name == "deepseek_v3" ? 90 : 15, kThreads);
}

TEST(DeepSeek, GgufFilesOfBothGenerationsMatchTheReferenceInEveryStoredNumber) {
  expect_everything(kTiny + "deepseek_v3/gguf/deepseek_v3.F32.gguf", reference_of("deepseek_v3"), 90,
                    kThreads);
  for (const std::string file : {"deepseek_v3_noq.F32.gguf", "deepseek_v3_noq.F32.legacy.gguf"})
    expect_everything(kTiny + "deepseek_v3_noq/gguf/" + file, reference_of("deepseek_v3_noq"), 15, kThreads);
}

TEST(DeepSeek, TheExpertsChosenAreTheReferences) {
  const SafetensorsFile golden = reference_of("deepseek_v3");
  for (const Mode& mode : kModes) {
    Engine engine = load(kTiny + "deepseek_v3", mode.product_class, mode.exact, kThreads);
    for (const std::string prompt : {"p0", "p1"}) {
      const auto traced = engine.trace(token_ids(golden, prompt + ".input_ids"), {"blocks.2.mlp.expert_ids"});
      const std::vector<int64_t> expected = golden.integers(prompt + ".blocks.2.mlp.expert_ids");
      ASSERT_EQ(traced.at(0).values.size(), expected.size());
      for (size_t i = 0; i < expected.size(); i++)
        ASSERT_EQ(static_cast<int64_t>(traced[0].values[i]), expected[i]) << mode.name << " " << prompt << i;
    }
  }
}

TEST(DeepSeek, TheQuantisedTwinMatchesTheReferenceOfItsDecodedWeights) {
  const std::string path = kTiny + "deepseek_v3/gguf/deepseek_v3.Q8_0.gguf";
  const SafetensorsFile golden(kTiny + "deepseek_v3/gguf/deepseek_v3.Q8_0.golden.safetensors");
  for (const Mode& mode : kModes) {
    SCOPED_TRACE(mode.name);
    Engine engine = load(path, mode.product_class, mode.exact, kThreads);
    for (const std::string prompt : {"p0", "p1"}) {
      expect_logits(engine, golden, prompt);
      expect_greedy(engine, token_ids(golden, prompt + ".input_ids"), token_ids(golden, prompt + ".greedy"),
                    golden.doubles(prompt + ".greedy_gap"), 2 * kLogits);
    }
  }
}

// KL(reference || ours) of the next token, and whether every expert of every layer is the same.
struct Distance {
  double mean_kl = 0;
  int same_experts = 0, rows = 0;
};

std::vector<double> log_softmax(const std::vector<float>& logits) {
  double sum = 0;
  const double top = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - top);
  std::vector<double> out;
  for (const float x : logits) out.push_back(static_cast<double>(x) - top - std::log(sum));
  return out;
}

std::vector<std::vector<float>> experts_by_token(Engine& engine, const std::vector<int>& ids) {
  std::vector<std::vector<float>> experts(ids.size());
  for (const TracedTensor& t : engine.trace(ids, {"blocks.*.mlp.expert_ids"}))
    for (size_t i = 0; i < t.values.size(); i++)
      experts[i / static_cast<size_t>(t.shape[1])].push_back(t.values[i]);
  return experts;
}

// Some of these random routers' scores are as near as the rounding of the cache; a row that went to other experts is
// another story, and so are those after it.
Distance distance(Engine& a, Engine& b, const std::vector<int>& ids) {
  const auto p = all_logits(a, ids), q = all_logits(b, ids);
  const auto experts_a = experts_by_token(a, ids), experts_b = experts_by_token(b, ids);
  Distance d;
  for (size_t i = 0; i < ids.size(); i++) {
    d.rows++;
    if (experts_a[i] != experts_b[i]) break;
    d.same_experts++;
    const auto log_p = log_softmax(p[i]), log_q = log_softmax(q[i]);
    for (size_t t = 0; t < log_p.size(); t++) d.mean_kl += std::exp(log_p[t]) * (log_p[t] - log_q[t]);
  }
  d.mean_kl /= std::max(1, d.same_experts);
  return d;
}

// The decode class multiplies with the compressed vectors, the others with expanded keys and values.
TEST(DeepSeek, TheFastClassesPredictWhatTheExactOneDoes) {
  const SafetensorsFile golden = reference_of("deepseek_v3");
  const auto ids = token_ids(golden, "p1.input_ids");
  for (const std::string file : {"deepseek_v3.F32.gguf", "deepseek_v3.Q8_0.gguf"})
    for (auto product_class : {ProductClassChoice::prompt, ProductClassChoice::decode}) {
      SCOPED_TRACE(file + " class " + std::to_string(static_cast<int>(product_class)));
      const std::string path = kTiny + "deepseek_v3/gguf/" + file;
      Engine exact = load(path, ProductClassChoice::automatic, true, kThreads),
             fast = load(path, product_class, false, kThreads);
      const Distance d = distance(exact, fast, ids);
      RecordProperty("mean_kl", std::to_string(d.mean_kl));
      RecordProperty("same_experts", d.same_experts);
      EXPECT_GE(d.same_experts, 4);
      EXPECT_LT(d.mean_kl, product_class == ProductClassChoice::decode ? 5e-4 : 3e-3);
    }
}

// What is not on the way of the decode class is shown all the same: keys and values of every head.
TEST(DeepSeek, TheDecodeClassShowsWhatTheReferenceComputes) {
  const SafetensorsFile golden = reference_of("deepseek_v3");
  Engine engine = load(kTiny + "deepseek_v3", ProductClassChoice::decode, false, kThreads);
  const std::vector<std::string> stored = {"q_latent", "kv_latent", "q", "k", "v", "scores", "pattern", "z"};
  for (const std::string& value : stored) {
    const std::string reference = "p0.blocks.0.attn." + value;
    const auto traced = engine.trace(token_ids(golden, "p0.input_ids"), {our_name("blocks.0.attn." + value)});
    EXPECT_LE(largest_difference(in_order_of(traced.at(0), golden.find(reference)->shape),
                                 golden.doubles(reference)),
              value == "pattern" ? 0.01 : 0.06)
        << value;
  }
}

}  // namespace
}  // namespace liuli::golden
