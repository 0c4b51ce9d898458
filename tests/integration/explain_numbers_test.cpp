// Any number of any point: what it is made of, recomputed in double from the operands as the kernels used them.
#include <filesystem>
#include <random>
#include <set>

#include "golden_support.h"
#include "trace/number_place.h"
#include "trace/point_selection.h"

namespace liuli::golden {
namespace {

constexpr int kThreads = 1;  // threads change no bit, and waking them costs more than such a model

const std::string kTiny = golden_path("tiny/");

struct Class {
  const char* name;
  ProductClassChoice choice;
  bool exact;
  CacheType cache_type = CacheType::automatic;
};
constexpr Class kClasses[] = {{"prompt", ProductClassChoice::prompt, false},
                              {"decode", ProductClassChoice::decode, false},
                              {"f32", ProductClassChoice::f32, false},
                              {"exact", ProductClassChoice::automatic, true}};
constexpr Class kCacheTypes[] = {{"prompt, q8_0", ProductClassChoice::prompt, false, CacheType::q8_0},
                                 {"decode, q8_0", ProductClassChoice::decode, false, CacheType::q8_0},
                                 {"prompt, q4_0", ProductClassChoice::prompt, false, CacheType::q4_0},
                                 {"decode, q4_0", ProductClassChoice::decode, false, CacheType::q4_0},
                                 {"decode, f16", ProductClassChoice::decode, false, CacheType::f16},
                                 {"prompt, f32", ProductClassChoice::prompt, false, CacheType::f32}};

std::vector<int> some_tokens(const ModelConfig& config, int n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int> ids;
  for (int i = 0; i < n; i++)
    ids.push_back(static_cast<int>(random() % static_cast<unsigned>(config.vocab_size)));
  return ids;
}

// A prompt, and the numbers of its run that are asked for.
class Sample {
 public:
  Sample(Engine& engine, int n_tokens, unsigned seed) : engine_(engine), random_(seed) {
    ids_ = some_tokens(engine.config(), n_tokens, seed);
    if (engine.config().is_encoder_decoder())
      settings_.beside.source = some_tokens(engine.config(), 9, seed + 1);
    if (engine.config().n_token_types > 1)
      for (int i = 0; i < n_tokens; i++) settings_.beside.token_types.push_back(i < 3 ? 0 : 1);
    counts_ = {n_tokens, static_cast<int64_t>(settings_.beside.source.size())};
  }

  // `n_each` numbers of every place that `chosen` takes.
  template <class F>
  void add(int n_each, F&& chosen) {
    for (const Place& place : all_places(engine_.config()))
      for (int i = 0; chosen(place) && i < n_each; i++) add_one(place);
  }
  void add(int n_each) {
    add(n_each, [](const Place&) { return true; });
  }

  std::vector<NumberExplanation> explain() { return engine_.explain(ids_, names_, settings_); }
  std::vector<TracedTensor> trace(const std::string& point) {
    TraceSettings settings;
    settings.beside = settings_.beside;
    return engine_.trace(ids_, {point}, settings);
  }
  const std::vector<std::string>& names() const { return names_; }
  ExplainNumberSettings& settings() { return settings_; }

 private:
  void add_one(const Place& place) {
    std::vector<int64_t> index;
    for (const int64_t size : place_shape(engine_.config(), place, counts_))
      index.push_back(static_cast<int64_t>(random_() % static_cast<unsigned>(size)));
    if (place.expert >= 0 && !choose_token(place, index)) return;
    names_.push_back(number_name(place, index));
  }
  // A token that goes through the expert, if there is one.
  bool choose_token(const Place& place, std::vector<int64_t>& index) {
    const std::string name = Place{Point::mlp_expert_ids, place.layer, place.stack}.name();
    if (routed_.count(name) == 0) routed_[name] = trace(name).at(0);
    const TracedTensor& ids = routed_[name];
    for (size_t i = 0; i < ids.values.size(); i++)
      if (static_cast<int>(ids.values[i]) == place.expert) {
        index[0] = static_cast<int64_t>(i) / ids.shape[1];
        return true;
      }
    return false;
  }

