// A model that reads both ways against float64 runs of the reference implementation: every stored number of the tiny one,
// both file formats; embeddings do not depend on what they are computed with.
#include <cstring>
#include <fstream>

#include <nlohmann/json.hpp>

#include "golden_support.h"

namespace liuli::golden {
namespace {

constexpr double kActivations = 1e-4, kPatterns = 1e-5;

const char* const kFiles[] = {"tiny/bert", "tiny/bert/gguf/bert.F32.gguf"};

bool ends_with(const std::string& text, const std::string& end) { return text.ends_with(end); }

// The reference's name of a value → ours; "" for what is not a point of this file.
std::string our_name(const std::string& name, bool has_pooler) {
  for (const char* other : {"input_ids", "token_type_ids", "sentence"})
    if (name == other) return "";
  if (name == "pooler" && !has_pooler) return "";
  if (name == "last_hidden_state") return "blocks.1.normalized_resid_post";
  if (ends_with(name, ".scale")) return name.substr(0, name.size() - 5) + "sigma";
  if (ends_with(name, ".attn.q") || ends_with(name, ".attn.k"))
    return name.substr(0, name.size() - 1) + "rot_" + name.back();
  return name;
}

int expect_intermediates(Engine& engine, const SafetensorsFile& golden, const std::string& prompt) {
  const std::string prefix = prompt + ".";
  TraceSettings settings;
  settings.beside.token_types = token_ids(golden, prefix + "token_type_ids");
  const auto everything = engine.trace(token_ids(golden, prefix + "input_ids"), {"*"}, settings);
  int compared = 0;
  for (const auto& tensor : golden.tensors()) {
    if (!tensor.name.starts_with(prefix)) continue;
    const std::string point = our_name(tensor.name.substr(prefix.size()), engine.config().has_pooler);
    if (point.empty()) continue;
    const auto traced = std::find_if(everything.begin(), everything.end(),
                                     [&](const TracedTensor& t) { return t.name == point; });
    if (traced == everything.end()) {
      ADD_FAILURE() << point << " was not traced";
      continue;
    }
    EXPECT_LE(largest_difference(traced->values, golden.doubles(tensor.name)),
              ends_with(point, "pattern") ? kPatterns : kActivations)
        << tensor.name;
    compared++;
  }
  return compared;
}

TEST(TinyBert, MatchesTheReferenceInEveryStoredNumber) {
  const SafetensorsFile golden(golden_path("tiny/bert/golden.safetensors"));
  for (const char* file : kFiles)
    for (const bool exact : {false, true}) {
      SCOPED_TRACE(std::string(file) + (exact ? " exact" : " f32"));
      Engine engine = load(golden_path(file), ProductClassChoice::automatic, exact);
      for (const std::string prompt : {"p0", "p1", "p2"})
        EXPECT_GE(expect_intermediates(engine, golden, prompt), 40) << prompt;
      for (const std::string prompt : {"p0", "p1"}) {  // p2 has two segments
        const std::vector<std::vector<int>> texts = {token_ids(golden, prompt + ".input_ids")};
        EXPECT_LE(largest_difference(engine.embed_ids(texts)[0].values, golden.doubles(prompt + ".sentence")),
                  kActivations)
            << prompt;
      }
    }
}

std::vector<std::vector<int>> texts_of_many_lengths() {
  std::vector<std::vector<int>> texts;
  for (int n = 1; n <= 64; n += 9) {
    std::vector<int>& text = texts.emplace_back();
    for (int i = 0; i < n; i++) text.push_back((n * 31 + i * 17) % 347);
  }
  return texts;
}

TEST(TinyBert, GivesATextTheSameVectorAloneAndInABatch) {
  const auto texts = texts_of_many_lengths();
  for (const auto product_class : {ProductClassChoice::automatic, ProductClassChoice::prompt,
                                   ProductClassChoice::decode, ProductClassChoice::f32})
    for (const Pooling pooling : {Pooling::mean, Pooling::cls, Pooling::last}) {
      EmbedSettings together, alone;
      together.pooling = alone.pooling = pooling;
      together.batch_tokens = 1 << 20;
      alone.batch_tokens = 0;
      Engine two = load(golden_path("tiny/bert"), product_class),
             one = load(golden_path("tiny/bert"), product_class, false, 1);
      const auto a = two.embed_ids(texts, together), b = one.embed_ids(texts, alone);
      ASSERT_EQ(a.size(), texts.size());
      for (size_t i = 0; i < a.size(); i++) EXPECT_EQ(a[i].values, b[i].values) << "text " << i;
    }
}

TEST(TinyBert, IsTheSameWithSomebodyWatching) {
  const auto texts = texts_of_many_lengths();
  EmbedSettings raw;
  raw.normalise = false;
  raw.pooling = Pooling::cls;
  for (const auto product_class : {ProductClassChoice::prompt, ProductClassChoice::f32}) {
    Engine engine = load(golden_path("tiny/bert"), product_class);
    const auto traced = engine.trace(texts.back(), {"*"});
    const auto row = engine.embed_ids(std::span(&texts.back(), 1), raw)[0].values;
    const auto last = std::find_if(traced.begin(), traced.end(), [](const TracedTensor& t) {
      return t.name == "blocks.1.normalized_resid_post";
    });
    ASSERT_NE(last, traced.end());
    EXPECT_EQ(std::memcmp(row.data(), last->values.data(), row.size() * sizeof(float)), 0);
  }
}

TEST(TinyBert, LetsEveryTokenSeeEveryOther) {
  Engine engine = load(golden_path("tiny/bert"), ProductClassChoice::automatic);
  const auto pattern = engine.trace({5, 6, 7, 8}, {"blocks.1.attn.pattern"}).at(0);
  ASSERT_EQ(pattern.shape, (std::vector<int64_t>{3, 4, 4}));
  for (size_t row = 0; row < 12; row++) {
    double sum = 0;
    for (size_t key = 0; key < 4; key++) {
      EXPECT_GT(pattern.values[row * 4 + key], 0.0f);
      sum += double{pattern.values[row * 4 + key]};
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

template <class F>
std::string error_of(ErrorCode code, F&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(TinyBert, SaysWhatItCannotDo) {
  Engine engine = load(golden_path("tiny/bert"), ProductClassChoice::automatic);
  EXPECT_NE(error_of(ErrorCode::unsupported, [&] { Session session(engine); }).find("liuli embed"),
            std::string::npos);
  error_of(ErrorCode::unsupported, [&] { engine.logits({1, 2}, [](int, std::span<const float>) {}); });
  error_of(ErrorCode::unsupported, [&] { engine.perplexity({1, 2, 3}, 16); });
  error_of(ErrorCode::out_of_memory, [&] { engine.trace(std::vector<int>(65, 1), {"embed_sum"}); });
  error_of(ErrorCode::invalid_argument, [&] { engine.trace({347}, {"embed_sum"}); });
  TraceSettings settings;
  settings.beside.token_types = {0, 2};
  error_of(ErrorCode::invalid_argument, [&] { engine.trace({1, 2}, {"embed_sum"}, settings); });
  settings.beside.token_types = {0};
  error_of(ErrorCode::invalid_argument, [&] { engine.trace({1, 2}, {"embed_sum"}, settings); });
  settings.beside = {{1, 2}, {}};
  error_of(ErrorCode::invalid_argument, [&] { engine.trace({1, 2}, {"embed_sum"}, settings); });
}

// Any decoder is an embedding model too: its last row after the final norm, or the mean of all.
TEST(TinyDecoder, EmbedsByItsRowsAfterTheFinalNorm) {
  Engine engine = load(golden_path("tiny/qwen2"), ProductClassChoice::f32);
  const std::vector<std::vector<int>> texts = {{5, 6, 7, 8}, {9, 10}};
  EmbedSettings raw;
  raw.normalise = false;
  EXPECT_EQ(engine.embed_plan().pooling, Pooling::last);
  const auto embeddings = engine.embed_ids(texts, raw);
  const auto rows = engine.trace(texts[0], {"ln_final.out"}).at(0);
  const auto width = static_cast<size_t>(rows.shape[1]);
  EXPECT_EQ(embeddings[0].values,
            std::vector<float>(rows.values.end() - static_cast<ptrdiff_t>(width), rows.values.end()));
}

// ---- MiniLM, the real thing: tokenizer, pooling and limits from its own folder ----

class MiniLm : public testing::Test {
 protected:
  const SafetensorsFile golden{golden_path("real/minilm.safetensors")};
  const nlohmann::json about = nlohmann::json::parse(std::ifstream(golden_path("real/minilm.json")));

  std::vector<std::string> sentences() const {
    std::vector<std::string> texts;
    for (const auto& sentence : about.at("sentences")) texts.push_back(sentence.at("text"));
    return texts;
  }
  std::string folder() const {
    const std::string file = real_model("minilm");
    return file.substr(0, file.size() - std::string(".gguf").size());
  }
};

TEST_F(MiniLm, GivesEverySentenceItsVectorAndCutsAsItsFilesSay) {
  const auto texts = sentences();
  for (const bool exact : {false, true}) {
    Engine engine = load(folder(), ProductClassChoice::automatic, exact);
    const EmbedPlan plan = engine.embed_plan();
    EXPECT_EQ(plan.pooling, Pooling::mean);
    EXPECT_TRUE(plan.normalise);
    EXPECT_EQ(plan.max_tokens, 256);
    const auto embeddings = engine.embed(texts);
    EmbedSettings first_row;
    first_row.pooling = Pooling::cls;
    first_row.normalise = false;
    const auto rows = engine.embed(texts, first_row);
    double worst = 0;
    for (size_t i = 0; i < texts.size(); i++) {
      const std::string name = "s" + std::to_string(i);
      worst = std::max(worst, largest_difference(embeddings[i].values, golden.doubles(name + ".embedding")));
      EXPECT_LE(largest_difference(rows[i].values, golden.doubles(name + ".cls")), kActivations) << name;
      EXPECT_EQ(embeddings[i].tokens, golden.find(name + ".input_ids")->shape[0]);
      EXPECT_EQ(embeddings[i].cut, i == 7);
    }
    EXPECT_LE(worst, kActivations);
    std::printf("  %s: %zu sentences within %.1e\n", exact ? "exact" : "f32", texts.size(), worst);
    const auto cosine = golden.doubles("cosine");
    for (size_t i = 0; i < texts.size(); i++)
      for (size_t j = i + 1; j < texts.size(); j++)
        EXPECT_NEAR(cosine_similarity(embeddings[i].values, embeddings[j].values),
                    cosine[i * texts.size() + j], kActivations);
    EmbedSettings shorter;
    shorter.max_tokens = 128;
    EXPECT_LE(largest_difference(engine.embed(std::span(&texts[7], 1), shorter)[0].values,
                                 golden.doubles("s7.embedding_trunc128")),
              kActivations);
  }
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double v : values) most = std::max(most, std::fabs(v));
  return most;
}

// One channel of block 0's feed-forward is in the hundreds, where float32 has no more than 3e-5.
TEST_F(MiniLm, ShowsTheReferencesPatternsAndBlockZero) {
  for (const bool exact : {false, true}) {
    SCOPED_TRACE(exact ? "exact" : "f32");
    Engine engine = load(folder(), ProductClassChoice::automatic, exact);
    const auto ids = token_ids(golden, "attn.input_ids");
    EXPECT_EQ(engine.tokenize(about.at("attn_sentence").get<std::string>()), ids);
    const auto everything = engine.trace(ids, {"*"});
    int compared = 0;
    for (const auto& tensor : golden.tensors()) {
      if (!tensor.name.starts_with("attn.") || tensor.name == "attn.input_ids") continue;
      std::string point = our_name(tensor.name.substr(5), true);
      if (tensor.name == "attn.last_hidden_state") point = "blocks.5.normalized_resid_post";
      const auto traced = std::find_if(everything.begin(), everything.end(),
                                       [&](const TracedTensor& t) { return t.name == point; });
      ASSERT_NE(traced, everything.end()) << point;
      const auto expected = golden.doubles(tensor.name);
      const double activations = kActivations + 1e-6 * largest(expected);
      EXPECT_LE(largest_difference(traced->values, expected),
                ends_with(point, "pattern") ? kPatterns : activations)
          << point << ", largest " << largest(expected);
      compared++;
    }
    EXPECT_GE(compared, 36);
  }
}

// The fast classes are for speed; what they lose on a real model is shown here.
TEST_F(MiniLm, StaysNearTheReferenceInTheFastClasses) {
  const auto texts = sentences();
  for (const auto& [product_class, bar] :
       {std::pair{ProductClassChoice::prompt, 0.999}, std::pair{ProductClassChoice::decode, 0.9999}}) {
    Engine engine = load(folder(), product_class);
    const auto embeddings = engine.embed(texts);
    double worst = 1;
    for (size_t i = 0; i < texts.size(); i++) {
      const auto expected = golden.doubles("s" + std::to_string(i) + ".embedding");
      worst = std::min(worst, cosine_similarity(embeddings[i].values, {expected.begin(), expected.end()}));
    }
    EXPECT_GE(worst, bar);
    std::printf("  class %d: smallest cosine to the reference %.6f\n", static_cast<int>(product_class),
                worst);
  }
}

}  // namespace
}  // namespace liuli::golden
