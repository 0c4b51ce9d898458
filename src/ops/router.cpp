#include "ops/router.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace liuli {
namespace {

// One row's way through the router.
struct Row {
  float *scores, *biased;
  float *group_scores, *groups_kept;  ///< null when there is one group
  int* ids;
  float* weights;
};

void score(OpContext& c, ExpertConfig::Score kind, const float* logits, int64_t n, float* scores) {
  if (kind == ExpertConfig::Score::softmax) return c.rows.softmax(logits, n, scores);
  for (int64_t e = 0; e < n; e++)
    scores[e] = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(logits[e]))));
}

bool beats(float a, float b) { return a > b || (std::isnan(b) && !std::isnan(a)); }

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
  LIULI_CHECK(found == n_best);
  std::sort(chosen, chosen + n_best);
}

// Sum of the largest values of one group, largest first.
float best_sum(const float* values, int64_t n, int64_t n_best, int* chosen) {
  choose_largest(
      values, n, n_best, [](int64_t) { return true; }, chosen);
  float sum = 0;
  for (int64_t i = 0; i < n_best; i++) sum += values[chosen[i]];
  return sum;
}

// ids serves as scratch for the choices within and between groups before it takes the result.
void choose_experts(const ExpertConfig& shape, const Row& r, int* scratch) {
  const int64_t group_size = shape.n_experts / shape.n_groups;
  if (shape.n_groups == 1)
    return choose_largest(
        r.biased, shape.n_experts, shape.n_experts_active, [](int64_t) { return true; }, r.ids);
  for (int64_t g = 0; g < shape.n_groups; g++) {
    r.group_scores[g] = best_sum(r.biased + g * group_size, group_size, shape.group_best, scratch);
    r.groups_kept[g] = 0;
  }
  choose_largest(
      r.group_scores, shape.n_groups, shape.n_groups_kept, [](int64_t) { return true; }, scratch);
  for (int64_t i = 0; i < shape.n_groups_kept; i++) r.groups_kept[scratch[i]] = 1;
  choose_largest(
      r.biased, shape.n_experts, shape.n_experts_active,
      [&](int64_t e) { return r.groups_kept[e / group_size] != 0; }, r.ids);
}

void weigh(const ExpertConfig& shape, const Row& r) {
  double sum = 0;
  for (int64_t i = 0; i < shape.n_experts_active; i++) sum += static_cast<double>(r.scores[r.ids[i]]);
  const double factor = shape.renormalise ? shape.weight_scale / (sum + 1e-20) : shape.weight_scale;
  for (int64_t i = 0; i < shape.n_experts_active; i++)
    r.weights[i] = static_cast<float>(static_cast<double>(r.scores[r.ids[i]]) * factor);
}

Routing make_routing(OpContext& c, const ExpertConfig& shape, bool has_bias, int64_t n) {
  Routing r;
  r.scores = make_rows(c.scratch, n, shape.n_experts);
  r.biased = has_bias ? make_rows(c.scratch, n, shape.n_experts) : r.scores;
  if (shape.n_groups > 1) {
    r.group_scores = make_rows(c.scratch, n, shape.n_groups);
    r.groups_kept = make_rows(c.scratch, n, shape.n_groups);
  }
  r.expert_ids = c.scratch.array<int>(n * shape.n_experts_active);
  r.expert_weights = make_rows(c.scratch, n, shape.n_experts_active);
  return r;
}

}  // namespace

Routing route(OpContext& c, const ExpertConfig& shape, const float* choice_bias, Rows logits) {
  const int64_t group_size = shape.n_experts / shape.n_groups;
  LIULI_CHECK(logits.width == shape.n_experts && shape.n_experts % shape.n_groups == 0);
  LIULI_CHECK(shape.n_groups_kept <= shape.n_groups && shape.group_best <= group_size &&
              shape.n_experts_active <=
                  (shape.n_groups > 1 ? shape.n_groups_kept * group_size : shape.n_experts));
  Routing r = make_routing(c, shape, choice_bias != nullptr, logits.n);
  const int64_t per_row = std::max(shape.n_groups, group_size);
  int* scratch = c.scratch.array<int>(logits.n * per_row);
  for_each_row(c, logits.n, [&](int64_t i) {
    const Row row{r.scores.row(i),
                  r.biased.row(i),
                  shape.n_groups > 1 ? r.group_scores.row(i) : nullptr,
                  shape.n_groups > 1 ? r.groups_kept.row(i) : nullptr,
                  r.expert_ids + i * shape.n_experts_active,
                  r.expert_weights.row(i)};
    score(c, shape.score, logits.row(i), shape.n_experts, row.scores);
    if (choice_bias != nullptr)
      for (int64_t e = 0; e < shape.n_experts; e++) row.biased[e] = row.scores[e] + choice_bias[e];
    choose_experts(shape, row, scratch + i * per_row);
    weigh(shape, row);
  });
  return r;
}

}  // namespace liuli
