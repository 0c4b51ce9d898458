// What stays true bit for bit: listening, threads, chunks, batches and rollbacks change nothing.
#include <cstring>

#include "golden_support.h"

namespace liuli::golden {
namespace {

// How an engine rounds: products, keys and values.
struct Rounding {
  ProductClassChoice product_class;
  CacheType cache_type = CacheType::automatic;
  PromptProducts prompt_products = PromptProducts::bf16;
};
constexpr Rounding kRoundings[] = {{ProductClassChoice::automatic},
                                   {ProductClassChoice::prompt},
                                   {ProductClassChoice::decode},
                                   {ProductClassChoice::f32},
                                   {ProductClassChoice::prompt, CacheType::q8_0},
                                   {ProductClassChoice::decode, CacheType::q8_0},
                                   {ProductClassChoice::prompt, CacheType::q4_0},
                                   {ProductClassChoice::decode, CacheType::q4_0},
                                   {ProductClassChoice::decode, CacheType::f16},
                                   {ProductClassChoice::prompt, CacheType::f32}};
// Of a real model, whose prompts and generated tokens then differ in class.
constexpr Rounding kRealRoundings[] = {{ProductClassChoice::automatic},
                                       {ProductClassChoice::prompt},
                                       {ProductClassChoice::decode},
                                       {ProductClassChoice::f32},
                                       {ProductClassChoice::automatic, CacheType::q8_0},
                                       {ProductClassChoice::automatic, CacheType::q4_0}};

// Prompts in 8 bits, of files that have integer codes.
constexpr Rounding kInt8Rounding = {ProductClassChoice::automatic, CacheType::automatic,
                                    PromptProducts::int8};

Engine load(const std::string& path, const Rounding& rounding, int threads = 2) {
  return golden::load(path, rounding.product_class, false, threads, rounding.cache_type,
                      rounding.prompt_products);
}

bool has_codes(const Engine& engine) {
  for (const PlannedWeight& w : engine.plan().weights)
    if (w.type != "F32" && w.type != "F16" && w.type != "BF16") return true;
  return false;
}

struct Case {
  const char* name;
  bool real;
  const char* file;
};

std::string path_of(const Case& c) { return c.real ? real_model(c.file) : golden_path(c.file); }

std::vector<int> some_tokens(int n, int vocab_size, unsigned seed) {
  std::vector<int> ids;
  for (int i = 0; i < n; i++) {
    seed = seed * 1664525u + 1013904223u;
    ids.push_back(static_cast<int>((seed >> 8) % static_cast<unsigned>(vocab_size)));
  }
  return ids;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}
bool same_bits(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); i++)
    if (!same_bits(a[i], b[i])) return false;
  return true;
}

class Promise : public testing::TestWithParam<Case> {
 protected:
  static int length(const Engine& engine) {
    return static_cast<int>(std::min<int64_t>(GetParam().real ? 150 : 90, engine.config().max_seq_len));
  }
  template <class F>
  void in_every_class(F&& f) {
    const std::span<const Rounding> usual =
        GetParam().real ? std::span<const Rounding>(kRealRoundings) : std::span<const Rounding>(kRoundings);
    std::vector<Rounding> roundings(usual.begin(), usual.end());
    if (has_codes(load(path_of(GetParam()), usual.front()))) roundings.push_back(kInt8Rounding);
    for (const Rounding& rounding : roundings) {
      SCOPED_TRACE("class " + std::to_string(static_cast<int>(rounding.product_class)) + ", cache " +
                   to_string(rounding.cache_type) + ", prompts " + to_string(rounding.prompt_products));
      Engine engine = load(path_of(GetParam()), rounding);
      f(engine, rounding);
    }
  }
};

TEST_P(Promise, CaptureChangesNoBit) {
  in_every_class([&](Engine& engine, const Rounding&) {
    const auto ids = some_tokens(length(engine), engine.vocab_size(), 1);
    const auto plain = all_logits(engine, ids);
    const std::vector<std::string> everything = {"*"},
                                   patterns = {"blocks.0.*", "blocks.*.attn.pattern", "ln_final.*", "logits"};
    const auto traced = engine.trace(ids, GetParam().real ? patterns : everything);
    const TracedTensor& logits = traced.back();
    ASSERT_EQ(logits.name, "logits");
    const size_t vocab = plain[0].size();
    for (size_t i = 0; i < ids.size(); i++)
      ASSERT_TRUE(same_bits(plain[i], std::span(logits.values).subspan(i * vocab, vocab)))
          << "position " << i;
  });
}

