// The 2017 encoder-decoder against a float64 run of the reference: every stored number of both towers, greedy text, and
// what stays true bit for bit.
#include <cstring>

#include "golden_support.h"

namespace liuli::golden {
namespace {

constexpr double kLogits = 2e-4, kActivations = 1e-4, kPatterns = 1e-5;
constexpr ProductClassChoice kClasses[] = {ProductClassChoice::automatic, ProductClassChoice::prompt,
                                           ProductClassChoice::decode, ProductClassChoice::f32};
const std::string kFolder = "tiny/transformer2017";

// The reference's name of a value → ours; "" for what is not a point.
std::string our_name(const std::string& name) {
  const bool in_a_tower = name.starts_with("enc") || name.starts_with("dec");
  if (!in_a_tower) return "";
  if (name.ends_with(".attn.q") || name.ends_with(".attn.k"))
    return name.substr(0, name.size() - 1) + "rot_" + name.back();
  return name;
}

std::vector<float> flat_logits(Engine& engine, const std::vector<int>& ids, const std::vector<int>& source,
                               int chunk = 512) {
  std::vector<float> flat;
  const auto keep = [&](int, std::span<const float> row) { flat.insert(flat.end(), row.begin(), row.end()); };
  engine.logits(ids, keep, chunk, {source, {}});
  return flat;
}

std::vector<int> some_tokens(int n, unsigned seed) {
  std::vector<int> ids;
  for (int i = 0; i < n; i++) {
    seed = seed * 1664525u + 1013904223u;
    ids.push_back(static_cast<int>((seed >> 8) % 347u));
  }
  return ids;
}

int expect_intermediates(Engine& engine, const SafetensorsFile& golden) {
  std::vector<std::string> points;
  for (const auto& tensor : golden.tensors())
    if (const std::string point = our_name(tensor.name); !point.empty()) points.push_back(point);
  TraceSettings settings;
  settings.beside.source = token_ids(golden, "src_ids");
  const auto traced = engine.trace(token_ids(golden, "tgt_ids"), points, settings);
  EXPECT_EQ(traced.size(), points.size());
  for (const auto& tensor : golden.tensors()) {
    const std::string point = our_name(tensor.name);
    for (const TracedTensor& t : traced) {
      if (t.name != point) continue;
      EXPECT_EQ(t.shape, tensor.shape) << point;
      EXPECT_LE(largest_difference(t.values, golden.doubles(tensor.name)),
                point.ends_with("pattern") ? kPatterns : kActivations)
          << point;
    }
  }
  return static_cast<int>(traced.size());
}

void expect_greedy(Engine& engine, const SafetensorsFile& golden) {
  const auto expected = token_ids(golden, "greedy");
  const auto gaps = golden.doubles("greedy_gap");
  Session session(engine);
  session.read_source(token_ids(golden, "src_ids"));
  GenerateSettings settings;
  settings.max_tokens = static_cast<int>(expected.size());
  settings.ignore_eos = true;
  const GenerateResult result = session.generate({token_ids(golden, "tgt_ids").front()}, settings);
  for (size_t i = 0; i < expected.size() && gaps[i] >= 2 * kLogits; i++) {
    ASSERT_LT(i, result.tokens.size());
    ASSERT_EQ(result.tokens[i].id, expected[i]) << "step " << i;
  }
}

TEST(TinyTransformer2017, MatchesTheReferenceInEveryStoredNumber) {
  const SafetensorsFile golden(golden_path(kFolder + "/golden.safetensors"));
  for (const bool exact : {false, true}) {
    SCOPED_TRACE(exact ? "exact" : "f32");
    Engine engine = load(golden_path(kFolder), ProductClassChoice::automatic, exact);
    const auto logits = flat_logits(engine, token_ids(golden, "tgt_ids"), token_ids(golden, "src_ids"));
    EXPECT_LE(largest_difference(logits, golden.doubles("logits")), kLogits);
    EXPECT_GE(expect_intermediates(engine, golden), 60);
    expect_greedy(engine, golden);
  }
}

TEST(TinyTransformer2017, ChunksThreadsAndListenersChangeNoBit) {
  const auto source = some_tokens(70, 1), target = some_tokens(90, 2);
  for (const auto product_class : kClasses) {
    SCOPED_TRACE(static_cast<int>(product_class));
    Engine two = load(golden_path(kFolder), product_class),
           one = load(golden_path(kFolder), product_class, false, 1);
    const auto whole = flat_logits(two, target, source);
    for (const int chunk : {1, 7, 64}) EXPECT_EQ(whole, flat_logits(two, target, source, chunk));
    EXPECT_EQ(whole, flat_logits(one, target, source));
    TraceSettings settings;
    settings.beside.source = source;
    settings.chunk = 40;
    for (const char* points : {"*", "logits"}) {
      const auto traced = two.trace(target, {points}, settings);
      ASSERT_EQ(traced.back().name, "logits");
      EXPECT_EQ(traced.back().values, whole);
    }
  }
}

TEST(TinyTransformer2017, ARowInABatchIsTheRowAloneEachWithItsSource) {
  for (const auto product_class : kClasses) {
    Engine engine = load(golden_path(kFolder), product_class);
    std::vector<Session> alone, together;
    std::vector<Session*> pointers;
    for (int b = 0; b < 5; b++) {
      for (auto* sessions : {&alone, &together}) {
        Session& session = sessions->emplace_back(engine);
        session.read_source(some_tokens(5 + 20 * b, static_cast<unsigned>(b)));
        session.feed(some_tokens(2 + 3 * b, static_cast<unsigned>(50 + b)));
      }
    }
    for (Session& session : together) pointers.push_back(&session);
    const auto next = some_tokens(5, 7);
    std::vector<std::vector<float>> batch;
    for (const auto row : Session::feed_together(pointers, next)) batch.emplace_back(row.begin(), row.end());
    for (size_t b = 0; b < 5; b++) {
      const auto row = alone[b].feed(std::span(next).subspan(b, 1), true);
      EXPECT_TRUE(std::equal(row.begin(), row.end(), batch[b].begin(), batch[b].end())) << "sequence " << b;
    }
  }
}

TEST(TinyTransformer2017, RollingBackKeepsTheSourceAndANewSourceForgetsTheTokens) {
  Engine engine = load(golden_path(kFolder), ProductClassChoice::automatic);
  const auto source = some_tokens(20, 1), target = some_tokens(12, 2);
  Session session(engine);
  session.read_source(source);
  session.feed(std::span(target).subspan(0, 8));
  const auto first = session.feed(std::span(target).subspan(8));
  const std::vector<float> before(first.begin(), first.end());
  session.truncate(8);
  const auto again = session.feed(std::span(target).subspan(8));
  EXPECT_TRUE(std::equal(before.begin(), before.end(), again.begin(), again.end()));

  session.read_source(source);  // the same: nothing to do
  EXPECT_EQ(session.tokens().size(), 12u);
  session.read_source(some_tokens(21, 3));
  EXPECT_TRUE(session.tokens().empty());
  const auto other = session.feed(target);
  EXPECT_FALSE(std::equal(before.begin(), before.end(), other.begin(), other.end()));
  session.read_source(source);
  const auto back = session.feed(target);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), back.begin(), back.end()));
}

