// What an explanation of a number says, beside that its recomputation agrees: names, stored bits, exact values, errors.
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "golden_support.h"
#include "liuli/explain.h"

namespace liuli::golden {
namespace {

const std::string kTiny = golden_path("tiny/");
const std::vector<int> kIds = {3, 14, 15, 9, 26, 5};

Engine quantised(ProductClassChoice product_class) {
  return load(kTiny + "llama/gguf/llama.Q4_0.gguf", product_class, false, 1);
}

std::string error_of(Engine& engine, const std::string& at) {
  try {
    engine.explain(kIds, {at});
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Explanation, ShowsTheNumberThatATraceShows) {
  Engine engine = quantised(ProductClassChoice::prompt);
  for (const std::string point : {"blocks.1.attn.pattern", "blocks.1.attn.scores"}) {
    const TracedTensor traced = engine.trace(kIds, {point}).at(0);
    const NumberExplanation e = engine.explain(kIds, {point + "[1,-1,2]"}).at(0);
    EXPECT_EQ(e.index, (std::vector<int64_t>{1, 5, 2}));
    EXPECT_EQ(e.shape, traced.shape);
    EXPECT_EQ(static_cast<float>(e.value), traced.values[(1 * 6 + 5) * 6 + 2]);
  }
}

// The rounding is what the operands are shown for: unrounded products come to another number. bf16 operands
// leave the tolerance by far; sixteen bits (the decode class, prompts without bf16) differ less, but plainly more than the
// recomputation.
TEST(Explanation, UnroundedOperandsComeToAnotherNumber) {
  for (const auto product_class : {ProductClassChoice::prompt, ProductClassChoice::decode}) {
    Engine engine = quantised(product_class);
    for (const NumberExplanation& e :
         engine.explain(kIds, {"blocks.0.mlp.out[2,3]", "blocks.1.attn.q[4,1,3]", "logits[-1,7]"})) {
      double unrounded = 0, used = 0;
      for (const NumberTerm& term : e.terms) {
        unrounded += term.operands[0].value * term.operands[1].value;
        used += term.operands[0].used * term.operands[1].used;
      }
      EXPECT_NEAR(used, e.recomputed, 1e-12) << e.name;
      EXPECT_TRUE(e.agrees) << e.name;
      const double apart = std::fabs(unrounded - e.value) / e.magnitude;
      EXPECT_GT(apart, 5 * e.difference / e.magnitude) << e.name;
    }
  }
}

TEST(Explanation, AWeightIsItsStoredCodeTimesItsScale) {
  for (const char* type : {"Q4_0", "Q4_1", "Q8_0", "Q5_1"}) {
    Engine engine = load(kTiny + "llama/gguf/llama." + type + ".gguf", ProductClassChoice::decode, false, 1);
    const NumberExplanation e = engine.explain(kIds, {"blocks.0.mlp.pre[1,5]"}).at(0);
    for (size_t i = 0; i < std::min<size_t>(e.terms.size(), 64); i++) {
      const NumberOperand& w = e.terms[i].operands[1];
      ASSERT_TRUE(w.stored && w.stored->has_code);
      const StoredBits& s = *w.stored;
      EXPECT_EQ(s.type, type);
      EXPECT_EQ(w.name, "blocks.0.mlp.gate.weight[5," + std::to_string(s.block * 32 + s.at) + "]");
      const double value =
          static_cast<double>(s.scale) * (s.code - s.offset) + static_cast<double>(s.minimum);
      EXPECT_NEAR(value, w.value, 1e-6 * (std::fabs(value) + std::fabs(static_cast<double>(s.minimum))));
      EXPECT_FALSE(s.bytes.empty());
    }
  }
}

// Three generations of questions: whatever an answer names as a point has an answer of its own.
TEST(Explanation, OperandsCanBeAskedForNext) {
  for (const std::string model : {"qwen3", "deepseek_v3", "gpt2"})
    for (const auto product_class : {ProductClassChoice::prompt, ProductClassChoice::decode}) {
      Engine engine = load(kTiny + model, product_class, false, 1);
      std::vector<std::string> questions = {"logits[-1,3]", "blocks.1.attn.z[-1,0,2]",
                                            "blocks.1.attn.scores[1,4,2]"};
      for (int generation = 0; generation < 3; generation++) {
        std::set<std::string> next;
        for (const NumberExplanation& e : engine.explain(kIds, questions)) {
          EXPECT_TRUE(e.agrees) << e.name;
          for (const NumberTerm& term : e.terms)
            for (const NumberOperand& operand : term.operands)
              if (operand.is_point && next.size() < 40) next.insert(operand.name);
        }
        ASSERT_FALSE(next.empty());
        questions.assign(next.begin(), next.end());
      }
    }
}

TEST(Explanation, TheExactValueIsThatOfARunInDouble) {
  Engine engine = quantised(ProductClassChoice::prompt);
  Engine exact = load(kTiny + "llama/gguf/llama.Q4_0.gguf", ProductClassChoice::automatic, true, 1);
  ExplainNumberSettings settings;
  settings.with_exact = true;
  const NumberExplanation e = engine.explain(kIds, {"blocks.1.resid_post[3,5]"}, settings).at(0);
  const TracedTensor traced = exact.trace(kIds, {"blocks.1.resid_post"}).at(0);
  ASSERT_TRUE(e.exact.has_value());
  EXPECT_EQ(static_cast<float>(*e.exact), traced.values[static_cast<size_t>(3 * traced.shape[1] + 5)]);
  EXPECT_NE(*e.exact, e.value);
}

TEST(Explanation, TermsLeftOutAreSummedUp) {
  Engine engine = quantised(ProductClassChoice::f32);
  ExplainNumberSettings settings;
  settings.max_terms = 5;
  const NumberExplanation e = engine.explain(kIds, {"logits[0,0]"}, settings).at(0);
  ASSERT_EQ(e.terms.size(), 5u);
  EXPECT_GT(e.n_terms, 5u);
  double sum = e.rest;
  for (size_t i = 0; i < e.terms.size(); i++) {
    sum += e.terms[i].value;
    EXPECT_LE(std::fabs(e.terms[i].value), std::fabs(e.terms[i == 0 ? 0 : i - 1].value));
  }
  EXPECT_NEAR(sum, e.sum, 1e-12);
}

TEST(Explanation, WrongNamesAndIndicesAreRefusedWithTheShape) {
  Engine engine = quantised(ProductClassChoice::prompt);
  EXPECT_NE(error_of(engine, "blocks.0.attn.patern[0,0,0]").find("nearest: blocks.0.attn.pattern"),
            std::string::npos);
  EXPECT_NE(error_of(engine, "blocks.0.attn.pattern").find("the shape is [n_heads "), std::string::npos);
  EXPECT_NE(error_of(engine, "blocks.0.attn.pattern[0,0]").find("2 indices are given"), std::string::npos);
  EXPECT_NE(error_of(engine, "blocks.0.attn.pattern[0,6,0]").find("index 6 is outside the shape"),
            std::string::npos);
  EXPECT_NE(error_of(engine, "blocks.0.attn.pattern[0,-7,0]").find("index -7 is outside"), std::string::npos);
  EXPECT_NE(error_of(engine, "blocks.0.attn.pattern[0,x,0]").find("\"x\" is not a whole number"),
            std::string::npos);
  EXPECT_NE(error_of(engine, "blocks.*.resid_pre[0,0]").find("not a pattern"), std::string::npos);
}

TEST(Explanation, AnExpertThatATokenPassesByIsAnErrorNamingItsExperts) {
  Engine engine = load(kTiny + "mixtral", ProductClassChoice::prompt, false, 1);
  const TracedTensor ids = engine.trace(kIds, {"blocks.0.mlp.expert_ids"}).at(0);
  int idle = 0;  // an expert that token 0 does not go through
  while (static_cast<float>(idle) == ids.values[0] || static_cast<float>(idle) == ids.values[1]) idle++;
  const std::string name = "blocks.0.mlp.experts." + std::to_string(idle) + ".pre[0,1]";
  EXPECT_NE(error_of(engine, name).find("does not go through expert"), std::string::npos);
}

TEST(Explanation, IsWrittenInBothLanguagesAndAsJson) {
  Engine engine = quantised(ProductClassChoice::decode);
  const NumberExplanation e = engine.explain(kIds, {"blocks.0.attn.k[2,0,1]"}).at(0);
  for (const Language language : {Language::zh, Language::en}) {
    const std::string text = render_text(e, language, 3);
    EXPECT_EQ(text.find("blocks.0.attn.k[2,0,1] = "), 0u);
    EXPECT_NE(text.find("blocks.0.attn.k.weight["), std::string::npos);
    EXPECT_NE(text.find(language == Language::zh ? "双精度重算" : "recomputed in double"), std::string::npos);
    EXPECT_NE(text.find(language == Language::zh ? "点积" : "dot product"), std::string::npos);
  }
  const nlohmann::ordered_json json = e;
  EXPECT_EQ(json.at("terms").size(), e.n_terms);
  EXPECT_EQ(json.at("terms")[0]["operands"][1]["stored"]["type"], "Q4_0");
  EXPECT_TRUE(json.at("agrees").get<bool>());
  EXPECT_EQ(json.at("rounding").at("weights"), "code · scale + minimum");
}

}  // namespace
}  // namespace liuli::golden
