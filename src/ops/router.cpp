#include "ops/router.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace liuli {
namespace {

bool beats(float a, float b) { return a > b || (std::isnan(b) && !std::isnan(a)); }

constexpr auto kAny = [](int64_t) { return true; };

// The `n_best` largest of values[i] where allowed(i), ascending by index, into chosen. n is at most a few hundred and
// n_best at most about ten, so insertion into a short sorted list beats sorting.
template <class Allowed>
void choose_largest(const float* values, int64_t n, int64_t n_best, Allowed&& allowed, int* chosen) {
  int64_t found = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!allowed(i)) continue;
    int64_t at = found;  // behind everything that is not smaller: the lowest index wins a tie
    while (at > 0 && beats(values[i], values[chosen[at - 1]])) at--;
    if (at >= n_best) continue;
    found = std::min(found + 1, n_best);
    std::move_backward(chosen + at, chosen + found - 1, chosen + found);
    chosen[at] = static_cast<int>(i);
  }
  // A hook may have left fewer candidates than are needed: the lowest of the others fill up.
  for (int64_t i = 0; i < n && found < n_best; i++)
    if (!allowed(i)) chosen[found++] = static_cast<int>(i);
  std::sort(chosen, chosen + n_best);
}

// Sum of the largest values of one group, largest first.
float best_sum(const float* values, int64_t n, int64_t n_best, int* chosen) {
  choose_largest(values, n, n_best, kAny, chosen);
  float sum = 0;
  for (int64_t i = 0; i < n_best; i++) sum += values[chosen[i]];
  return sum;
}

}  // namespace

Routing make_routing(OpContext& c, const ExpertConfig& shape, bool has_bias, int64_t n) {
  const int64_t group_size = shape.n_experts / shape.n_groups;
  LIULI_CHECK(shape.n_experts % shape.n_groups == 0 && shape.n_groups_kept <= shape.n_groups &&
              shape.n_experts_active <= shape.n_experts);
  Routing r;
  r.scores = make_rows(c.scratch, n, shape.n_experts);
  r.biased = has_bias ? make_rows(c.scratch, n, shape.n_experts) : r.scores;
  if (shape.n_groups > 1) {
    LIULI_CHECK(shape.group_best <= group_size && shape.n_experts_active <= shape.n_groups_kept * group_size);
    r.group_scores = make_rows(c.scratch, n, shape.n_groups);
    r.groups_kept = make_rows(c.scratch, n, shape.n_groups);
  }
  r.expert_ids = c.scratch.array<int>(n * shape.n_experts_active);
  r.expert_weights = make_rows(c.scratch, n, shape.n_experts_active);
  return r;
}

void score_experts(OpContext& c, const ExpertConfig& shape, Rows logits, Routing& r) {
  LIULI_CHECK(logits.width == shape.n_experts && logits.n == r.scores.n);
  for_each_row(c, logits.n, [&](int64_t i) {
    if (shape.score == ExpertConfig::Score::softmax)
      return c.rows.softmax(logits.row(i), logits.width, r.scores.row(i));
    for (int64_t e = 0; e < logits.width; e++)
      r.scores.row(i)[e] = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(logits.row(i)[e]))));
  });
}

void bias_scores(OpContext& c, const float* choice_bias, Routing& r) {
  for_each_row(c, r.scores.n, [&](int64_t i) {
    for (int64_t e = 0; e < r.scores.width; e++) r.biased.row(i)[e] = r.scores.row(i)[e] + choice_bias[e];
  });
}

void score_groups(OpContext& c, const ExpertConfig& shape, Routing& r) {
  const int64_t size = shape.n_experts / shape.n_groups;
  const Arena::Scope scratch(c.scratch);
  int* best = c.scratch.array<int>(r.scores.n * shape.group_best);
  for_each_row(c, r.scores.n, [&](int64_t i) {
    for (int64_t g = 0; g < shape.n_groups; g++)
      r.group_scores.row(i)[g] =
          best_sum(r.biased.row(i) + g * size, size, shape.group_best, best + i * shape.group_best);
  });
}

void keep_groups(OpContext& c, const ExpertConfig& shape, Routing& r) {
  const Arena::Scope scratch(c.scratch);
  int* best = c.scratch.array<int>(r.scores.n * shape.n_groups_kept);
  for_each_row(c, r.scores.n, [&](int64_t i) {
    int* kept = best + i * shape.n_groups_kept;
    choose_largest(r.group_scores.row(i), shape.n_groups, shape.n_groups_kept, kAny, kept);
    std::fill_n(r.groups_kept.row(i), shape.n_groups, 0.0f);
    for (int64_t k = 0; k < shape.n_groups_kept; k++) r.groups_kept.row(i)[kept[k]] = 1;
  });
}

void choose_experts(OpContext& c, const ExpertConfig& shape, Routing& r) {
  const int64_t size = shape.n_experts / shape.n_groups, active = shape.n_experts_active;
  for_each_row(c, r.scores.n, [&](int64_t i) {
    int* ids = r.expert_ids + i * active;
    if (shape.n_groups == 1) return choose_largest(r.biased.row(i), shape.n_experts, active, kAny, ids);
    const float* kept = r.groups_kept.row(i);
    choose_largest(
        r.biased.row(i), shape.n_experts, active, [&](int64_t e) { return kept[e / size] != 0; }, ids);
  });
}

void weigh_experts(OpContext& c, const ExpertConfig& shape, Routing& r) {
  for_each_row(c, r.scores.n, [&](int64_t i) {
    const int* ids = r.expert_ids + i * shape.n_experts_active;
    const float* scores = r.scores.row(i);
    double sum = 0;
    for (int64_t k = 0; k < shape.n_experts_active; k++) sum += static_cast<double>(scores[ids[k]]);
    const double factor = shape.renormalise ? shape.weight_scale / (sum + 1e-20) : shape.weight_scale;
    for (int64_t k = 0; k < shape.n_experts_active; k++)
      r.expert_weights.row(i)[k] = static_cast<float>(static_cast<double>(scores[ids[k]]) * factor);
  });
}

}  // namespace liuli
