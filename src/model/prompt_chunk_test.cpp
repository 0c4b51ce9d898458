#include "model/prompt_chunk.h"

#include <gtest/gtest.h>

namespace liuli {
namespace {

// A model of one routed layer whose weights are `rows` rows of 2048 floats.
Model mixture(int64_t n_experts, int64_t n_active, int64_t rows) {
  Model model;
  ModelConfig& c = model.config;
  c.d_model = 2048;
  c.n_heads = c.n_kv_heads = 16;
  c.head_dim = 128;
  c.experts.n_experts = n_experts;
  c.experts.n_experts_active = n_active;
  c.experts.d_ff = 768;
  c.layers.resize(1);
  c.layers[0].routed = n_experts > 0;
  model.token_embedding = Matrix("weights", DType::f32, rows, 2048, nullptr);
  return model;
}

constexpr int64_t kLarge = int64_t{1} << 20;  // 8 GiB: memory decides nothing

TEST(PromptChunk, GrowsUntilEachExpertHasEnoughRows) {
  EXPECT_EQ(prompt_chunk(mixture(0, 0, kLarge)), 512) << "dense";
  EXPECT_EQ(prompt_chunk(mixture(8, 2, kLarge)), 512) << "128 rows each as it is";
  EXPECT_EQ(prompt_chunk(mixture(64, 8, kLarge)), 1024);
  EXPECT_EQ(prompt_chunk(mixture(128, 8, kLarge)), 2048);
  EXPECT_EQ(prompt_chunk(mixture(1024, 8, kLarge)), 2048) << "no longer whatever the experts";
}

TEST(PromptChunk, HoldsAtMostATenthOfTheWeightsBesides) {
  for (int64_t rows = 1024; rows <= kLarge; rows *= 2) {
    const Model model = mixture(1024, 8, rows);
    const int chunk = prompt_chunk(model);
    EXPECT_TRUE(chunk == kDenseChunk || 10 * pass_bytes(model.config, chunk) <= rows * 2048 * 4) << rows;
  }
  EXPECT_EQ(prompt_chunk(mixture(1024, 8, 1024)), 512);
}

}  // namespace
}  // namespace liuli
