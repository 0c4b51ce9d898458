// Edits as data: what they do, by hand, and what they refuse.
#include <cmath>
#include <limits>
#include <set>

#include "formats/npy.h"
#include "golden_support.h"
#include "liuli/diff.h"
#include "liuli/edit.h"

namespace liuli::golden {
namespace {

const std::vector<int> kIds = {3, 17, 44, 5, 101, 9, 250, 33, 7};
const std::vector<int> kOther = {8, 17, 40, 5, 11, 90, 25, 3, 70};

Engine load_tiny(const std::string& name, ProductClassChoice product_class = ProductClassChoice::f32) {
  return load(golden_path("tiny/" + name), product_class, false, 1);
}

std::vector<float> traced(Engine& engine, const std::string& point,
                          const std::vector<std::string>& edits = {}, const std::vector<int>& ids = kIds) {
  std::vector<Edit> parsed;
  for (const std::string& edit : edits) parsed.push_back(parse_edit(engine, edit));
  const EditHooks hooks(engine, parsed, ids);
  TraceSettings settings;
  settings.hooks = hooks.hooks();
  auto tensors = engine.trace(ids, {point}, settings);
  hooks.require_all_applied();
  return tensors.at(0).values;
}

std::string list(const std::vector<int>& ids) {
  std::string text = "[";
  for (const int id : ids) text += (text.size() > 1 ? "," : "") + std::to_string(id);
  return text + "]";
}

size_t width_of(const std::vector<float>& values) { return values.size() / kIds.size(); }

TEST(Edits, AblatingANeuronTakesItsColumnOfTheDownMatrixAway) {
  Engine engine = load_tiny("gpt2");
  const auto post = traced(engine, "blocks.1.mlp.post"), before = traced(engine, "blocks.1.mlp_out"),
             after = traced(engine, "blocks.1.mlp_out", {"blocks.1.mlp.post[-1,7] *= 0"});
  const auto down = engine.weight("blocks.1.mlp.down.weight");
  const size_t d = width_of(before), ff = width_of(post), last = kIds.size() - 1;
  for (size_t i = 0; i < before.size(); i++) {
    if (i / d < last) {
      EXPECT_EQ(after[i], before[i]);
      continue;
    }
    const float expected = before[i] - down.values[(i - last * d) * ff + 7] * post[last * ff + 7];
    EXPECT_NEAR(after[i], expected, 1e-5);
  }
  EXPECT_TRUE(traced(engine, "blocks.0.resid_mid", {"blocks.0.attn_out = 0"}) ==
              traced(engine, "blocks.0.resid_pre"));
}

TEST(Edits, PatchingTheWholeStreamGivesTheOtherPromptsLogits) {
  Engine engine = load_tiny("llama");
  const auto theirs = traced(engine, "logits", {}, kOther);
  EXPECT_TRUE(traced(engine, "logits", {"blocks.1.resid_pre = patch:" + list(kOther)}) == theirs);
  const auto ours = traced(engine, "blocks.1.resid_pre"),
             other = traced(engine, "blocks.1.resid_pre", {}, kOther),
             mixed =
                 traced(engine, "blocks.1.resid_pre", {"blocks.1.resid_pre[2:4,5] = patch:" + list(kOther)});
  const size_t d = width_of(ours);
  for (size_t i = 0; i < ours.size(); i++) {
    const bool patched = i % d == 5 && (i / d == 2 || i / d == 3);
    EXPECT_EQ(mixed[i], patched ? other[i] : ours[i]);
  }
}

TEST(Edits, AKnockedOutEdgeLeavesItsWeightToTheOthers) {
  Engine engine = load_tiny("gemma3");
  const size_t n = kIds.size();
  const auto before = traced(engine, "blocks.0.attn.pattern"),
             after = traced(engine, "blocks.0.attn.pattern", {"blocks.0.attn.pattern[2,6,3] = knock_out"});
  for (size_t i = 0; i < before.size(); i++) {
    const bool row = i / n == 2 * n + 6;
    const float left = 1 - before[(2 * n + 6) * n + 3];
    EXPECT_NEAR(after[i], !row ? before[i] : i % n == 3 ? 0 : before[i] / left, 1e-5);
  }
}

TEST(Edits, SteeringAndScalingActOnTheirSliceOnly) {
  Engine engine = load_tiny("llama");
  const auto before = traced(engine, "blocks.0.resid_post");
  const size_t d = width_of(before);
  std::vector<float> direction(d);
  for (size_t i = 0; i < d; i++) direction[i] = 0.25f * static_cast<float>(i);
  const std::string path = testing::TempDir() + "liuli_direction.npy";
  write_npy(path, {static_cast<int64_t>(d)}, direction.data());
  const auto steered = traced(engine, "blocks.0.resid_post", {"blocks.0.resid_post[3:] += @" + path}),
             scaled = traced(engine, "blocks.0.resid_post", {"blocks.0.resid_post[:,1] *= -2"});
  for (size_t i = 0; i < before.size(); i++) {
    EXPECT_EQ(steered[i], i / d >= 3 ? before[i] + direction[i % d] : before[i]);
    EXPECT_EQ(scaled[i], i % d == 1 ? before[i] * -2 : before[i]);
  }
}

TEST(Edits, MeanAndResampleComeFromTheReferenceRun) {
  Engine engine = load_tiny("llama");
  const auto other = traced(engine, "blocks.0.attn.z", {}, kOther),
             mean = traced(engine, "blocks.0.attn.z", {"blocks.0.attn.z = mean:" + list(kOther)}),
             drawn = traced(engine, "blocks.0.attn.z", {"blocks.0.attn.z = resample:" + list(kOther)});
  const size_t width = width_of(other), n = kIds.size();
  for (size_t j = 0; j < width; j++) {
    double sum = 0;
    for (size_t t = 0; t < n; t++) sum += static_cast<double>(other[t * width + j]);
    for (size_t t = 0; t < n; t++)
      EXPECT_FLOAT_EQ(mean[t * width + j], static_cast<float>(sum / static_cast<double>(n)));
  }
  std::set<size_t> sources;
  for (size_t t = 0; t < n; t++)
    for (size_t source = 0; source < n; source++)
      if (std::equal(drawn.begin() + static_cast<ptrdiff_t>(t * width),
                     drawn.begin() + static_cast<ptrdiff_t>((t + 1) * width),
                     other.begin() + static_cast<ptrdiff_t>(source * width)))
        sources.insert(source);
  EXPECT_GT(sources.size(), 2u);
}

TEST(Edits, AFrozenSigmaIsTheUneditedRuns) {
  Engine engine = load_tiny("llama");
  const std::string push = "blocks.0.mlp_out += 3", freeze = "blocks.1.ln1.sigma = freeze";
  const auto sigma = traced(engine, "blocks.1.ln1.sigma"),
             moved = traced(engine, "blocks.1.ln1.sigma", {push});
  EXPECT_FALSE(sigma == moved);
  EXPECT_TRUE(traced(engine, "blocks.1.ln1.sigma", {push, freeze}) == sigma);
  const auto x = traced(engine, "blocks.1.resid_pre", {push}),
             normalized = traced(engine, "blocks.1.ln1.normalized", {push, freeze});
  for (size_t i = 0; i < x.size(); i++) EXPECT_FLOAT_EQ(normalized[i], x[i] / sigma[i / width_of(x)]);
}

// The first expert of the last token, and the tokens that go through it.
struct Chosen {
  int expert = 0;
  std::vector<float> ids, weights;
};
Chosen chosen_experts(Engine& engine) {
  Chosen c;
  c.ids = traced(engine, "blocks.0.mlp.expert_ids");
  c.weights = traced(engine, "blocks.0.mlp.expert_weights");
  c.expert = static_cast<int>(c.ids.back());
  return c;
}

TEST(Edits, ADroppedExpertIsMissingFromTheSum) {
  Engine engine = load_tiny("mixtral");
  const Chosen c = chosen_experts(engine);
  const std::string at = "blocks.0.mlp.experts." + std::to_string(c.expert);
  const auto out = traced(engine, at + ".out"), before = traced(engine, "blocks.0.mlp.routed_out"),
             after = traced(engine, "blocks.0.mlp.routed_out", {at + " = drop"}),
             grown = traced(engine, "blocks.0.mlp.expert_weights", {at + " = drop:renormalise"});
  const size_t d = width_of(out), active = width_of(c.ids);
  for (size_t t = 0; t < kIds.size(); t++) {
    float weight = 0, all = 0, left = 0;
    for (size_t k = 0; k < active; k++) {
      all += c.weights[t * active + k];
      if (static_cast<int>(c.ids[t * active + k]) == c.expert) weight = c.weights[t * active + k];
      left += grown[t * active + k];
    }
    EXPECT_FLOAT_EQ(left, all);
    for (size_t j = 0; j < d; j++)
      EXPECT_NEAR(after[t * d + j], before[t * d + j] - weight * out[t * d + j], 2e-5);
  }
}

TEST(Edits, AReroutedTokenGoesToTheOtherExpert) {
  Engine engine = load_tiny("mixtral");
  const Chosen c = chosen_experts(engine);
  int free_expert = 0;
  const size_t active = width_of(c.ids), last = (kIds.size() - 1) * active;
  const auto taken = [&](int e) {
    for (size_t k = 0; k < active; k++)
      if (static_cast<int>(c.ids[last + k]) == e) return true;
    return false;
  };
  while (taken(free_expert)) free_expert++;
  const std::string edit = "blocks.0.mlp.experts." + std::to_string(c.expert) + "[-1] = reroute:";
  const auto ids = traced(engine, "blocks.0.mlp.expert_ids", {edit + std::to_string(free_expert)});
  std::set<int> now;
  for (size_t k = 0; k < active; k++) now.insert(static_cast<int>(ids[last + k]));
  EXPECT_EQ(now.count(free_expert), 1u);
  EXPECT_EQ(now.count(c.expert), 0u);
}

TEST(Edits, ARowOfAWeightGivesItsOwnOutputs) {
  for (const char* model : {"llama", "gpt2", "olmo2"}) {
    Engine engine = load_tiny(model);
    const auto q = engine.weight("blocks.1.attn.q.weight");
    const auto before = traced(engine, "blocks.1.attn.q"),
               doubled = traced(engine, "blocks.1.attn.q", {"blocks.1.attn.q.weight[3] *= 2"}),
               input =
                   traced(engine, std::string(model) == "olmo2" ? "blocks.1.resid_pre" : "blocks.1.ln1.out");
    const size_t width = width_of(before), d = width_of(input);
    for (size_t i = 0; i < before.size(); i++) {
      if (i % width != 3) {
        EXPECT_EQ(doubled[i], before[i]);
        continue;
      }
      double dot = 0;
      for (size_t j = 0; j < d; j++)
        dot += static_cast<double>(q.values[3 * d + j]) * static_cast<double>(input[i / width * d + j]);
      EXPECT_NEAR(doubled[i], static_cast<double>(before[i]) + dot, 1e-4);
    }
    EXPECT_FALSE(traced(engine, "logits", {"embed.weight[17] = 0"}) == traced(engine, "logits"));
    const auto logits = traced(engine, "logits"), cut = traced(engine, "logits", {"unembed.weight[12] = 0"});
    for (size_t t = 0; t < kIds.size(); t++) EXPECT_NEAR(cut[t * width_of(logits) + 12], 0, 1e-4);
  }
}

TEST(Edits, InJsonMeanWhatTheShortFormMeans) {
  Engine engine = load_tiny("llama");
  const auto run = [&](const std::vector<Edit>& edits) {
    const EditHooks hooks(engine, edits, kIds);
    std::vector<float> all;
    engine.logits(
        kIds, [&](int, std::span<const float> row) { all.insert(all.end(), row.begin(), row.end()); }, 512,
        {}, hooks.hooks());
    return all;
  };
  const std::vector<std::pair<std::string, std::string>> same = {
      {R"({"at": "blocks.0.attn.z", "heads": [1], "tokens": "2:4", "do": "zero"})",
       "blocks.0.attn.z[2:4,1] = 0"},
      {R"({"at": "blocks.0.resid_post", "tokens": "last", "coordinates": [5], "do": "scale", "value": 3})",
       "blocks.0.resid_post[-1,5] *= 3"},
      {R"({"at": "blocks.1.attn.pattern", "heads": 0, "tokens": 4, "keys": 2, "do": "knock_out"})",
       "blocks.1.attn.attn_scores[0,4,2] = knock_out"},
      {R"({"at": "blocks.*.mlp_out", "do": "patch", "from": {"ids": [8,17,40,5,11,90,25,3,70]}})",
       "blocks.*.mlp_out = patch:[8,17,40,5,11,90,25,3,70]"},
      {R"({"weight": "blocks.1.mlp.down.weight", "row": 3, "do": "zero"})",
       "blocks.1.mlp.down.weight[3] = 0"}};
  const auto plain = run({});
  for (const auto& [json, text] : same) {
    const auto a = run(parse_edits_json(engine, json, "test")), b = run({parse_edit(engine, text)});
    EXPECT_TRUE(a == b) << text;
    EXPECT_FALSE(a == plain) << text;
  }
}

void expect_error(Engine& engine, const std::string& edit, const std::string& words) {
  try {
    traced(engine, "logits", {edit});
    FAIL() << edit << " was accepted; expected: " << words;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << edit << ": " << e.what();
  }
}

TEST(Edits, ThatCannotBeMeantAreRefusedBeforeTheRun) {
  Engine engine = load_tiny("llama");
  expect_error(engine, "blocks.0.resid_prost = 0", "nearest: blocks.0.resid_post");
  expect_error(engine, "blocks.0.resid_post[9,0] = 0", "token 9 is out of range: there are 9");
  expect_error(engine, "blocks.0.resid_post[0,0,0] = 0", "has 2 indices, the edit names 3");
  expect_error(engine, "blocks.0.attn.attn_scores[0,2,5] = knock_out", "the mask hides key 5 from token 2");
  expect_error(engine, "blocks.0.attn.pattern[0,0,0] = knock_out", "would see no key at all");
  expect_error(engine, "blocks.0.mlp_out = knock_out", "attn.attn_scores");
  expect_error(engine, "blocks.0.mlp_out = patch:[1,2]", "the other prompt has 2 tokens");
  expect_error(engine, "blocks.0.mlp_out = vanish", "no action \"vanish\"");
  expect_error(engine, "blocks.0.mlp_out", "expected POINT[INDEX] = VALUE");
  expect_error(engine, "blocks.0.mlp.down.weight[99999] = 0", "row 99999 is out of range");
  expect_error(engine, "blocks.0.mlp.down.weights[1] = 0", "nearest");
  Edit steer = parse_edit(engine, "blocks.0.mlp_out += 1");
  steer.value = {1, 2, 3};
  EXPECT_THROW(EditHooks(engine, {steer}, kIds), Error);
  Engine latent = load_tiny("deepseek_v3");
  expect_error(latent, "blocks.0.attn.k = 0", "cannot be changed");
}

TEST(Edits, OfRopeAnglesTurnTheirLayerAlone) {
  Engine engine = load_tiny("llama");
  const auto q = traced(engine, "blocks.0.attn.q"), turned = traced(engine, "blocks.0.attn.rot_q"),
             angle = traced(engine, "blocks.0.attn.rope_angle"),
             cos = traced(engine, "blocks.0.attn.rope_cos"), sin = traced(engine, "blocks.0.attn.rope_sin");
  const ModelConfig& c = engine.config();
  const auto half = width_of(angle), head = static_cast<size_t>(c.head_dim), row = width_of(q);
  ASSERT_EQ(half, head / 2);
  for (size_t t = 0; t < kIds.size(); t++)
    for (size_t i = 0; i < half; i++) {
      const double frequency =
          std::pow(c.ropes[0].theta, -2.0 * static_cast<double>(i) / static_cast<double>(head));
      EXPECT_NEAR(angle[t * half + i], static_cast<double>(t) * frequency, 1e-6);
      EXPECT_NEAR(cos[t * half + i], std::cos(static_cast<double>(t) * frequency), 1e-6);
      for (size_t h = 0; h < row / head; h++) {
        const size_t at = t * row + h * head + i;
        EXPECT_NEAR(turned[at], q[at] * cos[t * half + i] - q[at + half] * sin[t * half + i], 1e-5);
      }
    }
  const std::string still = "blocks.0.attn.rope_angle = 0";
  EXPECT_TRUE(traced(engine, "blocks.0.attn.rot_q", {still}) == q);
  EXPECT_FALSE(traced(engine, "blocks.1.attn.rot_q", {still}) == traced(engine, "blocks.1.attn.q", {still}));
  EXPECT_TRUE(traced(engine, "blocks.1.attn.rope_cos", {still}) == traced(engine, "blocks.1.attn.rope_cos"));
}

TEST(Edits, OfOneRunShowInItsDifferenceFromTheOther) {
  Engine engine = load_tiny("llama"), plain = load_tiny("llama");
  const EditHooks edits(engine, {parse_edit(engine, "blocks.1.attn_out[3,:] += 1")}, kIds);
  DiffSettings settings;
  settings.hooks = edits.hooks();
  const DiffReport report = diff(engine, plain, kIds, settings);
  edits.require_all_applied();
  ASSERT_TRUE(report.first_divergence);
  EXPECT_EQ(report.points.at(*report.first_divergence).name, "blocks.1.attn_out");
  EXPECT_EQ(report.points.at(*report.first_divergence).coordinate.at(0), 3);
  for (int i = 0; i < 3; i++) EXPECT_EQ(report.kl.at(static_cast<size_t>(i)), 0) << "before the edited token";
  EXPECT_GT(report.max_kl, 1e-6);
  const EditHooks late(engine, {parse_edit(engine, "blocks.1.attn_out[300,:] += 1")},
                       std::vector<int>(400, 3));
  settings.hooks = late.hooks();
  diff(engine, plain, kIds, settings);
  EXPECT_THROW(late.require_all_applied(), Error);
}

TEST(Edits, ShowInTheNumbersThatAreExplained) {
  Engine engine = load_tiny("llama");
  const EditHooks edits(engine, {parse_edit(engine, "blocks.0.mlp_out[4,2] = 7")}, kIds);
  ExplainNumberSettings settings;
  settings.hooks = edits.hooks();
  const auto numbers = engine.explain(kIds, {"blocks.0.resid_post[4,2]", "blocks.0.mlp_out[4,2]"}, settings);
  edits.require_all_applied();
  const float expected = traced(engine, "blocks.0.resid_post", {"blocks.0.mlp_out[4,2] = 7"})[4 * 96 + 2];
  EXPECT_EQ(static_cast<float>(numbers.at(0).value), expected);
  EXPECT_TRUE(numbers[0].agrees) << "made of the edited number";
  EXPECT_FALSE(numbers[0].edited);
  EXPECT_EQ(numbers.at(1).value, 7);
  EXPECT_TRUE(numbers[1].edited);
  EXPECT_FALSE(numbers[1].agrees) << "an edited number is not what its formula gives";
  EXPECT_THROW(engine.explain(kIds, {"blocks.0.attn_out[4,2]"}, settings), Error) << "the edit comes later";
}

TEST(Edits, ThatTouchNothingAreAnError) {
  Engine engine = load_tiny("mixtral");
  const Chosen c = chosen_experts(engine);
  std::set<int> used;
  for (const float id : c.ids) used.insert(static_cast<int>(id));
  Engine llama = load_tiny("llama");
  const EditHooks hooks(llama, {parse_edit(llama, "blocks.0.mlp_out[20] = 0")}, kIds, 30);
  Session session(llama);
  GenerateSettings settings;
  settings.hooks = hooks.hooks();
  settings.ignore_eos = true;
  settings.max_tokens = 3;
  session.generate(kIds, settings);
  EXPECT_THROW(hooks.require_all_applied(), Error);
  settings.max_tokens = 14;
  session.generate(kIds, settings);
  hooks.require_all_applied();
}

// Every value of every family: one number is changed; then another value changes too, or the change is refused.
class EveryPoint : public testing::TestWithParam<const char*> {};

using Values = std::vector<TracedTensor>;

TraceSettings settings_for(const ModelConfig& config, const std::vector<Hook>& hooks) {
  TraceSettings settings;
  settings.hooks = hooks;
  if (config.is_encoder_decoder()) settings.beside.source = kOther;
  return settings;
}

// The last token's own score, where there are scores; of a choice another choice.
Hook change_one(const ModelConfig& config, const std::string& point, float by) {
  return {{point}, [&config, point, by](const HookValue& v) {
            std::vector<int64_t> at(v.shape.size());
            const bool score_like =
                point.ends_with("pattern") || point.ends_with("scores") || point.ends_with("scores_raw");
            if (score_like && v.shape.size() == 3)
              at = {0, v.shape[1] - 1, v.shape[2] - 1};
            else
              at[0] = v.shape[0] - 1;
            float& x = v.at(at);
            if (point.ends_with("expert_ids"))
              x = std::fmod(x + 1, static_cast<float>(config.experts.n_experts));
            else if (point.ends_with("groups_kept"))
              x = 1 - x;
            else
              x += by;
          }};
}

bool takes_effect(Engine& engine, const Values& before, const std::string& point, float by) {
  try {
    const Values after =
        engine.trace(kIds, {"*"}, settings_for(engine.config(), {change_one(engine.config(), point, by)}));
    for (size_t i = 0; i < before.size(); i++)
      if (before[i].name != point && before[i].values != after[i].values) return true;
    return false;
  } catch (const Error& e) {
    return std::string(e.what()).find(point) != std::string::npos;  // refused by name
  }
}

TEST_P(EveryPoint, TakesAChangeOrRefusesIt) {
  for (const auto product_class : {ProductClassChoice::prompt, ProductClassChoice::decode}) {
    Engine engine = load_tiny(GetParam(), product_class);
    const Values before = engine.trace(kIds, {"*"}, settings_for(engine.config(), {}));
    // Of a model without logits nothing but the first row goes on from here, into what is shown only.
    const std::string before_pooler =
        "blocks." + std::to_string(engine.config().n_layers - 1) + ".normalized_resid_post";
    for (const TracedTensor& tensor : before) {
      const std::string& name = tensor.name;
      if (name == "logits" || (name == before_pooler && !engine.config().has_output)) continue;  // the end
      const bool exists =
          std::any_of(tensor.values.begin(), tensor.values.end(), [](float v) { return v != 0; });
      if (name.find(".experts.") != std::string::npos && !exists) continue;  // not chosen
      EXPECT_TRUE(takes_effect(engine, before, name, 1000) || takes_effect(engine, before, name, -2000))
          << name;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Families, EveryPoint,
                         testing::Values("llama", "qwen2", "qwen3", "gemma3", "olmo2", "gpt2", "bert", "phi3",
                                         "smollm3", "qwen2moe", "qwen3moe", "mixtral", "deepseek_v3",
                                         "deepseek_v3_noq", "transformer2017"),
                         [](const auto& family) { return std::string(family.param); });

}  // namespace
}  // namespace liuli::golden
