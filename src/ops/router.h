// Which experts a token goes to, and with what weights.
#pragma once
#include "liuli/config.h"
#include "ops/context.h"

namespace liuli {

/// A router's decisions for some rows, with everything on the way to them.
struct Routing {
  Rows scores;  ///< [n_tokens, n_experts] softmax or sigmoid of the logits
  Rows biased;  ///< [n_tokens, n_experts] scores + choice bias; the same memory as scores when there is none
  Rows group_scores;          ///< [n_tokens, n_groups]; no rows when n_groups = 1
  Rows groups_kept;           ///< [n_tokens, n_groups] of 1 and 0; no rows when n_groups = 1
  int* expert_ids = nullptr;  ///< [n_tokens, n_experts_active], ascending in each row
  Rows expert_weights;        ///< [n_tokens, n_experts_active], in the order of expert_ids
};

/// Room for the decisions about n rows, in c.scratch; `has_bias`: the choice has a bias.
/// The steps below fill it one after another; what is changed between two of them counts for those that follow.
/// Of equals the lowest index wins, everywhere; a NaN loses to any number.
Routing make_routing(OpContext& c, const ExpertConfig& shape, bool has_bias, int64_t n);
/// scores = softmax or sigmoid of logits [n_tokens, n_experts].
void score_experts(OpContext& c, const ExpertConfig& shape, Rows logits, Routing& r);
/// biased = scores + choice_bias [n_experts].
void bias_scores(OpContext& c, const float* choice_bias, Routing& r);
/// A group's score is the sum of its group_best largest biased scores.
void score_groups(OpContext& c, const ExpertConfig& shape, Routing& r);
/// 1 for the n_groups_kept best groups.
void keep_groups(OpContext& c, const ExpertConfig& shape, Routing& r);
/// The n_experts_active experts with the largest biased score, of the kept groups if there are groups.
void choose_experts(OpContext& c, const ExpertConfig& shape, Routing& r);
/// weight_e = score_e (the unbiased one), divided by Σ + 1e-20 when `renormalise`, times weight_scale.
void weigh_experts(OpContext& c, const ExpertConfig& shape, Routing& r);

}  // namespace liuli
