#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "liuli/error.h"
#include "trace/number_explainers.h"
#include "trace/stream_places.h"

namespace liuli::numbers {
namespace {

// One dense layer, expert or shared expert: its weights, and where its values are shown.
struct Layer {
  const FeedForward* weights;
  std::string name;  // of its weights
  Place pre, pre_linear, post;
};

const MixtureOfExperts& mixture(Calculation& c) { return std::get<MixtureOfExperts>(c.block().ffn); }

Layer layer_of(Calculation& c) {
  const std::string at = block_prefix(c.place()) + "mlp.";
  switch (c.place().point) {
    case Point::mlp_expert_pre:
    case Point::mlp_expert_pre_linear:
    case Point::mlp_expert_post:
    case Point::mlp_expert_out:
      return {&mixture(c).experts[static_cast<size_t>(c.place().expert)],
              fmt::format("{}experts.{}.", at, c.place().expert), c.beside(Point::mlp_expert_pre),
              c.beside(Point::mlp_expert_pre_linear), c.beside(Point::mlp_expert_post)};
    case Point::mlp_shared_pre:
    case Point::mlp_shared_pre_linear:
    case Point::mlp_shared_post:
    case Point::mlp_shared_out:
      return {&mixture(c).shared, at + "shared.", c.beside(Point::mlp_shared_pre),
              c.beside(Point::mlp_shared_pre_linear), c.beside(Point::mlp_shared_post)};
    default:
      return {&std::get<FeedForward>(c.block().ffn), at, c.beside(Point::mlp_pre),
              c.beside(Point::mlp_pre_linear), c.beside(Point::mlp_post)};
  }
}

NamedMatrix named_part(const Layer& layer, const char* part, const Linear& linear) {
  return {layer.name + part, &linear.weight, linear.bias};
}

Place in_routing(Calculation& c, Point point) { return {point, c.place().layer, c.place().stack}; }

// Experts are shown only for the tokens that go through them.
void require_routed(Calculation& c) {
  if (c.place().expert < 0 || c.run().rows.passed(c.place(), c.index(0))) return;
  const auto ids = c.run().rows.row(in_routing(c, Point::mlp_expert_ids), c.index(0));
  if (c.run().rows.is_incomplete()) return;
  std::string chosen;
  for (const float id : ids)
    chosen.append(chosen.empty() ? "" : ", ").append(std::to_string(static_cast<int>(id)));
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{}: token {} does not go through expert {}; its experts are {}",
                  number_name(c.place(), {c.index(0), c.index(1)}), c.index(0), c.place().expert, chosen));
}

double activation(Activation kind, double x) {
  switch (kind) {
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::gelu_erf:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::relu:
      return std::max(x, 0.0);
  }
  return x;
}

const char* activation_name(Activation kind) {
  switch (kind) {
    case Activation::silu:
      return "silu";
    case Activation::gelu_tanh:
      return "gelu_tanh";
    case Activation::gelu_erf:
      return "gelu_erf";
    case Activation::relu:
      break;
  }
  return "relu";
}

}  // namespace

void explain_hidden(Calculation& c) {
  require_routed(c);
  const Layer layer = layer_of(c);
  const bool linear = c.place() == layer.pre_linear, gated = !layer.weights->gate.weight.empty();
  const bool is_up = linear || !gated;
  const Place input = feed_forward_input(c.config(), c.place());
  c.linear(named_part(layer, is_up ? "up" : "gate", is_up ? layer.weights->up : layer.weights->gate),
           c.index(1), c.input(input, c.index(0)));
  c.set_formula(fmt::format("{} · {}", is_up ? "W_up" : "W_gate", input.name()));
}

void explain_post(Calculation& c) {
  require_routed(c);
  const Layer layer = layer_of(c);
  const std::vector<int64_t> index{c.index(0), c.index(1)};
  const NumberOperand pre = c.operand(layer.pre, index);
  const char* name = activation_name(layer.weights->activation);
  const double active = activation(layer.weights->activation, pre.value);
  std::vector<NumberOperand> operands{pre};
  double result = active, magnitude = std::fabs(pre.value);
  if (!layer.weights->gate.weight.empty()) {
    operands.push_back(c.operand(layer.pre_linear, index));
    result *= operands.back().value;
    magnitude *= std::fabs(operands.back().value);
  }
  c.step(fmt::format("{}({})", name, layer.pre.name()), active);
  c.add_term(std::move(operands), result);
  c.set_formula(fmt::format("{}({}){}", name, layer.pre.name(),
                            layer.weights->gate.weight.empty() ? "" : " · " + layer.pre_linear.name()));
  c.set_kind("activation");
  c.finish(result, std::min(magnitude, std::fabs(result) * 10));
}

void explain_expert_out(Calculation& c) {
  require_routed(c);
  const Layer layer = layer_of(c);
  c.linear(named_part(layer, "down", layer.weights->down), c.index(1), c.input(layer.post, c.index(0)));
  c.set_formula("W_down · " + layer.post.name());
}

