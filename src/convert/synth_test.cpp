// Made-up files: their sizes, their bytes, their vocabulary.
#include "liuli/synth.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "convert/made_up_vocabulary.h"
#include "formats/gguf.h"
#include "formats/temporary_folder.h"
#include "liuli/error.h"

namespace liuli {
namespace {

SynthSettings settings(const char* model, const char* type, const std::string& output, int64_t layers) {
  SynthSettings s;
  s.model = model;
  s.type = type;
  s.output = output;
  s.n_layers = layers;
  return s;
}

TEST(MadeUpVocabulary, HasEveryByteTheExactSizeAndMergesThatFit) {
  for (const int64_t size : {256, 259, 50257, 262144}) {
    const int64_t eos = size > 256 ? size - 1 : -1;
    const MadeUpVocabulary v = made_up_vocabulary(size, -1, eos);
    ASSERT_EQ(static_cast<int64_t>(v.tokens.size()), size);
    EXPECT_EQ(v.types.size(), v.tokens.size());
    const std::set<std::string> tokens(v.tokens.begin(), v.tokens.end());
    EXPECT_EQ(tokens.size(), v.tokens.size()) << "no token twice";
    EXPECT_EQ(static_cast<int64_t>(v.merges.size()), size - 256 - (eos >= 0 ? 1 : 0));
    for (const std::string& merge : v.merges) {
      const size_t space = merge.find(' ');
      const std::string left = merge.substr(0, space), right = merge.substr(space + 1);
      ASSERT_TRUE(tokens.count(left) == 1 && tokens.count(right) == 1 && tokens.count(left + right) == 1)
          << merge;
    }
  }
}

TEST(MadeUpVocabulary, PutsControlTokensWhereTheModelHasThem) {
  const MadeUpVocabulary v = made_up_vocabulary(300, 0, 1);
  EXPECT_EQ(v.tokens[0], "<|begin_of_text|>");
  EXPECT_EQ(v.types[1], 3);
  EXPECT_EQ(v.types[2], 1);
  EXPECT_EQ(made_up_vocabulary(257, 256, 256).tokens[256], "<|endoftext|>");
  EXPECT_THROW(made_up_vocabulary(257, 0, 1), Error);
  EXPECT_THROW(made_up_vocabulary(300, 300, 1), Error);
}

TEST(Synth, AFileHasTheTensorsAndTypesOfItsModel) {
  const TemporaryFolder folder("synth-gpt2");
  const SynthReport report = write_synthetic_model(settings("gpt2", "q8_0", folder.file("g.gguf"), 2));
  const auto source = open_gguf(folder.file("g.gguf"));
  EXPECT_EQ(report.parameters, 50257 * 768 + 1024 * 768 + 2 * 7087872 + 2 * 768);
  EXPECT_EQ(source->file_bytes(), report.file_bytes);
  EXPECT_EQ(source->metadata().integer("gpt2.block_count"), 2);
  EXPECT_EQ(source->metadata().texts("tokenizer.ggml.tokens")->size(), 50257u);
  const TensorInfo* qkv = source->find("blk.1.attn_qkv.weight");
  ASSERT_NE(qkv, nullptr);
  EXPECT_EQ(qkv->shape, (std::vector<int64_t>{2304, 768}));
  EXPECT_EQ(qkv->type, DType::q8_0);
  EXPECT_EQ(source->find("position_embd.weight")->type, DType::f32);
  EXPECT_EQ(source->find("blk.2.attn_qkv.weight"), nullptr);
}

TEST(Synth, BytesDependOnTheSeedAndNotOnThreads) {
  const TemporaryFolder folder("synth-seed");
  SynthSettings s = settings("smollm2-135m", "q4_k_m", folder.file("a.gguf"), 1);
  s.threads = 1;
  write_synthetic_model(s);
  s.threads = 3;
  s.output = folder.file("b.gguf");
  write_synthetic_model(s);
  s.seed = 1;
  s.output = folder.file("c.gguf");
  write_synthetic_model(s);
  EXPECT_TRUE(folder.read("a.gguf") == folder.read("b.gguf"));
  EXPECT_FALSE(folder.read("a.gguf") == folder.read("c.gguf"));
}

TEST(Synth, Llama31FilesCarryTheDivisorsOfTheirFrequencies) {
  const TemporaryFolder folder("synth-rope");
  write_synthetic_model(settings("llama-3.2-1b", "q2_k", folder.file("l.gguf"), 1));
  const auto source = open_gguf(folder.file("l.gguf"));
  const TensorInfo* t = source->find("rope_freqs.weight");
  ASSERT_NE(t, nullptr);
  ASSERT_EQ(t->shape, (std::vector<int64_t>{32}));
  const auto* divisors = reinterpret_cast<const float*>(t->data);
  for (const auto& [i, expected] : std::map<int, float>{{0, 1.0f},
                                                        {14, 1.0f},
                                                        {15, 1.65132925f},
                                                        {16, 3.2922621f},
                                                        {17, 9.66672898f},
                                                        {18, 32.0f},
                                                        {31, 32.0f}})
    EXPECT_NEAR(divisors[i] / expected, 1, 1e-6) << i;
}

TEST(Synth, RefusesWhatCannotBe) {
  const auto code = [](SynthSettings s) {
    s.output = "/dev/null";
    try {
      write_synthetic_model(s);
    } catch (const Error& e) {
      return e.code();
    }
    return ErrorCode::cancelled;
  };
  EXPECT_EQ(code(settings("gpt3", "q4_0", "", 1)), ErrorCode::not_found);
  EXPECT_EQ(code(settings("gpt2", "q4_9", "", 1)), ErrorCode::not_found);
  EXPECT_EQ(code(settings("gpt2", "q4_0", "", 13)), ErrorCode::invalid_argument);
  EXPECT_EQ(code(settings("bert-base", "q4_0", "", 1)), ErrorCode::unsupported);
  EXPECT_EQ(code(settings("transformer-base", "q4_0", "", 1)), ErrorCode::unsupported);
  SynthSettings experts = settings("deepseek-v3", "q4_0", "", 1);
  experts.n_experts = 12;  // no multiple of the 8 groups
  EXPECT_EQ(code(experts), ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace liuli
