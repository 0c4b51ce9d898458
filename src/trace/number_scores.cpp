#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "trace/attention_query.h"
#include "trace/number_explainers.h"

namespace liuli::numbers {
namespace {

// Σ (scale · q) · k / divisor, then the soft cap unless the raw score is wanted.
void explain_product(Calculation& c, bool raw) {
  const int64_t key = c.index(2);
  const AttentionQuery query(c, c.index(0), c.index(1));
  const double factor = raw ? 1 / query.scale() : 1;
  const bool rounded = query.rounds_query(key);
  const std::vector<double> k = query.used_key(key);
  for (int64_t d = 0; d < query.width(); d++) {
    NumberOperand a = query.query_operand(d), b = query.key_operand(key, d);
    a.used = query.used_query(d, rounded);
    b.used = k[static_cast<size_t>(d)];
    c.add_term({a, b}, a.used * b.used * factor);
  }
  const double cap = query.soft_cap(), products = c.sum();
  double result = products, magnitude = c.absolute_sum() + query.offset_magnitude() * factor;
  if (cap > 0 && !raw) {
    result = cap * std::tanh(result / cap);
    c.step(fmt::format("soft cap: {0} · tanh(x / {0})", cap), result);
  }
  // A raw score is found from the capped one, which flattens where it nears the cap.
  if (cap > 0 && raw) magnitude /= std::max(1e-6, 1 - std::pow(std::tanh(products * query.scale() / cap), 2));
  if (const double offset = query.offset_score() * factor; offset != 0) {
    result += offset;
    c.step("+ q · (offset that is taken off every key before it is rounded)", result);
  }
  c.set_kind("dot product");
  c.set_formula(raw ? "Σ (scale · q) · k / scale, k as the cache keeps it"
                    : fmt::format("Σ (scale · q) · k, k as the cache keeps it; scale = {}", query.scale()));
  c.finish(result, magnitude);
}

}  // namespace

void explain_scores_raw(Calculation& c) { explain_product(c, true); }
void explain_scores(Calculation& c) { explain_product(c, false); }

void explain_attn_scores(Calculation& c) {
  const AttentionQuery query(c, c.index(0), c.index(1));
  const bool seen = query.sees(c.index(2));
  c.set_kind("mask");
  if (!seen) {
    c.set_formula(fmt::format("−∞: the query at {} sees the keys {} … {}", c.index(1), query.visible().begin,
                              query.visible().end - 1));
    return c.finish(-std::numeric_limits<double>::infinity(), 0);
  }
  c.add_term(c.beside(Point::attn_scores), {c.index(0), c.index(1), c.index(2)});
  c.finish(c.sum(), c.absolute_sum());
}

void explain_pattern(Calculation& c) {
  const int64_t head = c.index(0), token = c.index(1), own = c.index(2);
  const AttentionQuery query(c, head, token);
  const Place scores = c.beside(Point::attn_attn_scores);
  const auto row = c.run().rows.row(scores, token, head);
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t key = query.visible().begin; key < query.visible().end; key++)
    max = std::max(max, static_cast<double>(row[static_cast<size_t>(key)]));
  for (int64_t key = query.visible().begin; key < query.visible().end; key++)
    sum += std::exp(static_cast<double>(row[static_cast<size_t>(key)]) - max);
  for (int64_t key = query.visible().begin; key < query.visible().end; key++) {
    const NumberOperand score = c.operand(scores, {head, token, key});
    c.add_term({score}, std::exp(score.value - max) / sum);
  }
  c.set_kind("softmax");
  c.set_formula("exp(attn_scores − max) / Σ; each term is one key's share");
  if (!query.sees(own)) {
    c.step("the mask hides this key", 0);
    return c.finish(0, 0);
  }
  const double score = static_cast<double>(row[static_cast<size_t>(own)]);
  c.step("max", max);
  c.step("Σ exp(score − max)", sum);
  const double share = std::exp(score - max) / sum;
  c.step(fmt::format("share of key {}", own), share);
  c.finish(share, share * std::max({1.0, std::fabs(score), std::fabs(max)}));
}

namespace {

// z = V_up · (Σ pattern · c)
void explain_absorbed(Calculation& c, const AttentionQuery& query) {
  const int64_t token = c.index(0), head = c.index(1);
  const LatentAttention& a = *latent_attention(c);
  const std::string latent = c.beside(Point::attn_kv_latent).name();
  const std::vector<float> sums = query.run_kernel().z;
  const ProductInput x{sums, [&](int64_t j) {
                         return Calculation::named(
                             fmt::format("(Σ pattern · {})[{},{},{}]", latent, token, head, j),
                             static_cast<double>(sums[static_cast<size_t>(j)]));
                       }};
  c.linear({fmt::format("{}attn.v_up.{}", block_prefix(c.place()), head), &a.v_up[static_cast<size_t>(head)]},
           c.index(2), x);
  c.set_formula(fmt::format("V_up · (Σ pattern · {})", latent));
}

}  // namespace

void explain_z(Calculation& c) {
  const int64_t token = c.index(0), head = c.index(1), d = c.index(2);
  const AttentionQuery query(c, head, token);
  if (query.is_absorbed()) return explain_absorbed(c, query);
  const AttentionQuery::Weights weights = query.weights();
  const Place pattern = c.beside(Point::attn_pattern);
  for (int64_t key = query.visible().begin; key < query.visible().end; key++) {
    const auto at = static_cast<size_t>(key - query.visible().begin);
    const NumberOperand weight{
        number_name(pattern, {head, token, key}), weights.pattern[at], weights.used[at], true, {}};
    const NumberOperand v = query.value_operand(key, d);
    c.add_term({weight, v}, weight.used * v.used);
  }
  c.finish_sum("weighted sum");
}

}  // namespace liuli::numbers
