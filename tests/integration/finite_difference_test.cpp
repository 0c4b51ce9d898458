// Gradients of whole models against central differences of their loss: every op of every family, with its norms in every
// place a block can have them.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <optional>

#include "core/rng.h"
#include "learner.h"

namespace liuli::golden {
namespace {

enum class Placement { pre, post, sandwich, output_only };
constexpr Placement kPlacements[] = {Placement::pre, Placement::post, Placement::sandwich,
                                     Placement::output_only};
constexpr const char* kPlacementNames[] = {"pre", "post", "sandwich", "output_only"};

// The half's own norm stands where it is wanted. In a sandwich one γ may serve both places: its gradient is then a sum.
void move_norms(BlockNorms& norms, Placement placement) {
  Norm first, last;
  for (const Norm& norm : {norms.before, norms.on_output, norms.after_add}) {
    if (norm.kind == NormKind::none) continue;
    if (first.kind == NormKind::none) first = norm;
    last = norm;
  }
  ASSERT_NE(first.kind, NormKind::none);
  norms = {};
  if (placement == Placement::pre || placement == Placement::sandwich) norms.before = first;
  if (placement == Placement::sandwich || placement == Placement::output_only) norms.on_output = last;
  if (placement == Placement::post) norms.after_add = last;
}

void move_norms(std::vector<Block>& blocks, Placement placement) {
  for (Block& b : blocks) {
    move_norms(b.attn_norm, placement);
    move_norms(b.ffn_norm, placement);
  }
}

/// Which experts every token went to: where a step changes that, the loss jumps and has no slope.
class Choices final : public Probe {
 public:
  bool wants(const Place& place) const override { return place.point == Point::mlp_expert_ids; }
  bool sees_batches() const override { return true; }
  void see(const ProbedValue& value) override {
    for (int64_t i = 0; i < value.rows.n; i++)
      ids.insert(ids.end(), value.rows.row(i), value.rows.row(i) + value.rows.width);
  }

  std::vector<float> ids;
};

/// The loss of a model as a function of its weights, and its gradient.
class Slope {
 public:
  Slope(const std::string& family, const std::function<void(Model&)>& change) : l_(family, 1) {
    change(l_.model);
    step_ = std::make_unique<TrainStep>(l_.model, l_.runner);
    step_->watcher = &choices_;
    if (l_.config.is_encoder_decoder()) {
      batch_ = {next_token_example(first_of("tgt_ids"))};
      batch_[0].source = first_of("src_ids");
    } else {
      batch_ = {next_token_example(first_of("p1.input_ids"))};
    }
    if (!l_.config.has_output) batch_[0].target.clear();
    gradients();
  }

  TrainStep& step() { return *step_; }
  Learner& learner() { return l_; }
  const std::vector<float>& choices() const { return choices_.ids; }  ///< of the last loss()

  /// Without an output matrix: Σ out ⊙ r for a fixed r.
  double loss() {
    choices_.ids.clear();
    const Rows out = step_->forward(batch_, Keep::everything);
    if (l_.config.has_output) return step_->loss({}).sum;
    double sum = 0;
    for (int64_t i = 0; i < out.n; i++)
      for (int64_t j = 0; j < out.width; j++) sum += static_cast<double>(out.row(i)[j]) * weight(i, j);
    return sum;
  }

  void gradients() {
    l_.parameters.clear_gradients();
    if (l_.config.has_output) {
      step_->run(batch_, l_.parameters.gradient_map(), {0, 1});
      return;
    }
    step_->forward(batch_, Keep::everything);
    Rows dx = step_->new_rows_like_output();
    for (int64_t i = 0; i < dx.n; i++)
      for (int64_t j = 0; j < dx.width; j++) dx.row(i)[j] = static_cast<float>(weight(i, j));
    step_->backward(dx, l_.parameters.gradient_map());
  }

 private:
  std::vector<int> first_of(const char* key) const {
    std::vector<int> ids = l_.ids(key);
    ids.resize(std::min<size_t>(ids.size(), 9));
    return ids;
  }
  static double weight(int64_t i, int64_t j) {
    return std::sin(1 + 3 * static_cast<double>(i) + 7 * static_cast<double>(j));
  }