TEST(TinyTransformer2017, EveryTargetTokenSeesTheWholeSource) {
  Engine engine = load(golden_path(kFolder), ProductClassChoice::automatic);
  TraceSettings settings;
  settings.beside.source = some_tokens(6, 1);
  const auto traced = engine.trace(
      some_tokens(4, 2), {"decoder.blocks.*.attn.pattern", "decoder.blocks.1.cross_attn.pattern"}, settings);
  const auto& cross = traced.back();
  ASSERT_EQ(cross.name, "decoder.blocks.1.cross_attn.pattern");
  ASSERT_EQ(cross.shape, (std::vector<int64_t>{3, 4, 6}));
  for (const float p : cross.values) EXPECT_GT(p, 0.0f);
  const auto& own = traced.front();
  ASSERT_EQ(own.shape, (std::vector<int64_t>{3, 4, 4}));
  for (size_t i = 0; i < 4; i++)
    for (size_t key = i + 1; key < 4; key++) EXPECT_EQ(own.values[i * 4 + key], 0.0f);
}

TEST(TinyTransformer2017, NeedsASource) {
  Engine engine = load(golden_path(kFolder), ProductClassChoice::automatic);
  Session session(engine);
  EXPECT_THROW(session.feed(some_tokens(3, 1)), Error);
  EXPECT_THROW(session.generate({1}, {}), Error);
  EXPECT_THROW(session.read_source({}), Error);
  EXPECT_THROW(session.read_source({347}), Error);
  EXPECT_THROW(flat_logits(engine, {1, 2}, {}), Error);
  EXPECT_THROW(engine.trace({1, 2}, {"logits"}), Error);
  EXPECT_THROW(engine.embed_plan(), Error);
}

}  // namespace
}  // namespace liuli::golden
