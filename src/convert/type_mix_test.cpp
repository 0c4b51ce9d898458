// The mixes, against what the customary tools write.
#include "convert/type_mix.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "liuli/error.h"

namespace liuli {
namespace {

const MixModel kLlama8B{32, 4, 0, false, false};

std::string type_in(const char* mix, const std::string& tensor, std::vector<int64_t> shape,
                    const MixModel& model = kLlama8B) {
  return dtype_info(find_type_mix(mix)->type_of(tensor, shape, model)).name;
}

TEST(TypeMix, Q4KMGivesSixBitsToTheEndsAndEveryThirdLayer) {
  // The layers of a published Llama-3-8B Q4_K_M whose v and down matrices are Q6_K.
  const std::vector<int> wide = {0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31};
  for (int layer = 0; layer < 32; layer++) {
    const char* expected = std::find(wide.begin(), wide.end(), layer) != wide.end() ? "Q6_K" : "Q4_K";
    const std::string blk = "blk." + std::to_string(layer) + ".";
    EXPECT_EQ(type_in("q4_k_m", blk + "attn_v.weight", {1024, 4096}), expected) << layer;
    EXPECT_EQ(type_in("Q4_K_M", blk + "ffn_down.weight", {4096, 14336}), expected) << layer;
    EXPECT_EQ(type_in("q4_k_m", blk + "attn_q.weight", {4096, 4096}), "Q4_K");
  }
  EXPECT_EQ(type_in("q4_k_m", "output.weight", {128256, 4096}), "Q6_K");
  EXPECT_EQ(type_in("q4_k_m", "token_embd.weight", {128256, 4096}), "Q4_K");
}

TEST(TypeMix, ATiedEmbeddingGetsTheOutputsType) {
  MixModel tied = kLlama8B;
  tied.tied_embeddings = true;
  EXPECT_EQ(type_in("q4_k_m", "token_embd.weight", {128256, 2048}, tied), "Q6_K");
  EXPECT_EQ(type_in("q8_0", "token_embd.weight", {128256, 2048}, tied), "Q8_0");
  EXPECT_EQ(type_in("f16", "token_embd.weight", {128256, 2048}, tied), "F16");
}

TEST(TypeMix, RowsThatAreNoWholeBlocksFallBack) {
  EXPECT_EQ(type_in("q4_k_s", "blk.9.attn_q.weight", {896, 896}), "Q5_0");
  EXPECT_EQ(type_in("q5_k_s", "blk.9.attn_q.weight", {896, 896}), "Q5_1");
  EXPECT_EQ(type_in("q6_k", "blk.9.attn_q.weight", {896, 896}), "Q8_0");
  EXPECT_EQ(type_in("q3_k_s", "blk.9.attn_q.weight", {896, 896}), "Q4_0");
  EXPECT_EQ(type_in("iq4_xs", "blk.9.attn_q.weight", {896, 896}), "IQ4_NL");
  EXPECT_EQ(type_in("q4_k_m", "output.weight", {151936, 896}), "Q8_0");
  EXPECT_EQ(type_in("iq2_m", "output.weight", {151936, 896}), "Q8_0");
  EXPECT_EQ(type_in("q8_0", "blk.9.attn_q.weight", {48, 48}), "F16");
}

TEST(TypeMix, KeepsVectorsNormsRoutersAndPositionsInF32) {
  EXPECT_EQ(type_in("q4_k_m", "blk.0.attn_norm.weight", {4096}), "F32");
  EXPECT_EQ(type_in("q4_k_m", "blk.0.attn_q.bias", {4096}), "F32");
  EXPECT_EQ(type_in("f16", "blk.0.ffn_gate_inp.weight", {256, 7168}), "F32");
  EXPECT_EQ(type_in("bf16", "position_embd.weight", {1024, 768}), "F32");
  EXPECT_EQ(type_in("q8_0", "token_types.weight", {2, 768}), "F32");
}

TEST(TypeMix, KnowsEveryMixOnceUnderItsFileType) {
  std::vector<uint32_t> ids;
  for (const TypeMix& mix : type_mixes()) {
    EXPECT_EQ(find_type_mix(mix.name), &mix);
    ids.push_back(mix.file_type);
  }
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
  EXPECT_EQ(find_type_mix("q4_k"), nullptr);
  EXPECT_EQ(find_type_mix("q4_k_m")->file_type, 15u);
  EXPECT_THROW(require_type_mix("q9_z"), Error);
}

TEST(TypeMix, ATypeWithoutAMixIsUsedForEveryMatrix) {
  const TypeMix pure = require_type_mix("q4_k");
  EXPECT_EQ(pure.type_of("output.weight", {128256, 4096}, kLlama8B), DType::q4_k);
  EXPECT_EQ(pure.type_of("blk.0.attn_v.weight", {1024, 4096}, kLlama8B), DType::q4_k);
  EXPECT_EQ(pure.type_of("blk.0.attn_v.weight", {1024, 896}, kLlama8B), DType::q5_0);
  EXPECT_EQ(require_type_mix("Q4_K_M").file_type, 15u);
}

}  // namespace
}  // namespace liuli
