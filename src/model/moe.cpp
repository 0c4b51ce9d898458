#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "liuli/error.h"
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
  ops.bf16_products = false;
  Rows logits = make_rows(ops.scratch, h.n, m.shape.n_experts);
  linear_forward(ops, h, {LinearJob{&m.router.weight, m.router.bias, logits}});
  return logits;
}

// Shows the chosen experts as rows of f32 and takes back what a hook made of them.
void show_choice(Routing& r, const ExpertConfig& shape, int layer, const Step& s) {
  if (!s.listening(Point::mlp_expert_ids, layer)) return;
  const Arena::Scope scratch(s.ops.scratch);
  const int64_t active = shape.n_experts_active;
  Rows ids = make_rows(s.ops.scratch, r.scores.n, active);
  for (int64_t i = 0; i < ids.n * active; i++)
    ids.row(i / active)[i % active] = static_cast<float>(r.expert_ids[i]);
  s.probe(Point::mlp_expert_ids, layer, ids);
  for (int64_t i = 0; i < ids.n; i++) {
    int* chosen = r.expert_ids + i * active;
    for (int64_t k = 0; k < active; k++) {
      const float id = ids.row(i)[k];
      if (!(id >= 0 && id < static_cast<float>(shape.n_experts)) || id != std::floor(id))
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("{}: a hook wrote {}, expected the number of one of {} experts",
                                s.place(Point::mlp_expert_ids, layer).name(), id, shape.n_experts));
      chosen[k] = static_cast<int>(id);
    }
    std::sort(chosen, chosen + active);
  }
}

// The router step by step; every value is shown before the next one is formed from it.
Routing decide(const MixtureOfExperts& m, int layer, Rows logits, Step& s) {
  const ExpertConfig& shape = m.shape;
  Routing r = make_routing(s.ops, shape, m.choice_bias != nullptr, logits.n);
  score_experts(s.ops, shape, logits, r);
  s.probe(Point::mlp_router_scores, layer, r.scores);
  if (m.choice_bias != nullptr) {
    bias_scores(s.ops, m.choice_bias, r);
    s.probe(Point::mlp_router_biased, layer, r.biased);
  }
  if (shape.n_groups > 1) {
    score_groups(s.ops, shape, r);
    s.probe(Point::mlp_group_scores, layer, r.group_scores);
    keep_groups(s.ops, shape, r);
    s.probe(Point::mlp_groups_kept, layer, r.groups_kept);
  }
  choose_experts(s.ops, shape, r);
  show_choice(r, shape, layer, s);
  weigh_experts(s.ops, shape, r);
  s.probe(Point::mlp_expert_weights, layer, r.expert_weights);
  return r;
}

// A token's way through one expert is an entry. Entries are sorted by expert, an expert's by token.
struct Dispatch {
  int* first;   ///< [n_experts + 1]: expert e has the entries [first[e], first[e + 1])
  int* tokens;  ///< the step's row of each entry
  int* entry;   ///< [n_tokens, n_experts_active]: where each choice of a token stands among the entries
};

Dispatch dispatch(const Routing& r, const ExpertConfig& shape, Arena& arena) {
  const int64_t n = r.scores.n, active = shape.n_experts_active;
  Dispatch d{arena.array<int>(shape.n_experts + 1), arena.array<int>(n * active),
             arena.array<int>(n * active)};
  std::fill_n(d.first, shape.n_experts + 1, 0);
  for (int64_t i = 0; i < n * active; i++) d.first[r.expert_ids[i] + 1]++;
  for (int64_t e = 0; e < shape.n_experts; e++) d.first[e + 1] += d.first[e];
  int* next = arena.array<int>(shape.n_experts);
  std::copy_n(d.first, shape.n_experts, next);
  for (int64_t i = 0; i < n * active; i++) {
    d.entry[i] = next[r.expert_ids[i]]++;
    d.tokens[d.entry[i]] = static_cast<int>(i / active);
  }
  return d;
}

// Consecutive experts whose products run together, so that the threads share all their panels at once: at decode all
// experts of a token, at the prompt as many as bring about kWaveRows rows (few enough to stay in the caches).
constexpr int kWaveRows = 512;
struct Wave {
  int first_expert, last_expert;  ///< the last is not part of it
};

Wave next_wave(const Dispatch& d, int first_expert, int64_t n_experts) {
  int last = first_expert + 1;
  while (last < n_experts && d.first[last + 1] - d.first[first_expert] <= kWaveRows) last++;
  return {first_expert, last};
}

