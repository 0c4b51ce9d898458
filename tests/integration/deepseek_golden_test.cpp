// Latent attention and mixtures of experts against float64 runs of the reference implementation: Hugging Face folders,
// both generations of GGUF files, every class.
#include <nlohmann/json.hpp>

#include "formats/temporary_folder.h"
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

// Neither form computes with them, so a change would go nowhere; one of the latent vector does not.
TEST(DeepSeek, KeysAndValuesOfEveryHeadCannotBeChanged) {
  const auto ids = token_ids(reference_of("deepseek_v3"), "p0.input_ids");
  for (auto product_class : {ProductClassChoice::decode, ProductClassChoice::f32}) {
    Engine engine = load(kTiny + "deepseek_v3", product_class, false, kThreads);
    const auto run = [&](const std::string& point, float change) {
      std::vector<float> logits;
      const Hook hook{{point}, [&](const HookValue& value) { value.data[0] += change; }};
      engine.logits(ids, [&](int, std::span<const float> row) { logits.assign(row.begin(), row.end()); }, 512,
                    {}, {hook});
      return logits;
    };
    const std::vector<float> plain = run("blocks.1.attn.v", 0);
    EXPECT_NE(run("blocks.1.attn.kv_latent", 1), plain);
    for (const std::string point : {"blocks.1.attn.k", "blocks.1.attn.rot_k", "blocks.1.attn.v"}) {
      EXPECT_EQ(run(point, 0), plain);
      EXPECT_THROW(run(point, 1), Error) << point;
    }
  }
}

// A folder like the tiny model's with some tensors other than there, or more of them.
struct Replacement {
  std::string name, type;  // as the file spells it: "F32", "F8_E4M3"
  std::vector<int64_t> shape;
  std::string bytes;
};

void write_folder(const TemporaryFolder& folder, nlohmann::json config,
                  const std::vector<Replacement>& instead) {
  const SafetensorsFile stored(kTiny + "deepseek_v3/model.safetensors");
  const auto replaced = [&](const std::string& name) {
    return std::any_of(instead.begin(), instead.end(), [&](const auto& r) { return r.name == name; });
  };
  nlohmann::json header;
  std::string data;
  const auto add = [&](const std::string& name, const std::string& type, const std::vector<int64_t>& shape,
                       const std::string& bytes) {
    header[name] = {
        {"dtype", type}, {"shape", shape}, {"data_offsets", {data.size(), data.size() + bytes.size()}}};
    data += bytes;
  };
  for (const auto& tensor : stored.tensors())
    if (!replaced(tensor.name))
      add(tensor.name, tensor.dtype, tensor.shape,
          {reinterpret_cast<const char*>(tensor.data), static_cast<size_t>(tensor.bytes)});
  for (const Replacement& r : instead) add(r.name, r.type, r.shape, r.bytes);
  const std::string text = header.dump();
  std::string length;
  for (size_t i = 0; i < 8; i++) length += static_cast<char>(text.size() >> (8 * i) & 255);
  folder.write("model.safetensors", length + text + data);
  folder.write("config.json", config.dump());
}

nlohmann::json tiny_config() {
  return nlohmann::json::parse(std::ifstream(kTiny + "deepseek_v3/config.json"));
}

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

TEST(DeepSeek, LayersThatPredictFurtherTokensAreLeftOutAndSaidSo) {
  const TemporaryFolder folder("deepseek-mtp");
  write_folder(folder, tiny_config(),
               {{"model.layers.3.enorm.weight", "F32", {2}, bytes_of({1, 2})},
                {"model.layers.3.hnorm.weight", "F32", {2}, bytes_of({3, 4})}});
  Engine engine = load(folder.file(""), ProductClassChoice::f32, false, kThreads);
  expect_logits(engine, reference_of("deepseek_v3"), "p0");
  EXPECT_EQ(engine.notices(),
            std::vector<std::string>{"2 tensors of layer 3, past the model's 3 layers (multi-token "
                                     "prediction), are not used"});
  EXPECT_TRUE(load(kTiny + "deepseek_v3", ProductClassChoice::f32, false, kThreads).notices().empty());
}

float e4m3(uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                   : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return code & 128 ? -size : size;
}

// The published checkpoints: matrices of 8-bit floats with a scale per 128 × 128 block.
TEST(DeepSeek, Fp8FoldersComputeWhatTheirDecodedWeightsDo) {
  constexpr float kScale = 0.004f;
  std::vector<Replacement> codes, decoded;
  const SafetensorsFile stored(kTiny + "deepseek_v3/model.safetensors");
  for (const auto& tensor : stored.tensors()) {
    if (!tensor.name.ends_with("_b_proj.weight") && !tensor.name.ends_with("down_proj.weight")) continue;
    std::string bytes;
    std::vector<float> values;
    for (int64_t i = 0; i < tensor.shape[0] * tensor.shape[1]; i++) {
      const auto code = static_cast<uint8_t>(i * 101 % 127 | (i % 3 == 0 ? 128 : 0));
      bytes += static_cast<char>(code);
      values.push_back(e4m3(code) * kScale);
    }
    const std::vector<int64_t> blocks = {(tensor.shape[0] + 127) / 128, (tensor.shape[1] + 127) / 128};
    codes.push_back({tensor.name, "F8_E4M3", tensor.shape, bytes});
    codes.push_back({tensor.name + "_scale_inv", "F32", blocks,
                     bytes_of(std::vector<float>(static_cast<size_t>(blocks[0] * blocks[1]), kScale))});
    decoded.push_back({tensor.name, "F32", tensor.shape, bytes_of(values)});
  }
  nlohmann::json config = tiny_config();
  const TemporaryFolder plain("deepseek-decoded"), fp8("deepseek-fp8");
  write_folder(plain, config, decoded);
  config["quantization_config"] = {{"quant_method", "fp8"},
                                   {"fmt", "e4m3"},
                                   {"weight_block_size", {128, 128}},
                                   {"activation_scheme", "dynamic"}};
  write_folder(fp8, config, codes);
  const auto ids = token_ids(reference_of("deepseek_v3"), "p0.input_ids");
  for (const Mode& mode : kModes) {
    Engine a = load(plain.file(""), mode.product_class, mode.exact, kThreads),
           b = load(fp8.file(""), mode.product_class, mode.exact, kThreads);
    EXPECT_EQ(all_logits(a, ids), all_logits(b, ids)) << mode.name;
  }
}

}  // namespace
}  // namespace liuli::golden
