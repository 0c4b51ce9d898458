// Changing values while a model runs: what hooks write takes effect, what they leave alone changes no bit.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/arena.h"
#include "golden_support.h"

namespace liuli::golden {
namespace {

const std::vector<int> kIds = {3, 17, 44, 5, 101, 9, 250, 33, 7};

std::string tiny(const std::string& name) { return golden_path("tiny/" + name); }

std::vector<float> flat_logits(Engine& engine, const std::vector<Hook>& hooks = {}, int chunk = 512) {
  std::vector<float> all;
  engine.logits(
      kIds, [&](int, std::span<const float> row) { all.insert(all.end(), row.begin(), row.end()); }, chunk,
      {}, hooks);
  return all;
}

std::vector<float> traced(Engine& engine, const std::string& point, const std::vector<Hook>& hooks) {
  TraceSettings settings;
  settings.hooks = hooks;
  return engine.trace(kIds, {point}, settings).at(0).values;
}

template <class F>
void for_each_index(const std::vector<int64_t>& shape, F&& f) {
  std::vector<int64_t> index(shape.size());
  for (;;) {
    f(index);
    size_t axis = shape.size();
    while (axis > 0 && ++index[axis - 1] == shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

Hook fill(const std::string& point, float value) {
  return {{point}, [value](const HookValue& v) {
            for_each_index(v.shape, [&](const auto& index) { v.at(index) = value; });
          }};
}

class NoOpHooks : public testing::TestWithParam<const char*> {};

TEST_P(NoOpHooks, ChangeNoBitAtAnyPoint) {
  for (const auto product_class :
       {ProductClassChoice::prompt, ProductClassChoice::decode, ProductClassChoice::f32}) {
    Engine engine = load(tiny(GetParam()), product_class);
    const std::vector<float> expected = flat_logits(engine);
    int calls = 0;
    const Hook touch{{"*"}, [&](const HookValue& v) {
                       calls++;
                       v.at(std::vector<int64_t>(v.shape.size())) += 0.0f;
                     }};
    EXPECT_TRUE(flat_logits(engine, {touch}) == expected);
    EXPECT_GT(calls, 40);
  }
}
// Memory that values may be formed in, as the Python package gives.
class AlignedMemory final : public TraceSink {
 public:
  void begin(const std::vector<TracedTensor>& tensors) override {
    for (const TracedTensor& tensor : tensors) {
      size_t n = 1;
      for (const int64_t size : tensor.shape) n *= static_cast<size_t>(size);
      buffers_.emplace_back(n * sizeof(float));
    }
  }
  void write(size_t, int64_t, const float*, int64_t) override { FAIL(); }
  float* memory(size_t tensor) override { return buffers_[tensor].as<float>(); }
  const AlignedBuffer& buffer(size_t tensor) const { return buffers_[tensor]; }

 private:
  std::vector<AlignedBuffer> buffers_;
};

// Who only reads gets stages formed together, in its own memory; who may change them gets them one after another.
TEST_P(NoOpHooks, SeeTheBitsThatACaptureAloneSees) {
  for (const auto product_class :
       {ProductClassChoice::prompt, ProductClassChoice::decode, ProductClassChoice::f32}) {
    Engine engine = load(tiny(GetParam()), product_class);
    std::vector<int> ids;  // more than attention takes at once, where the context allows
    while (ids.size() < 80) ids.insert(ids.end(), kIds.begin(), kIds.end());
    ids.resize(std::min<size_t>(ids.size(), static_cast<size_t>(engine.config().max_seq_len)));
    AlignedMemory memory;
    TraceSettings alone, hooked;
    alone.sink = &memory;
    hooked.hooks = {{{"*"}, [](const HookValue&) {}}};
    engine.trace(ids, {"*"}, alone);
    const std::vector<TracedTensor> seen = engine.trace(ids, {"*"}, hooked);
    ASSERT_GT(seen.size(), 40u);
    for (size_t i = 0; i < seen.size(); i++) {
      const AlignedBuffer& direct = memory.buffer(i);
      ASSERT_EQ(direct.size(), seen[i].values.size() * sizeof(float));
      EXPECT_EQ(std::memcmp(direct.data(), seen[i].values.data(), direct.size()), 0) << seen[i].name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, NoOpHooks,
                         testing::Values("llama", "qwen3", "gemma3", "olmo2", "gpt2", "qwen2moe", "mixtral",
                                         "deepseek_v3"),
                         [](const auto& family) { return std::string(family.param); });

TEST(Hooks, ZeroingABranchLeavesTheStreamAsItWas) {
  Engine engine = load(tiny("llama"), ProductClassChoice::prompt);
  const std::vector<Hook> hooks = {fill("blocks.0.attn_out", 0)};
  EXPECT_TRUE(traced(engine, "blocks.0.resid_mid", hooks) == traced(engine, "blocks.0.resid_pre", {}));
  EXPECT_FALSE(flat_logits(engine, hooks) == flat_logits(engine));
}

TEST(Hooks, AFrozenSigmaDividesTheRow) {
  for (const char* model : {"llama", "gpt2"}) {
    Engine engine = load(tiny(model), ProductClassChoice::f32);
    const std::vector<Hook> hooks = {fill("blocks.1.ln1.sigma", 2)};
    const auto centered = traced(engine, "blocks.1.ln1.centered", hooks);
    const auto normal = traced(engine, "blocks.1.ln1.normalized", hooks);
    for (size_t i = 0; i < normal.size(); i++) EXPECT_EQ(normal[i], centered[i] / 2);
    EXPECT_FALSE(traced(engine, "blocks.1.ln1.out", hooks) == traced(engine, "blocks.1.ln1.out", {}));
  }
}

// A pattern set by hand: head 1 of token 5 looks at token 2 only.
Hook look_at(const std::string& point, int64_t head, int64_t token, int64_t key, float elsewhere,
             float there) {
  return {{point}, [=](const HookValue& v) {
            for (int64_t k = 0; k < v.shape[2]; k++)
              v.at({head, token - v.first_position, k}) = k == key ? there : elsewhere;
          }};
}

TEST(Hooks, APatternSetByHandMixesTheValuesByHand) {
  for (const auto product_class : {ProductClassChoice::f32, ProductClassChoice::prompt}) {
    Engine engine = load(tiny("llama"), product_class);
    const ModelConfig& c = engine.config();
    const std::vector<Hook> hooks = {look_at("blocks.1.attn.pattern", 1, 5, 2, 0, 1)};
    const auto z = traced(engine, "blocks.1.attn.z", hooks), z_before = traced(engine, "blocks.1.attn.z", {});
    const auto v = traced(engine, "blocks.1.attn.v", hooks);
    const auto width = static_cast<size_t>(c.head_dim), heads = static_cast<size_t>(c.n_heads);
    const size_t kv_head = 1 / static_cast<size_t>(c.n_heads / c.n_kv_heads);
    for (size_t token = 0; token < kIds.size(); token++)
      for (size_t head = 0; head < heads; head++)
        for (size_t d = 0; d < width; d++) {
          const size_t at = (token * heads + head) * width + d;
          if (token == 5 && head == 1)
            EXPECT_NEAR(z[at], v[(2 * static_cast<size_t>(c.n_kv_heads) + kv_head) * width + d],
                        4e-3f * std::fabs(z[at]));
          else
            EXPECT_EQ(z[at], z_before[at]);
        }
  }
}

TEST(Hooks, AKnockedOutEdgeHasNoWeightAndTheOthersShareIt) {
  for (const char* point :
       {"blocks.0.attn.scores_raw", "blocks.0.attn.scores", "blocks.0.attn.attn_scores"}) {
    Engine engine = load(tiny("gemma3"), ProductClassChoice::f32);
    const Hook cut{{point}, [](const HookValue& v) {
                     v.at({2, 6, 3}) = -std::numeric_limits<float>::infinity();
                   }};
    const auto before = traced(engine, "blocks.0.attn.pattern", {}),
               after = traced(engine, "blocks.0.attn.pattern", {cut});
    const size_t n = kIds.size(), row = (2 * n + 6) * n;
    const float left = 1 - before[row + 3];
    for (size_t key = 0; key < n; key++)
      EXPECT_NEAR(after[row + key], key == 3 ? 0 : before[row + key] / left, 1e-5f)
          << point << " key " << key;
    EXPECT_FALSE(traced(engine, "blocks.0.attn.z", {cut}) == traced(engine, "blocks.0.attn.z", {}));
  }
}

TEST(Hooks, OfOneTokenChangeNoOtherTokensBits) {
  Engine engine = load(tiny("llama"), ProductClassChoice::prompt);
  const Hook last{{"blocks.0.ln2.normalized"}, [](const HookValue& v) {
                    if (v.first_position + v.shape[0] == static_cast<int64_t>(kIds.size()))
                      v.at({v.shape[0] - 1, 3}) = 9;
                  }};
  const auto before = flat_logits(engine), after = flat_logits(engine, {last});
  const size_t row = before.size() / kIds.size();
  EXPECT_TRUE(std::equal(before.begin(), before.end() - static_cast<ptrdiff_t>(row), after.begin()));
  EXPECT_FALSE(std::equal(before.end() - static_cast<ptrdiff_t>(row), before.end(),
                          after.end() - static_cast<ptrdiff_t>(row)));
}

TEST(Hooks, GiveTheSameBitsWhateverTheChunks) {
  Engine engine = load(tiny("gemma3"), ProductClassChoice::prompt);
  const Hook steer{{"blocks.*.resid_mid"}, [](const HookValue& v) {
                     for (int64_t i = 0; i < v.shape[0]; i++)
                       if ((v.first_position + i) % 2 == 0) v.at({i, 5}) += 1.5f;
                   }};
  const auto whole = flat_logits(engine, {steer});
  for (const int chunk : {1, 4}) EXPECT_TRUE(flat_logits(engine, {steer}, chunk) == whole) << chunk;
}

TEST(Hooks, RunInOrderAndTheCaptureSeesWhatTheyLeft) {
  Engine engine = load(tiny("llama"), ProductClassChoice::f32);
  const auto values =
      traced(engine, "blocks.0.mlp_out", {fill("blocks.0.mlp_out", 3), fill("blocks.0.hook_mlp_out", 4)});
  for (const float v : values) EXPECT_EQ(v, 4);
}

TEST(Hooks, ThatNeverFireAreAnError) {
  Engine engine = load(tiny("llama"), ProductClassChoice::f32);
  TraceSettings settings;
  settings.stop_at_layer = 1;
  settings.hooks = {fill("blocks.1.resid_pre", 0)};
  try {
    engine.trace(kIds, {"blocks.0.resid_post"}, settings);
    FAIL() << "an edit behind the end of the run was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::not_found);
    EXPECT_NE(std::string(e.what()).find("blocks.1.resid_pre"), std::string::npos);
  }
  EXPECT_THROW(flat_logits(engine, {fill("blocks.9.resid_pre", 0)}), Error);
}

TEST(Hooks, DuringGenerationLeaveNoCacheBehind) {
  Engine engine = load(tiny("llama"), ProductClassChoice::automatic);
  GenerateSettings plain, changed;
  plain.max_tokens = changed.max_tokens = 12;
  plain.ignore_eos = changed.ignore_eos = true;
  int passes = 0;
  changed.hooks = {{{"blocks.0.attn_out"}, [&](const HookValue& v) {
                      passes++;
                      for_each_index(v.shape, [&](const auto& index) { v.at(index) += 2; });
                    }}};
  auto ids = [](const GenerateResult& r) {
    std::vector<int> found;
    for (const auto& t : r.tokens) found.push_back(t.id);
    return found;
  };
  Session session(engine);
  const auto first = ids(session.generate(kIds, plain));
  EXPECT_NE(ids(session.generate(kIds, changed)), first);
  EXPECT_EQ(passes, 12);  // the prompt and eleven generated tokens
  EXPECT_EQ(ids(session.generate(kIds, plain)), first);
}

}  // namespace
}  // namespace liuli::golden
