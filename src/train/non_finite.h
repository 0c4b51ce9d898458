// Where a run went wrong: the first value of a step that is NaN or infinite.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "train/parameters.h"
#include "train/train_step.h"

namespace liuli {

struct NonFinite {
  std::string point;  ///< "blocks.3.mlp.post", "the loss", "the gradient of blocks.2.resid_post", a parameter
  int64_t example = -1;   ///< of the batch; −1: no matter
  int64_t position = -1;  ///< the token within the example
  int64_t index = -1;     ///< within the value's row, or within the parameter
  double value = 0;       ///< NaN or ±Inf

  /// "blocks.3.mlp.post at position 17 of example 2, value 305 is inf"
  std::string text() const;
};

/// Runs a step once more, watching every point in the order a token meets them: first the weights themselves, then the
/// forward pass, the loss, the gradients of the residual stream from the last block to the first, and the gradients of
/// the weights. Nothing when all of it is finite. Leaves gradients behind.
std::optional<NonFinite> find_non_finite(TrainStep& step, Parameters& weights,
                                         const std::vector<Example>& batch, const LossSettings& settings,
                                         Keep keep);

}  // namespace liuli
