// Sources: the published config.json files and papers; the totals that follow from the rows are pinned in shape_test.
#include "convert/known_models.h"

#include <fmt/core.h>

#include "liuli/error.h"

namespace liuli {
namespace {

using Biases = KnownFamily::Biases;
using QkNorm = KnownFamily::QkNorm;

// clang-format off
//                                arch         LN     before after  final  q/k norm          biases         gated  fused  posit. decoder eps    pre         BOS
constexpr KnownFamily kLlama    {"llama",     false, true,  false, true,  QkNorm::none,     Biases::none, true,  false, false, true,  1e-5,  "llama-bpe", true};
constexpr KnownFamily kSmolLm2  {"llama",     false, true,  false, true,  QkNorm::none,     Biases::none, true,  false, false, true,  1e-5,  "smollm",    false};
constexpr KnownFamily kQwen2    {"qwen2",     false, true,  false, true,  QkNorm::none,     Biases::qkv,  true,  false, false, true,  1e-6,  "qwen2",     false};
constexpr KnownFamily kQwen3    {"qwen3",     false, true,  false, true,  QkNorm::per_head, Biases::none, true,  false, false, true,  1e-6,  "qwen2",     false};
constexpr KnownFamily kQwen3Moe {"qwen3moe",  false, true,  false, true,  QkNorm::per_head, Biases::none, true,  false, false, true,  1e-6,  "qwen2",     false};
constexpr KnownFamily kGemma3   {"gemma3",    false, true,  true,  true,  QkNorm::per_head, Biases::none, true,  false, false, true,  1e-6,  "gpt-2",     true};
constexpr KnownFamily kOlmo2    {"olmo2",     false, false, true,  true,  QkNorm::whole,    Biases::none, true,  false, false, true,  1e-6,  "gpt-2",     false};
constexpr KnownFamily kDeepSeek {"deepseek2", false, true,  false, true,  QkNorm::none,     Biases::none, true,  false, false, true,  1e-6,  "deepseek-v3", true};
constexpr KnownFamily kGpt2     {"gpt2",      true,  true,  false, true,  QkNorm::none,     Biases::all,  false, true,  true,  true,  1e-5,  "gpt-2",     false};
constexpr KnownFamily kBert     {"bert",      true,  false, true,  false, QkNorm::none,     Biases::all,  false, false, true,  false, 1e-12, "",          true};
constexpr KnownFamily kVaswani  {"",          true,  false, true,  false, QkNorm::none,     Biases::all,  false, false, false, true,  1e-6,  "",          true};

constexpr KnownRopeScaling kLlama31{8, 1, 4, 8192}, kLlama32{32, 1, 4, 8192};
constexpr KnownLatent kDeepSeekLatent{1536, 512, 128, 64, 128};
constexpr KnownYarn kDeepSeekYarn{40, 0.1, 4096};
constexpr KnownExperts kDeepSeekExperts{256, 8, 2048, 1, 3, 8, 4, 2.5, true};
constexpr KnownExperts kQwen3Experts30b{128, 8, 768, 0, 0, 1, 1, 1, false}, kQwen3Experts235b{128, 8, 1536, 0, 0, 1, 1, 1, false};

/// DeepSeek-V3: d_ff is that of the three dense layers; head_dim is a key's width, n_kv_heads what the expanded form has.
KnownModel deepseek_v3() {
  KnownModel m{"deepseek-v3", "DeepSeek-V3", &kDeepSeek, 129280, 7168, 18432, 61, 128, 128, 192, 163840, false, 1e4, 0, 1};
  m.latent = &kDeepSeekLatent;
  m.experts = kDeepSeekExperts;
  m.yarn = &kDeepSeekYarn;
  return m;
}

KnownModel mixture(KnownModel m, const KnownExperts& experts) {
  m.experts = experts;
  return m;
}

KnownModel scaled(KnownModel m, const KnownRopeScaling& scaling) {
  m.rope_scaling = &scaling;
  return m;
}

KnownModel windowed(KnownModel m, int64_t window, int64_t period) {
  m.sliding_window = window;
  m.window_period = period;
  return m;
}

KnownModel bert(KnownModel m, bool pooler) {
  m.n_token_types = 2;
  m.pooler = pooler;
  return m;
}

KnownModel encoder_decoder(KnownModel m) {
  m.n_encoder_layers = m.n_layers;
  return m;
}

std::vector<KnownModel> rows() {
  return {
//  name            title              family      V       d     d_ff    L    H   Kv   h    context tied  theta  bos     eos
  {"llama-3-8b",    "Llama 3 8B",      &kLlama,  128256,  4096, 14336,  32,  32,  8, 128,   8192, false, 5e5, 128000, 128001},
  {"llama-3-70b",   "Llama 3 70B",     &kLlama,  128256,  8192, 28672,  80,  64,  8, 128,   8192, false, 5e5, 128000, 128001},
  scaled({"llama-3.1-8b",   "Llama 3.1 8B",   &kLlama, 128256,  4096, 14336,  32,  32, 8, 128, 131072, false, 5e5, 128000, 128001}, kLlama31),
  scaled({"llama-3.1-70b",  "Llama 3.1 70B",  &kLlama, 128256,  8192, 28672,  80,  64, 8, 128, 131072, false, 5e5, 128000, 128001}, kLlama31),
  scaled({"llama-3.1-405b", "Llama 3.1 405B", &kLlama, 128256, 16384, 53248, 126, 128, 8, 128, 131072, false, 5e5, 128000, 128001}, kLlama31),
  scaled({"llama-3.2-1b",   "Llama 3.2 1B",   &kLlama, 128256,  2048,  8192,  16,  32, 8,  64, 131072, true,  5e5, 128000, 128001}, kLlama32),
  scaled({"llama-3.2-3b",   "Llama 3.2 3B",   &kLlama, 128256,  3072,  8192,  28,  24, 8, 128, 131072, true,  5e5, 128000, 128001}, kLlama32),
  {"smollm2-135m",  "SmolLM2 135M",    &kSmolLm2, 49152,   576,  1536,  30,   9,  3,  64,   8192, true,  1e5, 0, 0},
  {"smollm2-360m",  "SmolLM2 360M",    &kSmolLm2, 49152,   960,  2560,  32,  15,  5,  64,   8192, true,  1e5, 0, 0},
  {"smollm2-1.7b",  "SmolLM2 1.7B",    &kSmolLm2, 49152,  2048,  8192,  24,  32, 32,  64,   8192, true,  1.3e5, 0, 0},
  {"qwen2.5-0.5b",  "Qwen2.5 0.5B",    &kQwen2,  151936,   896,  4864,  24,  14,  2,  64,  32768, true,  1e6, -1, 151643},
  {"qwen2.5-1.5b",  "Qwen2.5 1.5B",    &kQwen2,  151936,  1536,  8960,  28,  12,  2, 128,  32768, true,  1e6, -1, 151643},
  {"qwen2.5-3b",    "Qwen2.5 3B",      &kQwen2,  151936,  2048, 11008,  36,  16,  2, 128,  32768, true,  1e6, -1, 151643},
  {"qwen2.5-7b",    "Qwen2.5 7B",      &kQwen2,  152064,  3584, 18944,  28,  28,  4, 128,  32768, false, 1e6, -1, 151643},
  {"qwen2.5-14b",   "Qwen2.5 14B",     &kQwen2,  152064,  5120, 13824,  48,  40,  8, 128,  32768, false, 1e6, -1, 151643},
  {"qwen2.5-32b",   "Qwen2.5 32B",     &kQwen2,  152064,  5120, 27648,  64,  40,  8, 128,  32768, false, 1e6, -1, 151643},
  {"qwen2.5-72b",   "Qwen2.5 72B",     &kQwen2,  152064,  8192, 29568,  80,  64,  8, 128,  32768, false, 1e6, -1, 151643},
  {"qwen3-0.6b",    "Qwen3 0.6B",      &kQwen3,  151936,  1024,  3072,  28,  16,  8, 128,  40960, true,  1e6, -1, 151643},
  {"qwen3-1.7b",    "Qwen3 1.7B",      &kQwen3,  151936,  2048,  6144,  28,  16,  8, 128,  40960, true,  1e6, -1, 151643},
  {"qwen3-4b",      "Qwen3 4B",        &kQwen3,  151936,  2560,  9728,  36,  32,  8, 128,  40960, true,  1e6, -1, 151643},
  {"qwen3-8b",      "Qwen3 8B",        &kQwen3,  151936,  4096, 12288,  36,  32,  8, 128,  40960, false, 1e6, -1, 151643},
  {"qwen3-14b",     "Qwen3 14B",       &kQwen3,  151936,  5120, 17408,  40,  40,  8, 128,  40960, false, 1e6, -1, 151643},
  {"qwen3-32b",     "Qwen3 32B",       &kQwen3,  151936,  5120, 25600,  64,  64,  8, 128,  40960, false, 1e6, -1, 151643},
  mixture({"qwen3-30b-a3b",   "Qwen3 30B A3B",   &kQwen3Moe, 151936, 2048,  6144, 48, 32, 4, 128, 40960, false, 1e6, -1, 151643}, kQwen3Experts30b),
  mixture({"qwen3-235b-a22b", "Qwen3 235B A22B", &kQwen3Moe, 151936, 4096, 12288, 94, 64, 4, 128, 40960, false, 1e6, -1, 151643}, kQwen3Experts235b),
  windowed({"gemma-3-270m", "Gemma 3 270M", &kGemma3, 262144, 640, 2048, 18, 4, 1, 256, 32768, true, 1e6, 2, 1}, 512, 6),
  {"olmo-2-7b",     "OLMo 2 7B",       &kOlmo2,  100352,  4096, 11008,  32,  32, 32, 128,   4096, false, 5e5, -1, 100257},
  {"olmo-2-13b",    "OLMo 2 13B",      &kOlmo2,  100352,  5120, 13824,  40,  40, 40, 128,   4096, false, 5e5, -1, 100257},
  deepseek_v3(),
  {"gpt2",          "GPT-2 small",     &kGpt2,    50257,   768,  3072,  12,  12, 12,  64,   1024, true,  0, 50256, 50256},
  {"gpt2-medium",   "GPT-2 medium",    &kGpt2,    50257,  1024,  4096,  24,  16, 16,  64,   1024, true,  0, 50256, 50256},
  {"gpt2-large",    "GPT-2 large",     &kGpt2,    50257,  1280,  5120,  36,  20, 20,  64,   1024, true,  0, 50256, 50256},
  {"gpt2-xl",       "GPT-2 XL",        &kGpt2,    50257,  1600,  6400,  48,  25, 25,  64,   1024, true,  0, 50256, 50256},
  bert({"bert-base", "BERT base",      &kBert,    30522,   768,  3072,  12,  12, 12,  64,    512, true,  0, 101, 102}, true),
  bert({"minilm-l6", "MiniLM L6 v2",   &kBert,    30522,   384,  1536,   6,  12, 12,  32,    512, true,  0, 101, 102}, true),
  encoder_decoder({"transformer-base", "Transformer 2017, base", &kVaswani, 37000,  512, 2048, 6,  8,  8, 64, 512, true, 0, -1, -1}),
  encoder_decoder({"transformer-big",  "Transformer 2017, big",  &kVaswani, 37000, 1024, 4096, 6, 16, 16, 64, 512, true, 0, -1, -1}),
  };
}
// clang-format on

}  // namespace

const std::vector<KnownModel>& known_models() {
  static const std::vector<KnownModel> kRows = rows();
  return kRows;
}

const KnownModel& known_model(std::string_view name) {
  std::string names;
  for (const KnownModel& model : known_models()) {
    if (name == model.name) return model;
    names.append(names.empty() ? "" : " ").append(model.name);
  }
  throw Error(ErrorCode::not_found, fmt::format("no model \"{}\" is known; known are {}", name, names));
}

}  // namespace liuli
