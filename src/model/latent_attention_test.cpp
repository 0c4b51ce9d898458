#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "formats/weight_source.h"
#include "model/block.h"
#include "model/load.h"
#include "model/transformer.h"
#include "ops/embedding.h"

namespace liuli {
namespace {

constexpr int64_t kModelWidth = 96;

// A layer of random weights with DeepSeek-V3's widths per head; 66 heads are more than the kernels take at once.
struct Layer {
  LatentAttention a;
  RopeConfig rope;
  std::vector<std::vector<float>> storage;
  std::mt19937 random{7};

  Layer(int64_t heads, LatentConfig shape, ThreadPool& pool) {
    a.shape = shape;
    a.n_heads = heads;
    const int64_t key = shape.qk_nope_head_dim + shape.qk_rope_head_dim, rank = shape.kv_lora_rank;
    a.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(key)));
    rope.dim = static_cast<int>(shape.qk_rope_head_dim);
    a.q_a.weight = matrix(shape.q_lora_rank, kModelWidth, pool);
    a.q_b.weight = matrix(heads * key, shape.q_lora_rank, pool);
    a.kv_a.weight = matrix(rank + shape.qk_rope_head_dim, kModelWidth, pool);
    a.o.weight = matrix(kModelWidth, heads * shape.v_head_dim, pool);
    a.q_norm = a.kv_norm = {NormKind::rms, nullptr, nullptr, 1e-6f};
    for (int64_t h = 0; h < heads; h++) {
      a.k_up.push_back(matrix(shape.qk_nope_head_dim, rank, pool));
      const std::vector<float>& up = storage.back();
      std::vector<float> turned(up.size());
      for (int64_t i = 0; i < shape.qk_nope_head_dim; i++)
        for (int64_t j = 0; j < rank; j++)
          turned[static_cast<size_t>(j * shape.qk_nope_head_dim + i)] = up[static_cast<size_t>(i * rank + j)];
      a.k_up_t.push_back(stored(rank, shape.qk_nope_head_dim, std::move(turned), pool));
      a.v_up.push_back(matrix(shape.v_head_dim, rank, pool));
    }
  }

  Matrix matrix(int64_t d_out, int64_t d_in, ThreadPool& pool) {
    std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(d_in)));
    std::vector<float> values(static_cast<size_t>(d_out * d_in));
    for (float& v : values) v = normal(random);
    return stored(d_out, d_in, std::move(values), pool);
  }
  Matrix stored(int64_t d_out, int64_t d_in, std::vector<float> values, ThreadPool& pool) {
    storage.push_back(std::move(values));
    Matrix m("w", DType::f32, d_out, d_in, reinterpret_cast<const uint8_t*>(storage.back().data()));
    m.build_panels(pool);
    return m;
  }
  CacheShape cache_shape() const {
    const auto rank = static_cast<int>(a.shape.kv_lora_rank);
    return {1, 1, rank + rope.dim, rank, true};
  }
};

// Rows [begin, end) of x through the layer, behind what the cache holds.
std::vector<float> run(const Layer& layer, Runner& runner, KvCache& cache, const std::vector<float>& x,
                       std::pair<int, int> range, ProductClass product_class,
                       std::optional<LatentForm> form = std::nullopt) {
  runner.scratch.release({});
  const OpContext usual = make_context(runner, product_class);
  OpContext ops{usual.kernels, usual.rows, cache.kernels(), usual.pool, usual.scratch, product_class};
  Step s(ops);
  if (form) s.latent_form = *form;
  const auto [begin, end] = range;
  cache.extend(end - begin, product_class);
  s.sequences = {{&cache, 0, end - begin, begin, end}};
  for (int i = begin; i < end; i++) s.positions.push_back(i);
  s.angles = {rope_angles(ops, layer.rope, rope_frequencies(layer.rope), s.positions.data(), end - begin)};
  Rows h = make_rows(ops.scratch, end - begin, kModelWidth);
  for (int i = begin; i < end; i++)
    std::memcpy(h.row(i - begin), x.data() + i * kModelWidth, kModelWidth * sizeof(float));
  const Rows out = attention_forward(layer.a, 0, h, s);
  std::vector<float> values;
  for (int64_t i = 0; i < out.n; i++) values.insert(values.end(), out.row(i), out.row(i) + out.width);
  return values;
}

