#include <algorithm>
#include <cmath>
#include <functional>

#include "model/feed_forward_backward.h"
#include "ops/linear.h"

namespace liuli {
namespace {

// Which of a token's chosen experts (a column of expert_ids) is `expert`.
int64_t slot_of(const float* ids, int64_t active, int expert) {
  return std::find(ids, ids + active, static_cast<float>(expert)) - ids;
}

double dot(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t j = 0; j < n; j++) sum += static_cast<double>(a[j]) * static_cast<double>(b[j]);
  return sum;
}

// One expert: its weights' gradients, dh of its tokens, and the gradient of the weight each output was multiplied with.
void expert_backward(const MixtureOfExperts& m, int expert, int layer, Rows h, Rows d_out, Rows d_weights,
                     Rows dh, Backward& s) {
  OpContext& c = s.ops;
  const std::span<const int> tokens = s.saved->expert_tokens(layer, expert, s.stack);
  if (tokens.empty()) return;
  const Arena::Scope scratch(c.scratch);
  auto value = [&](Point point) { return s.saved->at(point, layer, s.stack, expert); };
  const Rows ids = s.at(Point::mlp_expert_ids, layer), weights = s.at(Point::mlp_expert_weights, layer),
             y = value(Point::mlp_expert_out);
  const auto n = static_cast<int64_t>(tokens.size());
  Rows x = make_rows(c.scratch, n, h.width), dy = make_rows(c.scratch, n, h.width),
       dx = make_rows(c.scratch, n, h.width);
  for_each_row(c, n, [&](int64_t i) {
    const int token = tokens[static_cast<size_t>(i)];
    const int64_t slot = slot_of(ids.row(token), ids.width, expert);
    std::copy_n(h.row(token), h.width, x.row(i));
    std::copy_n(d_out.row(token), h.width, dy.row(i));
    d_weights.row(token)[slot] = static_cast<float>(dot(dy.row(i), y.row(i), h.width));
    c.rows.scale(dy.row(i), weights.row(token)[slot], h.width);
  });
  const FeedForwardValues values{x, value(Point::mlp_expert_pre), value(Point::mlp_expert_pre_linear),
                                 value(Point::mlp_expert_post)};
  feed_forward_backward(m.experts[static_cast<size_t>(expert)], values, dy, dx, false, s);
  for_each_row(c, n,
               [&](int64_t i) { c.rows.add(dh.row(tokens[static_cast<size_t>(i)]), dx.row(i), h.width); });
}

// y = g · shared(h), g = σ(w · h) or 1.
void shared_backward(const MixtureOfExperts& m, int layer, Rows h, Rows d_out, Rows dh, Backward& s) {
  if (m.shared.up.weight.empty()) return;
  OpContext& c = s.ops;
  const Arena::Scope scratch(c.scratch);
  Rows dy = make_rows(c.scratch, h.n, h.width);
  const Rows y = s.at(Point::mlp_shared_out, layer);
  float* d_gate = s.gradients.of(m.shared_gate);
  for (int64_t i = 0; i < h.n; i++) {
    std::copy_n(d_out.row(i), h.width, dy.row(i));
    if (m.shared_gate == nullptr) continue;
    const double gate = 1 / (1 + std::exp(-dot(m.shared_gate, h.row(i), h.width)));
    const auto d_logit = static_cast<float>(dot(d_out.row(i), y.row(i), h.width) * (1 - gate));
    for (int64_t j = 0; j < h.width; j++) {
      d_gate[j] += d_logit * h.row(i)[j];
      dh.row(i)[j] += d_logit * m.shared_gate[j];
    }
    c.rows.scale(dy.row(i), static_cast<float>(gate), h.width);
  }
  const FeedForwardValues values{h, s.at(Point::mlp_shared_pre, layer),
                                 s.at(Point::mlp_shared_pre_linear, layer),
                                 s.at(Point::mlp_shared_post, layer)};
  feed_forward_backward(m.shared, values, dy, dh, true, s);
}

// From the gradients of the chosen weights to those of the router's logits: through the renormalisation and the score.
void router_row_backward(const ExpertConfig& shape, const float* ids, const float* scores,
                         const float* d_weights, float* d_logits) {
  const int64_t active = shape.n_experts_active;
  std::fill_n(d_logits, shape.n_experts, 0.0f);
  auto score = [&](int64_t slot) { return static_cast<double>(scores[static_cast<int64_t>(ids[slot])]); };
  double sum = 0, mean = 0;
  for (int64_t k = 0; k < active; k++) sum += score(k);
  for (int64_t k = 0; k < active; k++) mean += static_cast<double>(d_weights[k]) * score(k) / sum;
  for (int64_t k = 0; k < active; k++) {
    const double d = static_cast<double>(d_weights[k]);
    d_logits[static_cast<int64_t>(ids[k])] =
        static_cast<float>(shape.weight_scale * (shape.renormalise ? (d - mean) / sum : d));
  }
  double along = 0;
  for (int64_t e = 0; e < shape.n_experts; e++)
    along += static_cast<double>(scores[e]) * static_cast<double>(d_logits[e]);
  for (int64_t e = 0; e < shape.n_experts; e++) {
    const float p = scores[e];
    d_logits[e] = shape.score == ExpertConfig::Score::sigmoid ? d_logits[e] * p * (1 - p)
                                                              : p * (d_logits[e] - static_cast<float>(along));
  }
}

}  // namespace

void moe_backward(const MixtureOfExperts& m, int layer, Rows h, Rows d_out, Rows dh, Backward& s) {
  OpContext& c = s.ops;
  const Arena::Scope scratch(c.scratch);
  Rows d_weights = make_rows(c.scratch, h.n, m.shape.n_experts_active);
  Rows d_logits = make_rows(c.scratch, h.n, m.shape.n_experts);
  for (int64_t i = 0; i < h.n; i++) {
    std::fill_n(dh.row(i), h.width, 0.0f);
    std::fill_n(d_weights.row(i), d_weights.width, 0.0f);
  }
  for (int e = 0; e < m.shape.n_experts; e++) expert_backward(m, e, layer, h, d_out, d_weights, dh, s);
  shared_backward(m, layer, h, d_out, dh, s);
  const Rows ids = s.at(Point::mlp_expert_ids, layer), scores = s.at(Point::mlp_router_scores, layer);
  for_each_row(c, h.n, [&](int64_t i) {
    router_row_backward(m.shape, ids.row(i), scores.row(i), d_weights.row(i), d_logits.row(i));
  });
  linear_backward(s, m.router, h, d_logits, dh, true);
}

}  // namespace liuli
