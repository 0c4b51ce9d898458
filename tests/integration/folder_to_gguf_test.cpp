// A Hugging Face folder written as GGUF: the same tensors and keys as the files that other converters made of these
// models, the same logits and ids as the folder, and refusals where GGUF has no words.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "formats/gguf.h"
#include "formats/temporary_folder.h"
#include "golden_support.h"
#include "kernels/kernels.h"
#include "liuli/convert.h"

namespace liuli::golden {
namespace {

std::string tiny(const std::string& name) { return golden_path("tiny/" + name); }

QuantizeReport convert(const std::string& folder, const std::string& output, const char* type) {
  QuantizeSettings settings;
  settings.type = type;
  settings.threads = 2;
  return quantize_file(folder, output, settings);
}

std::vector<float> values_of(const WeightSource& source, const TensorInfo& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  kernels::decode_row(tensor.type, source.bytes_of(tensor).get(), tensor.elements(), values.data());
  return values;
}

std::vector<int> some_tokens(int n, int64_t vocab_size) {
  std::vector<int> ids;
  for (int i = 0; i < n; i++) ids.push_back(static_cast<int>((i * 37 + i * i * 11 + 5) % vocab_size));
  return ids;
}

/// Largest difference of the logits in class f32, relative to the largest logit.
double logit_difference(const std::string& path, const std::string& reference) {
  Engine a = load(path, ProductClassChoice::f32), b = load(reference, ProductClassChoice::f32);
  const std::vector<int> ids = some_tokens(40, b.config().vocab_size);
  const auto rows_a = all_logits(a, ids), rows_b = all_logits(b, ids);
  double worst = 0, largest = 0;
  for (size_t i = 0; i < rows_b.size(); i++) {
    for (size_t k = 0; k < rows_b[i].size(); k++) {
      worst = std::max(worst, std::fabs(double{rows_a[i][k]} - rows_b[i][k]));
      largest = std::max(largest, std::fabs(double{rows_b[i][k]}));
    }
  }
  return worst / largest;
}

struct Export {
  const char* name;
  const char* type;     ///< of the matrices in the folder: nothing is rounded
  const char* twin;     ///< the file that another converter made, or ""
  double rounding = 0;  ///< of keys and divisors that GGUF keeps as f32
};

class ExportedFolder : public testing::TestWithParam<Export> {};

TEST_P(ExportedFolder, GivesTheFoldersLogits) {
  const TemporaryFolder folder("export");
  for (const char* type : {GetParam().type, "f32"}) {
    convert(tiny(GetParam().name), folder.file("m.gguf"), type);
    EXPECT_LE(logit_difference(folder.file("m.gguf"), tiny(GetParam().name)), GetParam().rounding) << type;
  }
}

TEST_P(ExportedFolder, HasTheTensorsOfItsTwinBitForBit) {
  const TemporaryFolder folder("export-tensors");
  const QuantizeReport report = convert(tiny(GetParam().name), folder.file("m.gguf"), GetParam().type);
  EXPECT_EQ(report.error, 0);
  if (*GetParam().twin == '\0') return;
  const auto ours = open_weights(folder.file("m.gguf")), twin = open_weights(tiny(GetParam().twin));
  EXPECT_EQ(ours->tensors().size(), twin->tensors().size());
  for (const TensorInfo& expected : twin->tensors()) {
    const TensorInfo* tensor = ours->find(expected.name);
    ASSERT_NE(tensor, nullptr) << expected.name;
    EXPECT_EQ(tensor->shape, expected.shape) << expected.name;
    if (expected.name == "rope_freqs.weight") continue;  // computed, not stored
    EXPECT_EQ(values_of(*ours, *tensor), values_of(*twin, expected)) << expected.name;
  }
}

TEST_P(ExportedFolder, HasTheKeysOfItsTwin) {
  if (*GetParam().twin == '\0') return;
  const TemporaryFolder folder("export-keys");
  convert(tiny(GetParam().name), folder.file("m.gguf"), GetParam().type);
  const auto ours = open_weights(folder.file("m.gguf")), twin = open_weights(tiny(GetParam().twin));
  const std::string architecture = twin->metadata().text("general.architecture").value();
  EXPECT_EQ(ours->metadata().text("general.name"), GetParam().name);
  int compared = 0;
  for (const std::string& key : twin->metadata().keys()) {
    const bool counts = key.starts_with(architecture + ".") || key == "general.architecture";
    if (!counts || !ours->metadata().has(key)) continue;
    EXPECT_EQ(ours->metadata().json(key, 10), twin->metadata().json(key, 10)) << key;
    EXPECT_EQ(ours->metadata().type_name(key), twin->metadata().type_name(key)) << key;
    compared++;
  }
  EXPECT_GE(compared, 8);
}

constexpr const char* kTexts[] = {"The quick brown fox can't jump 12345 times.", "  two\n\n  spaces\t,",
                                  "naïve 漢字 🙂", "<|bos|>special<|eos|>", ""};

TEST_P(ExportedFolder, GivesTheFoldersTokenIds) {
  if (!std::filesystem::exists(tiny(GetParam().name) + "/tokenizer.json")) return;
  const TemporaryFolder folder("export-ids");
  convert(tiny(GetParam().name), folder.file("m.gguf"), GetParam().type);
  const Engine ours = Engine::load_tokenizer(folder.file("m.gguf")),
               theirs = Engine::load_tokenizer(tiny(GetParam().name));
  for (const char* text : kTexts)
    for (const bool special : {false, true})
      EXPECT_EQ(ours.tokenize(text, special, special), theirs.tokenize(text, special, special)) << text;
}

constexpr double kKeys = 1e-6;
INSTANTIATE_TEST_SUITE_P(
    Tiny, ExportedFolder,
    testing::Values(Export{"llama", "f32", "llama/gguf/llama.F32.gguf"},
                    Export{"llama3_rope", "f32", "llama3_rope/gguf/llama3_rope.F32.gguf", kKeys},
                    Export{"llama_bf16", "bf16", ""}, Export{"llama_bias", "f32", ""},
                    Export{"llama_f16", "f16", ""}, Export{"llama_sharded", "f32", ""},
                    Export{"mistral", "f32", ""}, Export{"mixtral", "f16", "mixtral/gguf/mixtral.F16.gguf"},
                    Export{"olmo2", "f32", "olmo2/gguf/olmo2.F32.gguf"},
                    Export{"phi3", "f16", "phi3/gguf/phi3.F16.gguf"},
                    Export{"qwen2", "f32", "qwen2/gguf/qwen2.F32.gguf"},
                    Export{"qwen2_yarn", "f32", "", kKeys},
                    Export{"qwen2moe", "f16", "qwen2moe/gguf/qwen2moe.F16.gguf"},
                    Export{"qwen3", "f32", "qwen3/gguf/qwen3.F32.gguf"},
                    Export{"qwen3moe", "f16", "qwen3moe/gguf/qwen3moe.F16.gguf"},
                    Export{"smollm3", "f16", "smollm3/gguf/smollm3.F16.gguf"},
                    Export{"gemma3", "f32", "gemma3/gguf/gemma3.F32.gguf"},
                    Export{"gpt2", "f32", "gpt2/gguf/gpt2.F32.gguf"},
                    Export{"deepseek_v3", "f32", "deepseek_v3/gguf/deepseek_v3.F32.gguf", kKeys},
                    Export{"deepseek_v3_noq", "f32", "deepseek_v3_noq/gguf/deepseek_v3_noq.F32.gguf", kKeys}),
    [](const auto& i) { return std::string(i.param.name); });

// An encoder has no logits: what is compared is its last residual stream.
TEST(ExportedEncoder, GivesTheFoldersVectorsAndLeavesThePoolerOut) {
  const TemporaryFolder folder("export-bert");
  const QuantizeReport report = convert(tiny("bert"), folder.file("m.gguf"), "f32");
  Engine ours = load(folder.file("m.gguf"), ProductClassChoice::f32),
         theirs = load(tiny("bert"), ProductClassChoice::f32);
  const std::vector<int> ids = some_tokens(20, theirs.config().vocab_size);
  const std::string last = "blocks.1.normalized_resid_post";
  EXPECT_EQ(ours.trace(ids, {last}).at(0).values, theirs.trace(ids, {last}).at(0).values);
  const auto file = open_weights(folder.file("m.gguf")), twin = open_weights(tiny("bert/gguf/bert.F32.gguf"));
  EXPECT_EQ(file->tensors().size(), twin->tensors().size());
  for (const TensorInfo& expected : twin->tensors())
    EXPECT_EQ(values_of(*file, *file->find(expected.name)), values_of(*twin, expected)) << expected.name;
  EXPECT_EQ(file->metadata().integer("tokenizer.ggml.token_type_count"), 2);
  EXPECT_EQ(file->metadata().boolean("bert.attention.causal"), false);
  EXPECT_NE(std::find_if(report.warnings.begin(), report.warnings.end(),
                         [](const std::string& w) { return w.find("pooler") != std::string::npos; }),
            report.warnings.end());
}

// Straight from the folder, or in two steps: the same bytes.
TEST(QuantizedFolder, EqualsTheQuantizedExport) {
  const TemporaryFolder folder("export-two-steps");
  for (const char* name : {"llama", "gpt2", "deepseek_v3"}) {
    convert(tiny(name), folder.file("f32.gguf"), "f32");
    for (const char* type : {"q8_0", "q4_k_m"}) {
      convert(tiny(name), folder.file("a.gguf"), type);
      convert(folder.file("f32.gguf"), folder.file("b.gguf"), type);
      EXPECT_TRUE(folder.read("a.gguf") == folder.read("b.gguf")) << name << " " << type;
    }
  }
  convert(tiny("llama"), folder.file("q8.gguf"), "q8_0");
  EXPECT_LT(logit_difference(folder.file("q8.gguf"), tiny("llama")), 0.05);
}

/// A copy of a tiny model's folder with some keys of its config.json, or its tokenizer.json, changed.
class ChangedFolder {
 public:
  explicit ChangedFolder(const std::string& name) : original_(tiny(name)), folder_("changed") {
    std::filesystem::create_directory(path());
    for (const auto& entry : std::filesystem::directory_iterator(original_))
      if (entry.is_regular_file()) std::filesystem::copy(entry.path(), path());
  }
  std::string path() const { return folder_.file("model"); }
  std::string output() const { return folder_.file("out.gguf"); }
  void change(const char* file, const nlohmann::json& changes) const {
    nlohmann::json json = nlohmann::json::parse(std::ifstream(original_ + "/" + file));
    json.merge_patch(changes);
    std::ofstream(path() + "/" + file) << json.dump();
  }
  std::string error(bool no_tokenizer = false) const {
    QuantizeSettings settings;
    settings.type = "f32";
    settings.no_tokenizer = no_tokenizer;
    try {
      quantize_file(path(), output(), settings);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

 private:
  std::string original_;
  TemporaryFolder folder_;
};

TEST(RefusedFolders, AreNamedWithWhatGgufCannotSay) {
  struct Refusal {
    const char* name;
    nlohmann::json changes;
    const char* message;
  };
  const Refusal refusals[] = {
      {"transformer2017", nlohmann::json::object(), "transformer2017 has no architecture there"},
      {"deepseek_v3_mscale", nlohmann::json::object(), "the factor of cos and sin"},
      {"qwen2", {{"use_sliding_window", true}}, "key qwen2.attention.sliding_window is unknown"},
      {"smollm3", {{"no_rope_layers", {1, 0, 1, 1}}}, "layer 1: the kind of RoPE is 1 here, 0 there"},
      {"gemma3", {{"query_pre_attn_scalar", 99}}, "attention_scale"},
      {"gemma3_lin", nlohmann::json::object(), "attention_scale"},  // not 1/√head_dim
      {"llama", {{"intermediate_size", 95}}, "has shape"},
  };
  for (const Refusal& r : refusals) {
    const ChangedFolder folder(r.name);
    folder.change("config.json", r.changes);
    const std::string error = folder.error();
    EXPECT_NE(error.find(r.message), std::string::npos) << r.name << ": " << error;
    EXPECT_FALSE(std::filesystem::exists(folder.output())) << r.name;
  }
}

// The scaling of Gemma's global layers is a key; its windows need one only where they do not come every sixth layer.
TEST(ExportedFolderKeys, LinearScalingAndAnotherPeriodOfWindowsAreStated) {
  const ChangedFolder folder("gemma3_lin");
  const auto head_dim = nlohmann::json::parse(std::ifstream(folder.path() + "/config.json"))["head_dim"];
  nlohmann::json kinds;
  for (int i = 0; i < load(folder.path(), ProductClassChoice::f32).config().n_layers; i++)
    kinds.push_back(i % 3 == 2 ? "full_attention" : "sliding_attention");
  folder.change("config.json", {{"query_pre_attn_scalar", head_dim}, {"layer_types", kinds}});
  ASSERT_EQ(folder.error(), "");
  const auto file = open_weights(folder.output());
  EXPECT_EQ(file->metadata().text("gemma3.rope.scaling.type"), "linear");
  EXPECT_EQ(file->metadata().integer("gemma3.attention.sliding_window_pattern"), 3);
  EXPECT_EQ(logit_difference(folder.output(), folder.path()), 0);
}

TEST(RefusedFolders, ATokenizerWithoutAnEqualIsRefusedUnlessItIsLeftOut) {
  const ChangedFolder folder("llama");
  folder.change("tokenizer.json", {{"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", true}}}});
  EXPECT_NE(folder.error().find("the tokenizer has no equal in GGUF"), std::string::npos) << folder.error();
  EXPECT_NE(folder.error().find("--no-tokenizer"), std::string::npos);
  EXPECT_EQ(folder.error(true), "");
  EXPECT_EQ(open_weights(folder.output())->metadata().text("tokenizer.ggml.model"), "none");
  EXPECT_EQ(logit_difference(folder.output(), folder.path()), 0);
}

TEST(FolderTokenizers, EndTokensAndTheChatTemplateAreCarriedOver) {
  const ChangedFolder folder("llama");
  folder.change("tokenizer_config.json", {{"chat_template", "{{ messages[0].content }}"}});
  folder.change("generation_config.json", {{"eos_token_id", {1, 7}}});
  ASSERT_EQ(folder.error(), "");
  const auto file = open_weights(folder.output());
  EXPECT_EQ(file->metadata().text("tokenizer.chat_template"), "{{ messages[0].content }}");
  EXPECT_EQ(file->metadata().integer("tokenizer.ggml.eos_token_id"), 1);
  EXPECT_EQ(file->metadata().integer("tokenizer.ggml.eot_token_id"), 7);
  EXPECT_EQ(file->metadata().text("tokenizer.ggml.pre"), "gpt-2");
}

TEST(FolderTokenizers, PreTokenizersAreRecognisedByWhatTheyDo) {
  const nlohmann::json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  const nlohmann::json digits = {{"type", "Digits"}, {"individual_digits", true}};
  const ChangedFolder folder("llama");
  folder.change("tokenizer.json",
                {{"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {digits, bytes}}}}});
  ASSERT_EQ(folder.error(), "");
  EXPECT_EQ(open_weights(folder.output())->metadata().text("tokenizer.ggml.pre"), "smollm");
}

}  // namespace
}  // namespace liuli::golden