TEST_P(Promise, ThreadsAndChunksChangeNoBit) {
  in_every_class([&](Engine& two, const Rounding& rounding) {
    const auto ids = some_tokens(length(two), two.vocab_size(), 2);
    const auto whole = all_logits(two, ids);
    for (int chunk : {1, 7, 64})
      EXPECT_TRUE(same_bits(whole, all_logits(two, ids, chunk))) << "chunk " << chunk;
    Engine one = load(path_of(GetParam()), rounding, 1);
    EXPECT_TRUE(same_bits(whole, all_logits(one, ids))) << "one thread";
    Engine three = load(path_of(GetParam()), rounding, 3);
    EXPECT_TRUE(same_bits(whole, all_logits(three, ids))) << "three threads";
  });
}

TEST_P(Promise, ARowInABatchOfEightIsTheRowAlone) {
  in_every_class([&](Engine& engine, const Rounding&) {
    constexpr int kBatch = 8, kSteps = 3;
    std::vector<Session> alone, together;
    std::vector<Session*> pointers;
    for (int b = 0; b < kBatch; b++) {
      const auto prompt = some_tokens(3 + 7 * b, engine.vocab_size(), static_cast<unsigned>(b));
      alone.emplace_back(engine).feed(prompt);
      together.emplace_back(engine).feed(prompt);
    }
    for (Session& session : together) pointers.push_back(&session);
    for (int step = 0; step < kSteps; step++) {
      const auto next = some_tokens(kBatch, engine.vocab_size(), static_cast<unsigned>(100 + step));
      std::vector<std::vector<float>> batch;
      for (const auto row : Session::feed_together(pointers, next))
        batch.emplace_back(row.begin(), row.end());
      for (int b = 0; b < kBatch; b++) {
        const auto row =
            alone[static_cast<size_t>(b)].feed(std::span(next).subspan(static_cast<size_t>(b), 1), true);
        ASSERT_TRUE(same_bits(row, batch[static_cast<size_t>(b)])) << "step " << step << ", sequence " << b;
      }
    }
  });
}

TEST_P(Promise, ASecondTurnReusesTheCacheByTheRule) {
  in_every_class([&](Engine& engine, const Rounding&) {
    // First turn: prompt class; generated tokens: decode class. Second turn: the rest of its prompt, prompt
    // class.
    const auto first = some_tokens(35, engine.vocab_size(), 5),
               more = some_tokens(15, engine.vocab_size(), 6);
    GenerateSettings settings;
    settings.max_tokens = 6;
    settings.ignore_eos = true;
    Session chat(engine);
    const GenerateResult turn = chat.generate(first, settings);
    std::vector<int> second = first;
    for (const auto& token : turn.tokens) second.push_back(token.id);
    second.insert(second.end(), more.begin(), more.end());
    const GenerateResult next = chat.generate(second, settings);
    EXPECT_EQ(next.reused_tokens, static_cast<int>(first.size()) + 5);  // the sixth token was never fed

    Session by_hand(engine);
    by_hand.feed(first);
    for (int i = 0; i < 5; i++)
      by_hand.feed(std::span(&second[first.size() + static_cast<size_t>(i)], 1), true);
    const auto row = by_hand.feed(std::span(second).subspan(first.size() + 5));
    const auto best = std::max_element(row.begin(), row.begin() + engine.vocab_size()) - row.begin();
    EXPECT_EQ(next.tokens.front().id, static_cast<int>(best));

    // Rolling back and reading the same tokens again gives the same bits.
    const std::vector<float> before(row.begin(), row.end());
    by_hand.truncate(static_cast<int>(first.size()) + 5);
    EXPECT_TRUE(same_bits(before, by_hand.feed(std::span(second).subspan(first.size() + 5))));
  });
}

