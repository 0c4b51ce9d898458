// Short training runs with an eye on every block's gradient.
#pragma once
#include <functional>
#include <vector>

#include "train/lab/language.h"
#include "train/lab/stack.h"
#include "train/optimizer.h"
#include "train/train_step.h"

namespace liuli::lab {

/// Gradients of one backward pass, by block.
struct LayerGradients {
  double loss = 0;
  std::vector<double> stream;  ///< ‖∂L/∂x‖ of what leaves block l; [0] of what enters the first: n_layers + 1
  std::vector<double> w2;       ///< ‖∂L/∂W₂‖ of each block's second feed-forward matrix
  std::vector<double> rms;      ///< of the stream, as `stream`
  std::vector<double> largest;  ///< |x|, as `stream`
};

/// One forward and backward pass. The gradients stay in the stack's parameters.
LayerGradients measure_gradients(RandomStack& stack, Runner& runner, const std::vector<Example>& batch);

struct TrainingSettings {
  int64_t steps = 100, batch = 8, length = 32;
  double learning_rate = 1e-3;
  int64_t warm_up = 0;
  double clip = 0;
  std::function<bool(const Parameter&)> frozen;  ///< these do not move; null: all do
  std::vector<int64_t> measured_steps;           ///< LayerGradients are kept of these
};

struct TrainingRun {
  std::vector<double> losses;  ///< of every step's batch, before it
  std::vector<std::pair<int64_t, LayerGradients>> gradients;
  double held_out = 0;    ///< mean loss afterwards; NaN when the run blew up
  bool diverged = false;  ///< a loss or gradient was no number
};

/// AdamW (β 0.9/0.95, weight decay 0.1 on matrices), constant rate after a linear warm-up, on the language's batches.
TrainingRun train_stack(RandomStack& stack, Runner& runner, const Language28& language,
                        const TrainingSettings& settings);

double mean_loss(const RandomStack& stack, Runner& runner, const std::vector<Example>& examples);

}  // namespace liuli::lab