void explain_mlp_out_raw(Calculation& c) {
  const std::vector<int64_t> index{c.index(0), c.index(1)};
  if (!c.plan().routed) {
    const Layer layer = layer_of(c);
    c.linear(named_part(layer, "down", layer.weights->down), c.index(1), c.input(layer.post, c.index(0)));
    return c.set_formula("W_down · " + layer.post.name());
  }
  c.add_term(c.beside(Point::mlp_routed_out), index);
  const bool shared = !mixture(c).shared.up.weight.empty();
  if (shared) c.add_term(c.beside(Point::mlp_shared_out), index);
  c.set_formula(shared ? "routed_out + shared_out" : "routed_out");
  c.finish_sum("sum");
}

void explain_shared_out(Calculation& c) {
  const Layer layer = layer_of(c);
  const MixtureOfExperts& m = mixture(c);
  double gate = 1;
  if (m.shared_gate != nullptr) {
    const auto h = c.run().rows.row(feed_forward_input(c.config(), c.place()), c.index(0));
    double logit = 0;
    for (size_t j = 0; j < h.size(); j++)
      logit += static_cast<double>(m.shared_gate[j]) * static_cast<double>(h[j]);
    gate = static_cast<double>(static_cast<float>(1 / (1 + std::exp(-logit))));
  }
  c.linear(named_part(layer, "down", layer.weights->down), c.index(1), c.input(layer.post, c.index(0)));
  c.set_formula("W_down · " + layer.post.name());
  if (m.shared_gate == nullptr) return;
  const double product = c.recomputed();
  c.step(fmt::format("× sigmoid({}mlp.shared_gate · {}) ({})", block_prefix(c.place()),
                     feed_forward_input(c.config(), c.place()).name(), gate),
         product * gate);
  c.finish(product * gate, c.magnitude() * gate);
}

// ---- routing ---------------------------------------------------------------------------------------------

void explain_router_logits(Calculation& c) {
  OpContext ops = c.run().ops;  // float32 in every class
  if (ops.product_class != ProductClass::exact) ops.product_class = ProductClass::f32;
  const Linear& router = mixture(c).router;
  const Place input = feed_forward_input(c.config(), c.place());
  c.linear(ops, {block_prefix(c.place()) + "mlp.router", &router.weight, router.bias}, c.index(1),
           c.input(input, c.index(0)));
  c.set_formula("W_router · " + input.name());
}

void explain_router_scores(Calculation& c) {
  const int64_t token = c.index(0), own = c.index(1);
  const Place logits = c.beside(Point::mlp_router_logits);
  const double logit = c.value(logits, {token, own});
  if (mixture(c).shape.score == ExpertConfig::Score::sigmoid) {
    c.add_term(logits, {token, own});
    const double score = 1 / (1 + std::exp(-logit));
    c.step("sigmoid", score);
    c.set_kind("sigmoid");
    c.set_formula("sigmoid(router_logits)");
    return c.finish(score, score);
  }
  const auto row = c.run().rows.row(logits, token);
  const auto max = static_cast<double>(*std::max_element(row.begin(), row.end()));
  double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<double>(x) - max);
  for (int64_t e = 0; e < static_cast<int64_t>(row.size()); e++) {
    const NumberOperand x = c.operand(logits, {token, e});
    c.add_term({x}, std::exp(x.value - max) / sum);
  }
  const double share = std::exp(logit - max) / sum;
  c.step("max", max);
  c.step("Σ exp(logit − max)", sum);
  c.step(fmt::format("share of expert {}", own), share);
  c.set_kind("softmax");
  c.set_formula("softmax of router_logits over the experts");
  c.finish(share, share * std::max({1.0, std::fabs(logit), std::fabs(max)}));
}

void explain_router_biased(Calculation& c) {
  const int64_t expert = c.index(1);
  c.add_term(c.beside(Point::mlp_router_scores), {c.index(0), expert});
  const double bias = static_cast<double>(mixture(c).choice_bias[expert]);
  c.add_term({Calculation::named(fmt::format("{}mlp.router.choice_bias[{}]", block_prefix(c.place()), expert),
                                 bias)},
             bias);
  c.finish_sum("sum");
}

namespace {

// What experts are chosen by.
Place choice_scores(Calculation& c) {
  return in_routing(c,
                    mixture(c).choice_bias != nullptr ? Point::mlp_router_biased : Point::mlp_router_scores);
}

// The indices of the largest values in order of preference; of equals the lowest index.
std::vector<int64_t> by_preference(std::span<const float> values, std::vector<int64_t> candidates) {
  std::stable_sort(candidates.begin(), candidates.end(), [&](int64_t a, int64_t b) {
    return values[static_cast<size_t>(a)] > values[static_cast<size_t>(b)];
  });
  return candidates;
}

std::vector<int64_t> range(int64_t begin, int64_t end) {
  std::vector<int64_t> all(static_cast<size_t>(end - begin));
  std::iota(all.begin(), all.end(), begin);
  return all;
}

void add_candidates(Calculation& c, const Place& place, const std::vector<int64_t>& order) {
  for (const int64_t i : order) c.add_term(place, {c.index(0), i});
}

}  // namespace