// One of the experts' matrices over a wave's rows.
struct WaveProduct {
  Linear FeedForward::*matrix;
  Rows y;
};
// y = W x for every expert of a wave; at most two products, over the same x.
void multiply_wave(const MixtureOfExperts& m, const Dispatch& d, Wave wave, Rows x,
                   std::initializer_list<WaveProduct> which, OpContext& c) {
  const int begin = d.first[wave.first_expert];
  auto* calls = c.scratch.array<LinearCall>(int64_t{2} * (wave.last_expert - wave.first_expert));
  size_t n_calls = 0;
  for (int e = wave.first_expert; e < wave.last_expert; e++) {
    const int at = d.first[e] - begin, n = d.first[e + 1] - d.first[e];
    for (const WaveProduct& p : which) {
      const Linear& linear = m.experts[static_cast<size_t>(e)].*p.matrix;
      if (n > 0) calls[n_calls++] = {x.slice(at, n), {&linear.weight, linear.bias, p.y.slice(at, n)}};
    }
  }
  linear_forward_each(c, {calls, n_calls});
}

// Shows each expert's part of a wave's rows.
void show_wave(Point point, const Dispatch& d, Wave wave, int layer, Rows rows, const Step& s) {
  if (s.listener == nullptr) return;
  const int begin = d.first[wave.first_expert];
  for (int e = wave.first_expert; e < wave.last_expert; e++)
    if (const int n = d.first[e + 1] - d.first[e]; n > 0)
      s.probe_expert(point, layer, e, rows.slice(d.first[e] - begin, n), d.tokens + d.first[e]);
}

// The outputs of a wave's experts, [entries, d_model].
Rows run_wave(const MixtureOfExperts& m, const Dispatch& d, Wave wave, int layer, Rows h, Step& s) {
  const int begin = d.first[wave.first_expert], n = d.first[wave.last_expert] - begin;
  Arena& arena = s.ops.scratch;
  Rows y = make_rows(arena, n, h.width);
  const Arena::Scope scratch(arena);
  Rows x = make_rows(arena, n, h.width), hidden = make_rows(arena, n, m.shape.d_ff),
       up = make_rows(arena, n, m.shape.d_ff);
  for_each_row(s.ops, n, [&](int64_t i) {
    std::memcpy(x.row(i), h.row(d.tokens[begin + i]), static_cast<size_t>(h.width) * sizeof(float));
  });
  multiply_wave(m, d, wave, x, {{&FeedForward::gate, hidden}, {&FeedForward::up, up}}, s.ops);
  show_wave(Point::mlp_expert_pre, d, wave, layer, hidden, s);
  show_wave(Point::mlp_expert_pre_linear, d, wave, layer, up, s);
  activation_forward(s.ops, m.experts.front().activation, hidden, hidden);
  multiply_in_place(s.ops, hidden, up);
  show_wave(Point::mlp_expert_post, d, wave, layer, hidden, s);
  multiply_wave(m, d, wave, hidden, {{&FeedForward::down, y}}, s.ops);
  show_wave(Point::mlp_expert_out, d, wave, layer, y, s);
  return y;
}

// out = Σ weight_e · expert_e(h). A token's experts are added in ascending order, whatever other tokens there are.
void add_experts(const MixtureOfExperts& m, const Routing& routing, int layer, Rows h, Rows out, Step& s) {
  const Dispatch d = dispatch(routing, m.shape, s.ops.scratch);
  const int64_t active = m.shape.n_experts_active;
  for (int64_t i = 0; i < out.n; i++)
    std::memset(out.row(i), 0, static_cast<size_t>(out.width) * sizeof(float));
  for (Wave wave{0, 0}; wave.last_expert < m.shape.n_experts;) {
    wave = next_wave(d, wave.last_expert, m.shape.n_experts);
    const int begin = d.first[wave.first_expert], end = d.first[wave.last_expert];
    if (begin == end) continue;
    const Arena::Scope scratch(s.ops.scratch);
    Rows y = run_wave(m, d, wave, layer, h, s);
    for_each_row(s.ops, out.n, [&](int64_t i) {
      for (int64_t j = 0; j < active; j++) {
        const int entry = d.entry[i * active + j];
        if (entry < begin || entry >= end) continue;
        s.ops.rows.scale(y.row(entry - begin), routing.expert_weights.row(i)[j], y.width);
        s.ops.rows.add(out.row(i), y.row(entry - begin), y.width);
      }
    });
  }
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
  const Routing routing = decide(m, layer, logits, s);
  add_experts(m, routing, layer, h, out, s);
  s.probe(Point::mlp_routed_out, layer, out);
  add_shared(m, layer, h, out, s);
  return out;
}

}  // namespace liuli