TEST_P(Promise, PatternRowsSumToOneAndTheResidualStreamAddsUp) {
  in_every_class([&](Engine& engine, const Rounding&) {
    const auto ids = some_tokens(30, engine.vocab_size(), 9);
    const bool has_next = engine.config().n_layers > 1;
    const auto traced = engine.trace(ids, {"blocks.0.*", has_next ? "blocks.1.resid_pre" : "embed"});
    auto value = [&](const std::string& name) -> const TracedTensor& {
      for (const auto& t : traced)
        if (t.name == name) return t;
      throw Error(ErrorCode::not_found, name);
    };
    const auto& pattern = value("blocks.0.attn.pattern");
    const auto keys = static_cast<size_t>(pattern.shape[2]);
    for (size_t row = 0; row < pattern.values.size() / keys; row++) {
      double sum = 0;
      for (size_t k = 0; k < keys; k++) {
        sum += static_cast<double>(pattern.values[row * keys + k]);
        if (k > row % keys) {
          ASSERT_EQ(pattern.values[row * keys + k], 0.0f) << "a key after the query";
        }
      }
      ASSERT_NEAR(sum, 1, 1e-5);
    }
    auto adds_up = [&](const char* a, const char* b, const char* c) {
      const auto &x = value(a), &y = value(b), &z = value(c);
      for (size_t i = 0; i < x.values.size(); i++)
        ASSERT_EQ(x.values[i] + y.values[i], z.values[i]) << c << " " << i;
    };
    adds_up("blocks.0.resid_pre", "blocks.0.attn_out", "blocks.0.resid_mid");
    adds_up("blocks.0.resid_mid", "blocks.0.mlp_out", "blocks.0.resid_post");
    if (has_next) {
      EXPECT_TRUE(same_bits(value("blocks.0.resid_post").values, value("blocks.1.resid_pre").values));
    }
    const auto& normal = value("blocks.0.ln1.normalized");
    const auto width = static_cast<size_t>(normal.shape[1]);
    for (size_t i = 0; i < ids.size(); i++) {
      double square = 0;
      for (size_t j = 0; j < width; j++)
        square += std::pow(static_cast<double>(normal.values[i * width + j]), 2);
      EXPECT_NEAR(square / static_cast<double>(width), 1, 0.02);  // eps keeps it slightly below 1
    }
  });
}

// A prompt longer than the usual chunk, cut in and beside its boundary; also across several pages and blocks of 256 keys.
TEST(LongPrompt, CutAnywhereGivesTheSameBits_smollm2) {
  Engine engine = load(real_model("smollm2"), Rounding{ProductClassChoice::automatic});
  const auto ids = some_tokens(600, engine.vocab_size(), 12);
  const auto whole = all_logits(engine, ids, 600);
  for (int chunk : {7, 64, 511, 512})
    EXPECT_TRUE(same_bits(whole, all_logits(engine, ids, chunk))) << "chunk " << chunk;
}

// F16 files: products in 16-bit fixed point and an f16 cache, so that neither class is further from --exact than f16
// arithmetic. (bf16 products and a bf16 cache: 1e-6 to 1e-4 on the same files.)
TEST(F16Files, AreAsCloseToExactAsF16ArithmeticInBothClasses) {
  for (const char* file : {"tiny/llama/gguf/llama.F16.gguf", "tiny/qwen2moe/gguf/qwen2moe.F16.gguf"}) {
    Engine exact = golden::load(golden_path(file), ProductClassChoice::automatic, true);
    const auto ids = some_tokens(60, exact.vocab_size(), 5);
    const auto reference = all_logits(exact, ids);
    for (const ProductClassChoice choice : {ProductClassChoice::prompt, ProductClassChoice::decode}) {
      Engine engine = golden::load(golden_path(file), choice);
      const auto logits = all_logits(engine, ids);
      double error = 0, size = 0;
      for (size_t i = 0; i < ids.size(); i++)
        for (size_t j = 0; j < logits[i].size(); j++) {
          const auto want = static_cast<double>(reference[i][j]);
          error += (static_cast<double>(logits[i][j]) - want) * (static_cast<double>(logits[i][j]) - want);
          size += want * want;
        }
      EXPECT_LE(error / size, 1e-6) << file << " class " << static_cast<int>(choice);
      EXPECT_EQ(engine.plan().attention_kernel.substr(0, 9), "f16 pages") << file;
    }
  }
}

TEST(CacheTypes, ThatTheClassCannotUseAreRefused) {
  const std::string file = golden_path("tiny/llama/gguf/llama.F32.gguf");
  EXPECT_THROW(load(file, {ProductClassChoice::f32, CacheType::q8_0}), Error);
  EXPECT_THROW(load(file, {ProductClassChoice::automatic, CacheType::f16}), Error) << "F32 files: f32 class";
  EXPECT_EQ(load(file, {ProductClassChoice::f32, CacheType::f32}).plan().cache_type, "f32");
  EXPECT_EQ(load(file, {ProductClassChoice::prompt, CacheType::q4_0}).plan().cache_type, "q4_0");
  EXPECT_THROW(cache_type_named("q5_1"), Error);
}