std::vector<float> run_whole(const Layer& layer, Runner& runner, const std::vector<float>& x,
                             ProductClass product_class, std::optional<LatentForm> form = std::nullopt) {
  KvCache cache(layer.cache_shape(), attention_kernels(product_class));
  return run(layer, runner, cache, x, {0, static_cast<int>(x.size() / kModelWidth)}, product_class, form);
}

std::vector<float> random_rows(int n) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(n * kModelWidth));
  for (float& v : x) v = normal(random);
  return x;
}

double nmse(const std::vector<float>& a, const std::vector<float>& reference) {
  double error = 0, power = 0;
  for (size_t i = 0; i < reference.size(); i++) {
    error += std::pow(static_cast<double>(a[i]) - static_cast<double>(reference[i]), 2);
    power += std::pow(static_cast<double>(reference[i]), 2);
  }
  return error / power;
}

constexpr LatentConfig kV3 = {48, 512, 128, 64, 128}, kOdd = {20, 45, 13, 6, 21};

TEST(LatentAttention, BothFormsGiveTheSameNumbers) {
  Runner runner(2);
  for (const auto& [heads, shape] : {std::pair{66, kV3}, {3, kOdd}}) {
    const Layer layer(heads, shape, runner.pool);
    const auto x = random_rows(70);
    const auto expanded = run_whole(layer, runner, x, ProductClass::f32, LatentForm::expanded),
               absorbed = run_whole(layer, runner, x, ProductClass::f32, LatentForm::absorbed);
    EXPECT_LT(nmse(absorbed, expanded), 1e-11) << heads << " heads";
  }
}

TEST(LatentAttention, EveryClassStaysNearTheExactOne) {
  Runner runner(2);
  for (const auto& [heads, shape] : {std::pair{66, kV3}, {3, kOdd}}) {
    const Layer layer(heads, shape, runner.pool);
    const auto x = random_rows(70);
    const auto exact = run_whole(layer, runner, x, ProductClass::exact);
    EXPECT_LT(nmse(run_whole(layer, runner, x, ProductClass::f32), exact), 1e-11) << heads << " heads";
    EXPECT_LT(nmse(run_whole(layer, runner, x, ProductClass::decode), exact), 2e-5) << heads << " heads";
    EXPECT_LT(nmse(run_whole(layer, runner, x, ProductClass::prompt), exact), 4e-5) << heads << " heads";
  }
}

TEST(LatentAttention, BothFormsWorkOverEveryCacheType) {
  Runner runner(2);
  for (const auto& [heads, shape] : {std::pair{5, kV3}, {3, kOdd}}) {
    const Layer layer(heads, shape, runner.pool);
    const auto x = random_rows(150);
    const auto exact = run_whole(layer, runner, x, ProductClass::exact);
    for (const auto& [type, bound] : {std::pair{CacheType::bf16, 4e-5},
                                      {CacheType::f16, 4e-5},
                                      {CacheType::q8_0, 3e-4},
                                      {CacheType::q4_0, 6e-2}})
      for (const auto product_class : {ProductClass::prompt, ProductClass::decode})
        for (const auto form : {LatentForm::expanded, LatentForm::absorbed}) {
          KvCache cache(layer.cache_shape(), attention_kernels(product_class, type));
          EXPECT_LT(nmse(run(layer, runner, cache, x, {0, 150}, product_class, form), exact), bound)
              << to_string(type) << ' ' << to_string(product_class) << ' ' << heads << " heads";
        }
  }
}

