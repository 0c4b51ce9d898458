#include "ops/cross_entropy.h"

#include "core/check.h"

namespace liuli {

CrossEntropy cross_entropy_forward(OpContext& c, Rows logits, std::span<const int> targets,
                                   double smoothing) {
  LIULI_CHECK(static_cast<int64_t>(targets.size()) == logits.n);
  const Arena::Scope scope(c.scratch);
  auto* losses = c.scratch.array<double>(logits.n);
  for_each_row(c, logits.n, [&](int64_t i) {
    losses[i] = 0;
    const int target = targets[static_cast<size_t>(i)];
    if (target == kIgnoredTarget) return;
    const float* z = logits.row(i);
    double mean = 0;
    if (smoothing > 0)
      for (int64_t j = 0; j < logits.width; j++) mean += static_cast<double>(z[j]);
    mean /= static_cast<double>(logits.width);
    losses[i] = static_cast<double>(c.rows.log_sum_exp(z, logits.width)) -
                (1 - smoothing) * static_cast<double>(z[target]) - smoothing * mean;
  });
  CrossEntropy result;
  for (int64_t i = 0; i < logits.n; i++) {
    result.sum += losses[i];
    result.counted += targets[static_cast<size_t>(i)] != kIgnoredTarget;
  }
  return result;
}

void cross_entropy_backward(OpContext& c, Rows logits, std::span<const int> targets, float scale,
                            double smoothing) {
  LIULI_CHECK(static_cast<int64_t>(targets.size()) == logits.n);
  const auto even = static_cast<float>(smoothing / static_cast<double>(logits.width));
  for_each_row(c, logits.n, [&](int64_t i) {
    float* z = logits.row(i);
    const int target = targets[static_cast<size_t>(i)];
    if (target == kIgnoredTarget) {
      std::fill_n(z, logits.width, 0.0f);
      return;
    }
    c.rows.softmax(z, logits.width, z);
    z[target] -= static_cast<float>(1 - smoothing);
    if (even > 0)
      for (int64_t j = 0; j < logits.width; j++) z[j] -= even;
    c.rows.scale(z, scale, logits.width);
  });
}

}  // namespace liuli
