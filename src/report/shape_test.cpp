// Published counts, and the cost tables worked out by hand from them.
#include "report/shape.h"

#include <gtest/gtest.h>

#include <cmath>

#include "liuli/error.h"

namespace liuli {
namespace {

ModelShape shape(const char* name, int64_t context = 4096) { return shape_of(known_model(name), context); }

int64_t part(const ModelShape& s, const std::string& name) {
  for (const ShapePart& p : s.parts)
    if (p.name == name) return p.parameters;
  return -1;
}

int64_t bytes(const ModelShape& s, const std::string& type) {
  for (const ShapeBytes& b : s.bytes)
    if (b.type == type) return b.bytes;
  return -1;
}

TEST(Shape, ParametersEqualThePublishedCounts) {
  const std::vector<std::pair<const char*, int64_t>> published = {
      {"llama-3-8b", 8030261248},        {"llama-3.1-8b", 8030261248},     {"llama-3-70b", 70553706496},
      {"llama-3.1-70b", 70553706496},    {"llama-3.1-405b", 405853388800}, {"llama-3.2-1b", 1235814400},
      {"llama-3.2-3b", 3212749824},      {"smollm2-135m", 134515008},      {"smollm2-360m", 361821120},
      {"smollm2-1.7b", 1711376384},      {"qwen2.5-0.5b", 494032768},      {"qwen2.5-1.5b", 1543714304},
      {"qwen2.5-3b", 3085938688},        {"qwen2.5-7b", 7615616512},       {"qwen2.5-14b", 14770033664},
      {"qwen2.5-32b", 32763876352},      {"qwen2.5-72b", 72706203648},     {"qwen3-0.6b", 596049920},
      {"qwen3-1.7b", 1720574976},        {"qwen3-4b", 4022468096},         {"qwen3-8b", 8190735360},
      {"qwen3-14b", 14768307200},        {"qwen3-32b", 32762123264},       {"gemma-3-270m", 268098176},
      {"olmo-2-7b", 7298617344},         {"olmo-2-13b", 13716198400},      {"qwen3-30b-a3b", 30532122624},
      {"qwen3-235b-a22b", 235093634560}, {"deepseek-v3", 671026419200},    {"gpt2", 124439808},
      {"gpt2-medium", 354823168},        {"gpt2-large", 774030080},        {"gpt2-xl", 1557611200},
      {"bert-base", 109482240},          {"minilm-l6", 22713216},          {"transformer-base", 63082496},
      {"transformer-big", 214245376}};
  for (const auto& [name, parameters] : published) EXPECT_EQ(shape(name).parameters, parameters) << name;
  EXPECT_EQ(known_models().size(), published.size()) << "every model's total is pinned";
}

TEST(Shape, BlocksAreThoseTheArticleCounts) {
  EXPECT_EQ(shape("llama-3-8b").n_layers, 32);
  EXPECT_EQ(shape("qwen2.5-7b").n_layers, 28);
  EXPECT_EQ(shape("deepseek-v3").n_layers, 61);
}

TEST(Shape, DeepSeekV3SplitsIntoItsPublishedParts) {
  const ModelShape s = shape("deepseek-v3");
  EXPECT_EQ(s.active_parameters, 37552297472) << "37 B active, both embedding tables included";
  EXPECT_EQ(s.active_parameters - part(s, "embedding"), 36625618432);
  EXPECT_EQ(part(s, "experts"), int64_t{58} * 256 * 44040192);
  EXPECT_EQ(part(s, "shared experts"), int64_t{58} * 44040192);
  EXPECT_EQ(part(s, "router"), int64_t{58} * 1835264);
  EXPECT_EQ(part(s, "feed-forward"), int64_t{3} * 396361728);
  EXPECT_EQ(part(s, "attention k up") + part(s, "attention v up"), int64_t{61} * 512 * 128 * 256);
}

TEST(Shape, Qwen3MixturesUseTheirPublishedShareOfParametersPerToken) {
  EXPECT_EQ(shape("qwen3-30b-a3b").active_parameters, 3353032704) << "3.3 B active";
  EXPECT_EQ(part(shape("qwen3-30b-a3b"), "shared experts"), -1);
  EXPECT_NEAR(static_cast<double>(shape("qwen3-235b-a22b").active_parameters) / 1e9, 22, 0.3);
}

TEST(Shape, CacheBytesPerTokenFollowTheForms) {
  const std::vector<std::pair<const char*, int64_t>> grouped = {
      {"llama-3-8b", 131072},  {"llama-3.2-1b", 32768}, {"llama-3.2-3b", 114688}, {"smollm2-135m", 23040},
      {"qwen2.5-0.5b", 12288}, {"qwen2.5-1.5b", 28672}, {"qwen2.5-7b", 57344},    {"qwen3-0.6b", 114688},
      {"qwen3-8b", 147456},    {"qwen3-32b", 262144},   {"gemma-3-270m", 18432}};
  for (const auto& [name, bytes_per_token] : grouped)
    EXPECT_EQ(shape(name).cache_grouped, bytes_per_token) << name;
  EXPECT_EQ(shape("llama-3-8b").cache_plain, 4 * 131072);
  EXPECT_EQ(shape("llama-3-8b").cache_bytes, int64_t{512} << 20);
  EXPECT_EQ(shape("olmo-2-7b").cache_plain, 524288);
  EXPECT_EQ(shape("olmo-2-7b").cache_grouped, 0) << "every head has its own k and v";
  EXPECT_EQ(shape("gpt2", 1024).cache_bytes, int64_t{36} << 20);
  EXPECT_EQ(shape("bert-base").cache_plain, 0);
  EXPECT_EQ(shape("deepseek-v3").cache_latent, 70272);
  EXPECT_EQ(shape("deepseek-v3").cache_plain, 4997120);
  EXPECT_EQ(shape("deepseek-v3").cache_bytes, 70272 * 4096);
  EXPECT_EQ(shape("gemma-3-270m").cache_bytes, int64_t{72} << 20);
  EXPECT_EQ(shape("gemma-3-270m").cache_bytes_windowed, int64_t{39} << 19);  // 19.5 MiB
}

TEST(Shape, ArithmeticPerTokenIsTwiceTheWeightsThatMultiply) {
  const std::vector<std::pair<const char*, double>> gflops = {
      {"llama-3-8b", 15.009},   {"llama-3.2-1b", 2.4715}, {"llama-3.2-3b", 6.4251}, {"smollm2-135m", 0.2690},
      {"qwen2.5-0.5b", 0.9879}, {"qwen2.5-1.5b", 3.0871}, {"qwen2.5-7b", 14.141},   {"qwen3-0.6b", 1.1920},
      {"qwen3-8b", 15.136},     {"qwen3-32b", 63.967},    {"gemma-3-270m", 0.5361}, {"olmo-2-7b", 13.774},
      {"gpt2", 0.24706},        {"bert-base", 0.1699},    {"minilm-l6", 0.02123},   {"deepseek-v3", 73.249}};
  for (const auto& [name, expected] : gflops)
    EXPECT_NEAR(shape(name).product_flops / 1e9 / expected, 1, 5e-4)
        << name;  // the table has four digits or more
}

TEST(Shape, AttentionCostsTheSamePerVisibleKey) {
  EXPECT_EQ(shape("llama-3-8b").attention_flops, 524288);
  EXPECT_EQ(shape("qwen3-32b").attention_flops, 2097152);
  EXPECT_EQ(shape("gpt2").attention_flops, 36864);
  EXPECT_EQ(shape("deepseek-v3").attention_flops, 4997120);
  EXPECT_EQ(shape("deepseek-v3").attention_flops_latent, 16990208);
  const ModelShape s = shape("llama-3-8b", 1000);
  EXPECT_EQ(s.flops_at_context, s.product_flops + 1000 * 524288.0);
}

TEST(Shape, BytesAreThoseOfPublishedFiles) {
  EXPECT_NEAR(static_cast<double>(bytes(shape("llama-3-8b"), "F16, BF16")) / std::pow(2, 30), 14.958, 5e-4);
  EXPECT_NEAR(static_cast<double>(bytes(shape("qwen3-8b"), "F16, BF16")) / std::pow(2, 30), 15.256, 5e-4);
  EXPECT_NEAR(static_cast<double>(bytes(shape("deepseek-v3"), "FP8")) / std::pow(2, 30), 627, 1.5);
  // Published Meta-Llama-3-8B files: 4.92 GB in Q4_K_M, 8.54 GB in Q8_0, of which keys and vocabulary are 7.8 MB.
  EXPECT_NEAR(static_cast<double>(bytes(shape("llama-3-8b"), "Q4_K_M")) / 1e9, 4.913, 2e-3);
  EXPECT_NEAR(static_cast<double>(bytes(shape("llama-3-8b"), "Q8_0")) / 1e9, 8.533, 2e-3);
}

TEST(Shape, RefusesUnknownNamesAndNegativeContexts) {
  EXPECT_THROW(known_model("llama-9"), Error);
  EXPECT_THROW(shape("llama-3-8b", -1), Error);
}

}  // namespace
}  // namespace liuli