  Engine& engine_;
  std::mt19937 random_;
  std::vector<int> ids_;
  ExplainNumberSettings settings_;
  TokenCounts counts_;
  std::vector<std::string> names_;
  std::map<std::string, TracedTensor> routed_;
};

void expect_agreement(const std::vector<NumberExplanation>& all) {
  int worse = 0;
  for (const NumberExplanation& e : all) {
    if (e.agrees || ++worse > 12) continue;
    ADD_FAILURE() << e.name << " (" << e.kind << ", " << e.product_class << "): " << e.value
                  << ", recomputed " << e.recomputed << ", off by " << e.difference / e.magnitude
                  << " of Σ|terms| " << e.magnitude;
  }
  EXPECT_EQ(worse, 0) << "of " << all.size();
}

class EveryPoint : public testing::TestWithParam<const char*> {};

TEST_P(EveryPoint, IsRecomputedFromItsOperandsInEveryClass) {
  size_t numbers = 0;
  for (const Class& c : kClasses) {
    SCOPED_TRACE(c.name);
    Engine engine = load(kTiny + GetParam(), c.choice, c.exact, kThreads);
    Sample sample(engine, 11, 7);
    const auto n_places = static_cast<int>(all_places(engine.config()).size());
    sample.add(1 + 200 / n_places);
    const std::vector<NumberExplanation> all = sample.explain();
    numbers += all.size();
    expect_agreement(all);
    for (size_t i = 0; i < all.size(); i++) EXPECT_EQ(all[i].name, sample.names()[i]);
  }
  EXPECT_GE(numbers, 500u);
}
INSTANTIATE_TEST_SUITE_P(Families, EveryPoint,
                         testing::Values("llama", "llama_f16", "llama3_rope", "llama_bias", "qwen2",
                                         "qwen2_yarn", "qwen3", "gemma3", "olmo2", "gpt2", "bert",
                                         "deepseek_v3", "deepseek_v3_noq", "transformer2017", "qwen2moe",
                                         "qwen3moe", "mixtral", "phi3", "smollm3"),
                         [](const auto& i) { return std::string(i.param); });

TEST(EveryWeightType, IsRecomputedFromItsBlocksInEveryClass) {
  std::set<std::string> types;
  for (const char* model : {"llama", "llama_k256", "qwen2_q", "gemma3", "gpt2_q"})
    for (const auto& entry : std::filesystem::directory_iterator(kTiny + model + "/gguf")) {
      if (entry.path().extension() != ".gguf") continue;
      SCOPED_TRACE(entry.path().filename().string());
      for (const Class& c : kClasses) {
        SCOPED_TRACE(c.name);
        if (c.exact) continue;
        Engine engine = load(entry.path().string(), c.choice, false, kThreads);
        Sample sample(engine, 5, 3);
        sample.add(2, [](const Place& p) {
          return p.point == Point::embed || p.point == Point::attn_q || p.point == Point::attn_v ||
                 p.point == Point::attn_out_proj || p.point == Point::mlp_pre ||
                 p.point == Point::mlp_out_raw || p.point == Point::logits;
        });
        const std::vector<NumberExplanation> all = sample.explain();
        expect_agreement(all);
        for (const NumberExplanation& e : all)
          for (const NumberTerm& term : e.terms)
            if (const auto& stored = term.operands.back().stored) types.insert(stored->type);
      }
    }
  EXPECT_GE(types.size(), 20u);
}

TEST(Int8Prompts, AreRecomputedFromTheir8BitOperandsAtEveryPoint) {
  int in_int8 = 0;
  for (const char* file : {"llama_k256/gguf/llama_k256.MIX.gguf", "llama_k256/gguf/llama_k256.IQ2_XS.gguf",
                           "qwen2_q/gguf/qwen2_q.MIX.gguf", "gemma3/gguf/gemma3.Q8_0.gguf",
                           "gpt2_q/gguf/gpt2_q.Q8_0.gguf", "deepseek_v3/gguf/deepseek_v3.Q8_0.gguf"}) {
    SCOPED_TRACE(file);
    Engine engine = load(kTiny + file, ProductClassChoice::prompt, false, kThreads, CacheType::automatic,
                         PromptProducts::int8);
    Sample sample(engine, 11, 7);
    sample.add(3);
    const std::vector<NumberExplanation> all = sample.explain();
    expect_agreement(all);
    for (const NumberExplanation& e : all) in_int8 += e.activation_rounding == "8-bit integer · scale";
  }
  EXPECT_GE(in_int8, 100);
}

// Beyond one block of the attention kernels, whose rounding follows the running maximum; with and without a window.
TEST(LongPrompts, AttentionIsRecomputedAcrossBlocks) {
  for (const char* model : {"llama", "qwen2", "gemma3", "deepseek_v3"})
    for (const Class& c : kClasses) {
      SCOPED_TRACE(std::string(model) + " " + c.name);
      Engine engine = load(kTiny + model, c.choice, c.exact, kThreads);
      const int n = static_cast<int>(std::min<int64_t>(300, engine.config().max_seq_len));
      Sample sample(engine, n, 5);
      sample.add(4, [](const Place& p) { return p.point >= Point::attn_rot_q && p.point <= Point::attn_z; });
      expect_agreement(sample.explain());
    }
}

// (Of generated tokens over codes, z is recomputed from unrounded weights: see docs/explain.md.)
TEST(CacheTypes, AttentionIsRecomputedOverEveryOne) {
  for (const char* model : {"llama", "qwen2", "gemma3", "deepseek_v3", "transformer2017"})
    for (const Class& c : kCacheTypes) {
      SCOPED_TRACE(std::string(model) + " " + c.name);
      const bool codes = c.cache_type == CacheType::q8_0 || c.cache_type == CacheType::q4_0;
      const Point last =
          codes && c.choice == ProductClassChoice::decode ? Point::attn_pattern : Point::attn_z;
      Engine engine = load(kTiny + model, c.choice, c.exact, kThreads, c.cache_type);
      const int n = static_cast<int>(std::min<int64_t>(70, engine.config().max_seq_len));
      Sample sample(engine, n, 5);
      sample.add(4, [&](const Place& p) { return p.point >= Point::attn_rot_q && p.point <= last; });
      expect_agreement(sample.explain());
    }
}

}  // namespace
}  // namespace liuli::golden
