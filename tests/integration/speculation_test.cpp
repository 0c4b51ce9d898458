// Speculation changes the speed and no bit: tokens, log-probabilities and what a session goes on from.
#include <cstring>

#include "engine/engine_parts.h"
#include "generate/drafter.h"
#include "golden_support.h"

namespace liuli::golden {
namespace {

struct Case {
  const char* name;
  bool real;
  const char* file;
};

std::string path_of(const Case& c) { return c.real ? real_model(c.file) : golden_path(c.file); }

// Tokens that repeat themselves, so that there is something to look up, and change between repetitions.
std::vector<int> repetitive_tokens(int n, int vocab_size) {
  std::vector<int> ids;
  for (int i = 0; i < n; i++) ids.push_back((7 * (i % 11) + (i % 23 == 5 ? 3 : 1)) % vocab_size);
  return ids;
}

GenerateSettings settings_of(float temperature, int max_tokens) {
  GenerateSettings settings;
  settings.max_tokens = max_tokens;
  settings.ignore_eos = true;
  settings.top_logprobs = 3;
  settings.sampling.temperature = temperature;
  settings.sampling.seed = 11;
  if (temperature > 0) settings.sampling.top_p = 0.95f;
  return settings;
}

void expect_same(const GenerateResult& a, const GenerateResult& b) {
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.reason, b.reason);
  ASSERT_EQ(a.tokens.size(), b.tokens.size());
  for (size_t i = 0; i < a.tokens.size(); i++) {
    ASSERT_EQ(a.tokens[i].id, b.tokens[i].id) << "token " << i;
    ASSERT_EQ(std::memcmp(&a.tokens[i].logprob, &b.tokens[i].logprob, sizeof(float)), 0) << "token " << i;
    ASSERT_EQ(a.tokens[i].top.size(), b.tokens[i].top.size());
    for (size_t k = 0; k < a.tokens[i].top.size(); k++) {
      ASSERT_EQ(a.tokens[i].top[k].id, b.tokens[i].top[k].id) << "token " << i;
      ASSERT_EQ(a.tokens[i].top[k].logprob, b.tokens[i].top[k].logprob) << "token " << i;
    }
  }
}

// Two turns with and without speculation; what the second session holds afterwards must give the same logits.
GenerateResult expect_same_conversation(Engine& engine, GenerateSettings settings, const Speculation& how,
                                        const std::vector<int>& prompt) {
  Session plain(engine), guessing(engine);
  const GenerateResult first = plain.generate(prompt, settings);
  settings.speculation = how;
  const GenerateResult guessed = guessing.generate(prompt, settings);
  expect_same(first, guessed);
  EXPECT_EQ(plain.tokens(), guessing.tokens());
  const std::vector<int> more = {3, 1, 2};
  const auto a = plain.feed(more);
  const std::vector<float> before(a.begin(), a.end());
  const auto b = guessing.feed(more);
  EXPECT_EQ(std::memcmp(before.data(), b.data(), b.size_bytes()), 0) << "logits of the next turn";
  return guessed;
}

class SpeculationOf : public testing::TestWithParam<Case> {
 protected:
  static int room(const Engine& engine, int wanted) {
    return static_cast<int>(std::min<int64_t>(wanted, engine.config().max_seq_len / 3));
  }
};

TEST_P(SpeculationOf, PassesOfSeveralRowsGiveTheBitsOfOneByOne) {
  for (const auto choice : {ProductClassChoice::automatic, ProductClassChoice::f32}) {
    Engine engine = load(path_of(GetParam()), choice, false, 1);
    const auto ids = repetitive_tokens(room(engine, 60), engine.vocab_size());
    for (const int rows : {2, 5, 17}) {
      Session one(engine), several(engine);
      one.feed(ids);
      several.feed(ids);
      const auto next = repetitive_tokens(rows, engine.vocab_size());
      std::vector<float> last;
      for (const int id : next) {
        const auto row = one.feed({&id, 1}, true);
        last.assign(row.begin(), row.end());
      }
      const auto row = several.feed(next, true);
      EXPECT_EQ(std::memcmp(last.data(), row.data(), row.size_bytes()), 0) << rows << " rows";
    }
  }
}

TEST_P(SpeculationOf, LookupChangesNoToken) {
  Engine engine = load(path_of(GetParam()), ProductClassChoice::automatic, false, 1);
  const int n = room(engine, 60);
  const auto prompt = repetitive_tokens(n, engine.vocab_size());
  Speculation how;
  how.source = Speculation::Source::lookup;
  int64_t guessed = 0;
  for (const float temperature : {0.0f, 0.7f}) {
    SCOPED_TRACE(temperature);
    for (const int max_draft : {1, 4, 15}) {
      how.max_draft = max_draft;
      guessed +=
          expect_same_conversation(engine, settings_of(temperature, n), how, prompt).speculation.drafted;
    }
  }
  EXPECT_GT(guessed, 0) << "nothing was guessed: the test says nothing";
}

TEST_P(SpeculationOf, ADraftModelChangesNoToken) {
  Engine engine = load(path_of(GetParam()), ProductClassChoice::automatic, false, 1);
  // The same file in another class draws nearly the same tokens.
  Engine draft = load(path_of(GetParam()), ProductClassChoice::f32, false, 1);
  const int n = room(engine, 40);
  Speculation how;
  how.source = Speculation::Source::draft;
  how.draft = &draft;
  for (const float temperature : {0.0f, 0.7f}) {
    SCOPED_TRACE(temperature);
    expect_same_conversation(engine, settings_of(temperature, n), how,
                             repetitive_tokens(n, engine.vocab_size()));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, SpeculationOf,
    testing::Values(Case{"tiny_llama_q4_0", false, "tiny/llama/gguf/llama.Q4_0.gguf"},
                    Case{"tiny_llama_f16", false, "tiny/llama/gguf/llama.F16.gguf"},
                    Case{"tiny_llama_mix", false, "tiny/llama_k256/gguf/llama_k256.MIX.gguf"},
                    Case{"tiny_qwen2moe", false, "tiny/qwen2moe/gguf/qwen2moe.F16.gguf"},
                    Case{"tiny_gemma3", false, "tiny/gemma3/gguf/gemma3.Q8_0.gguf"},
                    Case{"tiny_deepseek_v3", false, "tiny/deepseek_v3/gguf/deepseek_v3.Q8_0.gguf"},
                    Case{"smollm2", true, "smollm2"}),
    [](const auto& i) { return std::string(i.param.name); });

Engine tiny_llama() {
  return load(golden_path("tiny/llama/gguf/llama.Q4_0.gguf"), ProductClassChoice::automatic, false, 1);
}

// Whatever was drawn instead of its guesses, and however much it has not seen: a draft model says what it would draw alone.
TEST(ModelDrafter, GuessesWhatItsModelDrawsAfterAnyHistory) {
  Engine engine =
      load(golden_path("tiny/llama/gguf/llama.F32.gguf"), ProductClassChoice::automatic, false, 1);
  EngineParts& parts = engine.parts();
  Sequence sequence(*parts.model, parts.classes);
  const int64_t room = engine.config().max_seq_len;
  ModelDrafter drafter(sequence, *parts.runner, {}, engine.vocab_size(), room);
  const auto expect_guesses = [&](const std::vector<int>& history, size_t n) {
    ASSERT_GE(drafter.look(history), 0);
    drafter.prepare(history);
    const auto guesses = drafter.propose(history, static_cast<int>(n), Sampler({}));
    Session alone(engine);
    const GenerateResult expected = alone.generate(history, settings_of(0, static_cast<int>(n)));
    ASSERT_EQ(guesses.size(), n);
    for (size_t i = 0; i < n; i++) ASSERT_EQ(guesses[i], expected.tokens[i].id) << "guess " << i;
  };
  std::vector<int> text = repetitive_tokens(40, engine.vocab_size());
  expect_guesses(text, 5);
  text.insert(text.end(), {1, 2, 3});  // its guesses were wrong
  expect_guesses(text, 4);
  expect_guesses(text, 4);
  text.resize(17);  // another conversation
  expect_guesses(text, 3);
  const auto more = repetitive_tokens(30, engine.vocab_size());
  text.insert(text.end(), more.begin(), more.end());  // it did not guess for a while
  expect_guesses(text, 6);
  text = repetitive_tokens(static_cast<int>(room), engine.vocab_size());
  EXPECT_LT(drafter.look(text), 0);  // its context is full
  text.resize(static_cast<size_t>(room) - 2);
  drafter.prepare(text);
  EXPECT_EQ(drafter.propose(text, 9, Sampler({})).size(), 2u);
}

TEST(Speculation, EndsWhereTheTextEndsWithoutIt) {
  Engine engine = tiny_llama();
  const auto prompt = repetitive_tokens(40, engine.vocab_size());
  GenerateSettings settings = settings_of(0, 40);
  Speculation how;
  how.source = Speculation::Source::lookup;
  Session session(engine);
  const GenerateResult whole = session.generate(prompt, settings);
  // Every cut by length, and by the caller after every token.
  for (int n = 1; n < 40; n += 3) {
    settings.max_tokens = n;
    expect_same_conversation(engine, settings, how, prompt);
  }
  settings.max_tokens = 40;
  for (int stop_after = 1; stop_after < 40; stop_after += 5) {
    int plain_seen = 0, guessed_seen = 0;
    Session plain(engine), guessing(engine);
    GenerateSettings guess_settings = settings;
    guess_settings.speculation = how;
    expect_same(
        plain.generate(prompt, settings, [&](const auto&) { return ++plain_seen < stop_after; }),
        guessing.generate(prompt, guess_settings, [&](const auto&) { return ++guessed_seen < stop_after; }));
    EXPECT_EQ(plain.tokens(), guessing.tokens());
  }
}

TEST(Speculation, FillsTheContextToTheSameToken) {
  Engine engine = tiny_llama();
  const auto prompt = repetitive_tokens(40, engine.vocab_size());
  GenerateSettings settings = settings_of(0, 100);
  Session plain(engine, 61), guessing(engine, 61);
  const GenerateResult first = plain.generate(prompt, settings);
  EXPECT_EQ(first.reason, StopReason::context_full);
  settings.speculation.source = Speculation::Source::lookup;
  expect_same(first, guessing.generate(prompt, settings));
  EXPECT_EQ(plain.tokens(), guessing.tokens());
}

TEST(Speculation, PenaltiesSeeTheSameHistory) {
  Engine engine = tiny_llama();
  GenerateSettings settings = settings_of(0.8f, 40);
  settings.sampling.repetition_penalty = 1.3f;
  settings.sampling.frequency_penalty = 0.1f;
  Speculation how;
  how.source = Speculation::Source::lookup;
  expect_same_conversation(engine, settings, how, repetitive_tokens(60, engine.vocab_size()));
}

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Speculation, WhatDoesNotGoTogetherIsAnErrorThatSaysWhy_smollm2) {
  Engine engine = tiny_llama();
  Session session(engine);
  GenerateSettings settings = settings_of(0, 4);
  const auto expect_error = [&](const char* part) {
    const std::string error = error_of([&] { session.generate({1, 2}, settings); });
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  settings.speculation.source = Speculation::Source::draft;
  expect_error("no draft model was given");
  Engine words = Engine::load_tokenizer(golden_path("tiny/llama/gguf/llama.Q4_0.gguf"));
  settings.speculation.draft = &words;
  expect_error("only its tokenizer was loaded");
  Engine other = load(real_model("smollm2"), ProductClassChoice::automatic, false, 1);
  settings.speculation.draft = &other;
  expect_error("its vocabulary has");
  settings.speculation.source = Speculation::Source::lookup;
  settings.speculation.max_draft = 0;
  expect_error("at most 0 guesses");
  settings.speculation.max_draft = 4;
  settings.hooks.push_back({{"blocks.0.resid_pre"}, [](const HookValue&) {}});
  expect_error("edits and speculation");
}

}  // namespace
}  // namespace liuli::golden