  Learner l_;
  Choices choices_;
  std::unique_ptr<TrainStep> step_;
  std::vector<Example> batch_;
};

/// A unit vector over a parameter's values: its own gradient where `chosen` says so (so that the slope is large), 0 else.
std::vector<double> direction_of(const Parameter& p, const std::function<bool(int64_t)>& chosen) {
  std::vector<double> u(static_cast<size_t>(p.size));
  double squares = 0;
  for (int64_t i = 0; i < p.size; i++) {
    const double g = chosen(i) ? static_cast<double>(p.gradient[i]) : 0;
    u[static_cast<size_t>(i)] = g;
    squares += g * g;
  }
  for (double& v : u) v = squares > 0 ? v / std::sqrt(squares) : 1 / std::sqrt(static_cast<double>(p.size));
  return u;
}

/// (L(w + h u) − L(w − h u)) / 2h; nothing if other experts are chosen there.
std::optional<double> difference(Slope& slope, Parameter& p, const std::vector<double>& u, double h) {
  slope.loss();
  const std::vector<float> choices = slope.choices(), before(p.value, p.value + p.size);
  double at[2];
  bool same = true;
  for (const int side : {0, 1}) {
    for (int64_t i = 0; i < p.size; i++) {
      const auto k = static_cast<size_t>(i);
      p.value[i] = static_cast<float>(static_cast<double>(before[k]) + (side == 0 ? h : -h) * u[k]);
    }
    at[side] = slope.loss();
    same = same && slope.choices() == choices;
  }
  std::copy(before.begin(), before.end(), p.value);
  if (!same) return std::nullopt;
  return (at[0] - at[1]) / (2 * h);
}

// Two central differences with the h² term taken off; f32 forwards leave a noise of some 1e-5 in the loss. Between two
// choices of experts the step is made smaller.
void expect_slope(Slope& slope, Parameter& p, const std::function<bool(int64_t)>& chosen, const char* part) {
  const std::vector<double> u = direction_of(p, chosen);
  double expected = 0, size = 0;
  for (int64_t i = 0; i < p.size; i++) {
    expected += u[static_cast<size_t>(i)] * static_cast<double>(p.gradient[i]);
    size += static_cast<double>(p.value[i]) * static_cast<double>(p.value[i]);
  }
  double h = std::min(0.02 / std::max(expected, 1e-9), 0.01 * std::sqrt(size) + 1e-3);
  std::optional<double> whole = difference(slope, p, u, h);
  for (int tries = 0; !whole && tries < 6; tries++) whole = difference(slope, p, u, h /= 3);
  const std::optional<double> half = difference(slope, p, u, h / 2);
  ASSERT_TRUE(whole && half) << p.name << ": every step changes the choice of experts";
  EXPECT_NEAR((4 * *half - *whole) / 3, expected, 0.01 * std::fabs(expected) + 5e-5 / h)
      << p.name << ", " << part;
}

void expect_slopes(Slope& slope) {
  const double before = slope.loss();
  int with_gradient = 0;
  for (Parameter& p : slope.learner().parameters.all()) {
    Rng rng(7, static_cast<uint64_t>(p.size));
    std::vector<bool> half;
    for (int64_t i = 0; i < p.size; i++) half.push_back(rng.uniform() < 0.5);
    expect_slope(
        slope, p, [](int64_t) { return true; }, "all");
    expect_slope(
        slope, p, [&](int64_t i) { return half[static_cast<size_t>(i)]; }, "a random half");
    with_gradient += std::any_of(p.gradient, p.gradient + p.size, [](float g) { return g != 0; });
  }
  EXPECT_GT(with_gradient, 15);
  EXPECT_EQ(slope.loss(), before);  // every weight is back where it was
}

class EveryPlacement : public testing::TestWithParam<std::tuple<const char*, Placement>> {};

TEST_P(EveryPlacement, HasTheGradientOfItsLoss) {
  const auto [family, placement] = GetParam();
  Slope slope(family, [p = placement](Model& model) {
    move_norms(model.blocks, p);
    move_norms(model.encoder, p);
  });
  expect_slopes(slope);
}
INSTANTIATE_TEST_SUITE_P(Families, EveryPlacement,
                         testing::Combine(testing::Values("llama", "qwen2", "qwen3", "gemma3", "olmo2",
                                                          "gpt2", "bert", "transformer2017", "deepseek_v3",
                                                          "mixtral", "qwen2moe"),
                                          testing::ValuesIn(kPlacements)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) + "_" +
                                  kPlacementNames[static_cast<size_t>(std::get<1>(test.param))];
                         });

// What no tiny model has of itself.
class Variants : public testing::TestWithParam<Placement> {};

TEST_P(Variants, OfAttentionAndActivationHaveTheGradientOfTheirLoss) {
  for (const Activation activation : {Activation::relu, Activation::gelu_erf, Activation::gelu_tanh}) {
    SCOPED_TRACE(static_cast<int>(activation));
    Slope slope("llama", [&](Model& model) {
      move_norms(model.blocks, GetParam());
      for (Block& b : model.blocks) {
        std::get<FeedForward>(b.ffn).activation = activation;
        auto& attention = std::get<Attention>(b.attention);
        attention.sliding_window = 3;
        attention.soft_cap = 2;
        attention.causal = activation != Activation::relu;
      }
      model.config.final_soft_cap = 4;
      model.blocks[1].residual_scale = 1.5f;  // DeepNorm's α
    });
    expect_slopes(slope);
  }
}

TEST_P(Variants, WithDropoutHaveTheGradientOfTheirOwnMask) {
  Slope slope("gpt2", [&](Model& model) { move_norms(model.blocks, GetParam()); });
  slope.step().set_dropout({0.3, 11, 2});
  slope.gradients();
  expect_slopes(slope);
}
INSTANTIATE_TEST_SUITE_P(Placements, Variants, testing::ValuesIn(kPlacements), [](const auto& test) {
  return std::string(kPlacementNames[static_cast<size_t>(test.param)]);
});

}  // namespace
}  // namespace liuli::golden