// 1,100 positions do not fit the memory that expanded keys and values may take: their heads come in two groups, those of
// 600 in one.
TEST(LatentAttention, HowAPromptIsCutAndHeadsAreGroupedChangesNoBit) {
  Runner runner(2);
  const Layer layer(66, kV3, runner.pool);
  const auto x = random_rows(1100);
  for (const ProductClass product_class : {ProductClass::prompt, ProductClass::decode}) {
    const auto whole = run_whole(layer, runner, x, product_class);
    KvCache cache(layer.cache_shape(), attention_kernels(product_class));
    std::vector<float> parts;
    for (const auto& range : {std::pair{0, 600}, {600, 601}, {601, 1100}}) {
      const auto part = run(layer, runner, cache, x, range, product_class);
      parts.insert(parts.end(), part.begin(), part.end());
    }
    ASSERT_EQ(parts.size(), whole.size());
    EXPECT_EQ(std::memcmp(parts.data(), whole.data(), whole.size() * sizeof(float)), 0)
        << to_string(product_class);
  }
}

// The whole tower with one form of attention: logits of every row.
std::vector<float> logits(const Model& model, Runner& runner, const std::vector<int>& ids, LatentForm form) {
  runner.scratch.release({});
  OpContext ops = make_context(runner, ProductClass::f32);
  Step s(ops);
  s.latent_form = form;
  const int n = static_cast<int>(ids.size());
  KvCache cache(cache_shape(model.config), ops.attention);
  cache.extend(n, ProductClass::f32);
  s.sequences = {{&cache, 0, n, 0, n}};
  for (int i = 0; i < n; i++) s.positions.push_back(i);
  s.angles = {rope_angles(ops, model.config.ropes[0], model.rope_frequencies[0], s.positions.data(), n)};
  Rows x = make_rows(ops.scratch, n, model.config.d_model);
  embedding_forward(ops, model.token_embedding, ids, 1.0f, x);
  for (size_t layer = 0; layer < model.blocks.size(); layer++)
    block_forward(model.blocks[layer], static_cast<int>(layer), x, s);
  const Rows out = unembed(model, s, x);
  std::vector<float> values;
  for (int64_t i = 0; i < out.n; i++) values.insert(values.end(), out.row(i), out.row(i) + out.width);
  return values;
}

TEST(LatentAttention, TinyModelsPredictTheSameInBothForms) {
  Runner runner(2);
  std::vector<int> ids;
  for (int i = 0; i < 40; i++) ids.push_back((i * 37 + 11) % 347);
  for (const std::string name : {"deepseek_v3", "deepseek_v3_noq", "deepseek_v3_mscale"}) {
    const Model model = load_model(open_weights(std::string(LIULI_SOURCE_DIR) + "/tests/golden/tiny/" + name),
                                   runner.pool, {});
    const auto expanded = logits(model, runner, ids, LatentForm::expanded),
               absorbed = logits(model, runner, ids, LatentForm::absorbed);
    double worst = 0;
    for (size_t i = 0; i < expanded.size(); i++)
      worst = std::max(worst, std::fabs(static_cast<double>(expanded[i]) - static_cast<double>(absorbed[i])));
    EXPECT_LT(worst, 1e-4) << name;
    EXPECT_GT(worst, 0) << name << ": the forms were not two";
  }
}

TEST(LatentAttention, TheCacheHoldsOneVectorPerToken) {
  ModelConfig config;
  config.n_layers = 61;
  config.n_heads = config.n_kv_heads = 128;
  config.head_dim = 192;
  config.latent = kV3;
  const CacheShape shape = cache_shape(config);
  EXPECT_EQ(shape.n_kv_heads, 1);
  EXPECT_EQ(shape.head_dim, 576);
  EXPECT_EQ(shape.value_dim, 512);
  EXPECT_TRUE(shape.shared_values);
  // bf16: 1,152 bytes per layer and token; 128 heads of 192 and 128 would take 81,920.
  EXPECT_EQ(KvCache::bytes_per_page(shape, kernels::best_kernels().attention),
            61u * 1152u * kernels::kPagePositions);
  for (const CacheType type :
       {CacheType::f32, CacheType::f16, CacheType::bf16, CacheType::q8_0, CacheType::q4_0})
    EXPECT_EQ(KvCache::bytes_per_page(shape, attention_kernels(ProductClass::decode, type)),
              static_cast<size_t>(61 * kernels::kPagePositions * cached_bytes(type, 576)))
        << to_string(type) << ": what `shape` reports";
}

}  // namespace
}  // namespace liuli
