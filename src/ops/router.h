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

/// scores = softmax or sigmoid of logits; biased = scores + choice_bias (null: none). A group's score is the sum of its
/// group_best largest biased scores; the n_groups_kept best groups compete, and of their experts the n_experts_active
/// with the largest biased score are chosen. Of equals the lowest index wins, everywhere; a NaN loses to any number.
/// weight_e = score_e (the unbiased one), divided by Σ + 1e-20 when `renormalise`, times weight_scale.
/// Shapes: logits [n_tokens, n_experts]; the result lives in c.scratch.
Routing route(OpContext& c, const ExpertConfig& shape, const float* choice_bias, Rows logits);

}  // namespace liuli