TEST(PromptProducts, ThatCannotTakeEffectAreRefused) {
  const auto int8 = [](ProductClassChoice choice, const char* file) {
    return load(golden_path(file), {choice, CacheType::automatic, PromptProducts::int8});
  };
  const char *codes = "tiny/qwen2_q/gguf/qwen2_q.MIX.gguf", *f16 = "tiny/llama/gguf/llama.F16.gguf";
  EXPECT_THROW(int8(ProductClassChoice::f32, codes), Error);
  EXPECT_THROW(int8(ProductClassChoice::decode, codes), Error);
  EXPECT_THROW(int8(ProductClassChoice::prompt, f16), Error);
  EXPECT_EQ(int8(ProductClassChoice::automatic, codes).plan().prompt_products, "int8");
  EXPECT_EQ(load(golden_path(codes), {ProductClassChoice::automatic}).plan().prompt_products, "bf16");
  EXPECT_THROW(prompt_products_named("int4"), Error);
}

// 8 bits move logits more than bf16 does, by their own rounding and no more.
TEST(PromptProducts, MoveLogitsByTheirOwnRoundingOnly) {
  const std::string file = golden_path("tiny/qwen2_q/gguf/qwen2_q.MIX.gguf");
  Engine f32 = load(file, {ProductClassChoice::f32});
  const auto ids = some_tokens(80, f32.vocab_size(), 3);
  const auto want = all_logits(f32, ids);
  const auto error_of = [&](PromptProducts products) {
    Engine engine = load(file, {ProductClassChoice::prompt, CacheType::f32, products});
    const auto got = all_logits(engine, ids);
    double error = 0, size = 0;
    for (size_t i = 0; i < ids.size(); i++)
      for (size_t j = 0; j < want[i].size(); j++) {
        const double w = static_cast<double>(want[i][j]);
        error += std::pow(static_cast<double>(got[i][j]) - w, 2);
        size += w * w;
      }
    return error / size;
  };
  const double bf16 = error_of(PromptProducts::bf16), int8 = error_of(PromptProducts::int8);
  EXPECT_GT(int8, bf16);
  EXPECT_LE(int8, 1e-3);
}

// How far logits move by the cache alone, against the same products over f32 keys and values.
TEST(CacheTypes, MoveLogitsByTheirOwnRoundingOnly) {
  const struct {
    CacheType type;
    double bound;
  } kBounds[] = {
      {CacheType::f16, 1e-5}, {CacheType::bf16, 1e-4}, {CacheType::q8_0, 1e-3}, {CacheType::q4_0, 0.1}};
  const std::string file = golden_path("tiny/qwen2_q/gguf/qwen2_q.MIX.gguf");
  Engine f32 = load(file, {ProductClassChoice::decode, CacheType::f32});
  const auto ids = some_tokens(80, f32.vocab_size(), 3);
  const auto want = all_logits(f32, ids);
  for (const auto& [type, bound] : kBounds) {
    Engine engine = load(file, {ProductClassChoice::decode, type});
    const auto got = all_logits(engine, ids);
    double error = 0, size = 0;
    for (size_t i = 0; i < ids.size(); i++)
      for (size_t j = 0; j < want[i].size(); j++) {
        const double w = static_cast<double>(want[i][j]), difference = static_cast<double>(got[i][j]) - w;
        error += difference * difference;
        size += w * w;
      }
    EXPECT_LE(error / size, bound) << to_string(type);
    EXPECT_GT(error, 0) << to_string(type);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Promise,
    testing::Values(Case{"tiny_llama_q4_0", false, "tiny/llama/gguf/llama.Q4_0.gguf"},
                    Case{"tiny_llama_f32", false, "tiny/llama/gguf/llama.F32.gguf"},
                    Case{"tiny_llama_f16", false, "tiny/llama/gguf/llama.F16.gguf"},
                    Case{"tiny_llama_mix", false, "tiny/llama_k256/gguf/llama_k256.MIX.gguf"},
                    Case{"tiny_llama_iq2_xs", false, "tiny/llama_k256/gguf/llama_k256.IQ2_XS.gguf"},
                    Case{"tiny_qwen2", false, "tiny/qwen2_q/gguf/qwen2_q.MIX.gguf"},
                    Case{"tiny_gpt2", false, "tiny/gpt2_q/gguf/gpt2_q.Q8_0.gguf"},
                    Case{"tiny_qwen2moe", false, "tiny/qwen2moe/gguf/qwen2moe.F16.gguf"},
                    Case{"tiny_mixtral", false, "tiny/mixtral/gguf/mixtral.F16.gguf"},
                    Case{"tiny_gemma3", false, "tiny/gemma3/gguf/gemma3.Q8_0.gguf"},
                    Case{"tiny_deepseek_v3", false, "tiny/deepseek_v3/gguf/deepseek_v3.Q8_0.gguf"},
                    Case{"smollm2", true, "smollm2"}),
    [](const auto& i) { return std::string(i.param.name); });

}  // namespace
}  // namespace liuli::golden
