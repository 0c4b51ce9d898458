// The loss of predicting the next token, and its gradient.
#pragma once
#include <span>

#include "ops/context.h"

namespace liuli {

constexpr int kIgnoredTarget = -1;  ///< contributes neither to the loss nor to its mean

struct CrossEntropy {
  double sum = 0;       ///< of the losses of all counted rows, in nats
  int64_t counted = 0;  ///< rows whose target is not ignored
};

/// loss_i = log Σ exp(z_i) − Σ_j q_j z_ij with q = (1 − smoothing) · onehot(target_i) + smoothing / V.
/// Shapes: logits [n, V], targets [n].
CrossEntropy cross_entropy_forward(OpContext& c, Rows logits, std::span<const int> targets,
                                   double smoothing = 0);

/// logits become (softmax(z) − q) · scale; rows with an ignored target become 0. scale: 1 / counted for the mean.
void cross_entropy_backward(OpContext& c, Rows logits, std::span<const int> targets, float scale,
                            double smoothing = 0);

}  // namespace liuli