void explain_group_scores(Calculation& c) {
  const ExpertConfig& shape = mixture(c).shape;
  const int64_t size = shape.n_experts / shape.n_groups, first = c.index(1) * size;
  const Place scores = choice_scores(c);
  std::vector<int64_t> order =
      by_preference(c.run().rows.row(scores, c.index(0)), range(first, first + size));
  order.resize(static_cast<size_t>(shape.group_best));
  add_candidates(c, scores, order);
  c.set_formula(fmt::format("sum of the {} best of {} in experts {} … {}", shape.group_best, scores.name(),
                            first, first + size - 1));
  c.finish_sum("sum");
}

void explain_groups_kept(Calculation& c) {
  const ExpertConfig& shape = mixture(c).shape;
  const Place scores = c.beside(Point::mlp_group_scores);
  const std::vector<int64_t> order =
      by_preference(c.run().rows.row(scores, c.index(0)), range(0, shape.n_groups));
  add_candidates(c, scores, order);
  const auto kept = order.begin() + shape.n_groups_kept;
  const double result = std::find(order.begin(), kept, c.index(1)) != kept ? 1 : 0;
  c.set_kind("choice");
  c.set_formula(fmt::format("1 for the {} groups with the best group_scores", shape.n_groups_kept));
  c.finish(result, 0);
}

void explain_expert_ids(Calculation& c) {
  const ExpertConfig& shape = mixture(c).shape;
  const Place scores = choice_scores(c);
  std::vector<int64_t> allowed = range(0, shape.n_experts);
  if (shape.n_groups > 1) {
    const auto kept = c.run().rows.row(c.beside(Point::mlp_groups_kept), c.index(0));
    const int64_t size = shape.n_experts / shape.n_groups;
    std::erase_if(allowed, [&](int64_t e) { return kept[static_cast<size_t>(e / size)] == 0; });
  }
  std::vector<int64_t> order = by_preference(c.run().rows.row(scores, c.index(0)), allowed);
  add_candidates(c, scores, order);
  order.resize(
      static_cast<size_t>(std::min<int64_t>(shape.n_experts_active, static_cast<int64_t>(order.size()))));
  order.resize(static_cast<size_t>(shape.n_experts_active));
  std::sort(order.begin(), order.end());
  c.set_kind("choice");
  c.set_formula(fmt::format("the {} best of {}{}, ascending by number", shape.n_experts_active, scores.name(),
                            shape.n_groups > 1 ? " within the groups kept" : ""));
  c.finish(static_cast<double>(order[static_cast<size_t>(c.index(1))]), 0);
}

void explain_expert_weights(Calculation& c) {
  const ExpertConfig& shape = mixture(c).shape;
  const int64_t token = c.index(0);
  const Place scores = c.beside(Point::mlp_router_scores);
  const auto ids = c.run().rows.row(c.beside(Point::mlp_expert_ids), token);
  for (const float id : ids) c.add_term(scores, {token, static_cast<int64_t>(id)});
  const double own = c.value(scores, {token, static_cast<int64_t>(ids[static_cast<size_t>(c.index(1))])});
  double result = own;
  if (shape.renormalise) {
    result /= c.sum() + 1e-20;
    c.step("score / Σ of the chosen", result);
  }
  result *= shape.weight_scale;
  if (shape.weight_scale != 1) c.step(fmt::format("× {}", shape.weight_scale), result);
  c.set_kind("quotient");
  c.set_formula(fmt::format("router_scores of the chosen expert{}{}",
                            shape.renormalise ? " / Σ of the chosen" : "",
                            shape.weight_scale != 1 ? fmt::format(" · {}", shape.weight_scale) : ""));
  c.finish(result, std::fabs(result));
}

void explain_routed_out(Calculation& c) {
  const int64_t token = c.index(0), d = c.index(1);
  const auto ids = c.run().rows.row(c.beside(Point::mlp_expert_ids), token);
  for (int64_t j = 0; j < static_cast<int64_t>(ids.size()); j++) {
    Place out = c.beside(Point::mlp_expert_out);
    out.expert = static_cast<int>(ids[static_cast<size_t>(j)]);
    const NumberOperand weight = c.operand(c.beside(Point::mlp_expert_weights), {token, j});
    const NumberOperand y = c.operand(out, {token, d});
    c.add_term({weight, y}, weight.value * y.value);
  }
  c.finish_sum("weighted sum");
}

}  // namespace liuli::numbers
