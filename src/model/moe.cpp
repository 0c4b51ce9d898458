#include <algorithm>
#include <cmath>

#include "model/block.h"
#include "ops/activation.h"
#include "ops/linear.h"
#include "ops/router.h"

namespace liuli {
namespace {

// The router is part of what stays float32 in every class: rounded to bf16, near-equal scores would trade places and
// send a token elsewhere. Only the exact class differs, by summing in double.
Rows router_logits(const MixtureOfExperts& m, Rows h, OpContext ops) {
  if (ops.product_class != ProductClass::exact) ops.product_class = ProductClass::f32;
  Rows logits = make_rows(ops.scratch, h.n, m.shape.n_experts);
  linear_forward(ops, h, {LinearJob{&m.router.weight, m.router.bias, logits}});
  return logits;
}

void show_routing(const Routing& r, const ExpertConfig& shape, int layer, const Step& s) {
  if (s.listener == nullptr) return;
  s.probe(Point::mlp_router_scores, layer, r.scores);
  if (r.biased.data != r.scores.data) s.probe(Point::mlp_router_biased, layer, r.biased);
  if (shape.n_groups > 1) {
    s.probe(Point::mlp_group_scores, layer, r.group_scores);
    s.probe(Point::mlp_groups_kept, layer, r.groups_kept);
  }
  const Arena::Scope scratch(s.ops.scratch);
  Rows ids = make_rows(s.ops.scratch, r.scores.n, shape.n_experts_active);
  for (int64_t i = 0; i < ids.n; i++)
    for (int64_t j = 0; j < ids.width; j++)
      ids.row(i)[j] = static_cast<float>(r.expert_ids[i * ids.width + j]);
  s.probe(Point::mlp_expert_ids, layer, ids);
  s.probe(Point::mlp_expert_weights, layer, r.expert_weights);
}

// The step's rows sorted by expert, each expert's in ascending order.
struct Dispatch {
  int* first;      ///< [n_experts + 1]: expert e has the entries [first[e], first[e + 1])
  int* tokens;     ///< the row of each entry
  float* weights;  ///< what the expert's output for that row is multiplied with
};

Dispatch dispatch(const Routing& r, const ExpertConfig& shape, Arena& arena) {
  const int64_t n = r.scores.n, active = shape.n_experts_active;
  Dispatch d{arena.array<int>(shape.n_experts + 1), arena.array<int>(n * active), arena.floats(n * active)};
  std::fill_n(d.first, shape.n_experts + 1, 0);
  for (int64_t i = 0; i < n * active; i++) d.first[r.expert_ids[i] + 1]++;
  for (int64_t e = 0; e < shape.n_experts; e++) d.first[e + 1] += d.first[e];
  int* next = arena.array<int>(shape.n_experts);
  std::copy_n(d.first, shape.n_experts, next);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < active; j++) {
      const int entry = next[r.expert_ids[i * active + j]]++;
      d.tokens[entry] = static_cast<int>(i);
      d.weights[entry] = r.expert_weights.row(i)[j];
    }
  return d;
}

// out[token] += weight · expert(h[token]) for the tokens of one expert. Experts come in ascending order, so a token's
// sum has one order whatever other tokens there are.
void add_expert(const MixtureOfExperts& m, int expert, const Dispatch& d, int layer, Rows h, Rows out,
                Step& s) {
  const int begin = d.first[expert], n = d.first[expert + 1] - begin;
  if (n == 0) return;
  const int* tokens = d.tokens + begin;
  const Arena::Scope scratch(s.ops.scratch);
  Rows x = make_rows(s.ops.scratch, n, h.width);
  for_each_row(s.ops, n, [&](int64_t i) {
    std::memcpy(x.row(i), h.row(tokens[i]), static_cast<size_t>(h.width) * sizeof(float));
  });
  const HiddenPoints points{Point::mlp_expert_pre, Point::mlp_expert_pre_linear, Point::mlp_expert_post,
                            expert, tokens};
  Rows y = feed_forward(m.experts[static_cast<size_t>(expert)], layer, x, s, points);
  s.probe_expert(Point::mlp_expert_out, layer, expert, y, tokens);
  for_each_row(s.ops, n, [&](int64_t i) {
    s.ops.rows.scale(y.row(i), d.weights[begin + i], y.width);
    s.ops.rows.add(out.row(tokens[i]), y.row(i), y.width);
  });
}

void add_shared(const MixtureOfExperts& m, int layer, Rows h, Rows out, Step& s) {
  if (m.shared.up.weight.empty()) return;
  const HiddenPoints points{Point::mlp_shared_pre, Point::mlp_shared_pre_linear, Point::mlp_shared_post};
  Rows y = feed_forward(m.shared, layer, h, s, points);
  if (m.shared_gate != nullptr)
    for_each_row(s.ops, y.n, [&](int64_t i) {
      double logit = 0;
      for (int64_t j = 0; j < h.width; j++)
        logit += static_cast<double>(m.shared_gate[j]) * static_cast<double>(h.row(i)[j]);
      s.ops.rows.scale(y.row(i), static_cast<float>(1 / (1 + std::exp(-logit))), y.width);
    });
  s.probe(Point::mlp_shared_out, layer, y);
  add_in_place(s.ops, out, y, 1.0f);
}

}  // namespace

Rows feed_forward(const MixtureOfExperts& m, int layer, Rows h, Step& s) {
  Rows out = make_rows(s.ops.scratch, h.n, h.width);
  const Arena::Scope scratch(s.ops.scratch);
  Rows logits = router_logits(m, h, s.ops);
  s.probe(Point::mlp_router_logits, layer, logits);
  const Routing routing = route(s.ops, m.shape, m.choice_bias, logits);
  show_routing(routing, m.shape, layer, s);
  const Dispatch d = dispatch(routing, m.shape, s.ops.scratch);
  for (int64_t i = 0; i < out.n; i++)
    std::memset(out.row(i), 0, static_cast<size_t>(out.width) * sizeof(float));
  for (int e = 0; e < m.shape.n_experts; e++) add_expert(m, e, d, layer, h, out, s);
  s.probe(Point::mlp_routed_out, layer, out);
  add_shared(m, layer, h, out, s);
  return out;
}

}  // namespace liuli
