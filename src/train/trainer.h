// A training loop without files: batches in, reports out. Runs with files are in engine/train.cpp.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "train/lora.h"
#include "train/non_finite.h"
#include "train/optimizer.h"
#include "train/schedule.h"
#include "train/train_step.h"

namespace liuli {

struct TrainerSettings {
  OptimizerSettings optimizer;
  Schedule schedule;
  double clip = 1;  ///< of the gradients' global norm; 0: none
  double label_smoothing = 0, dropout = 0;
  uint64_t seed = 1;       ///< of dropout
  int64_t accumulate = 1;  ///< batches per step; weighted by the tokens they count
  Keep keep = Keep::everything;
  int padding_id = -1;
};

/// The batch of a step; part counts the batches that one step accumulates. A pure function: a run that is resumed asks
/// for the same step again.
using BatchSource = std::function<std::vector<Example>(int64_t step, int64_t part)>;

struct StepReport {
  int64_t step = 0;          ///< from 0
  double loss = 0;           ///< mean over the tokens counted, before the step, with dropout
  double gradient_norm = 0;  ///< before clipping
  double learning_rate = 0;
  int64_t tokens = 0;  ///< rows that went through the model
  double seconds = 0;
  std::optional<NonFinite> non_finite;  ///< then no weight was changed, and the run cannot go on
};

/// Owns the model that runs on the weights, and the optimiser. Everything after a step follows from the weights, the
/// optimiser's moments and the number of steps made: save those, and a later run gives the same bits.
class Trainer {
 public:
  /// lora: its adapters learn in place of the weights. All references must stay.
  Trainer(const ModelConfig& config, Parameters& weights, Runner& runner, const TrainerSettings& settings,
          BatchSource batches, Lora* lora = nullptr);

  StepReport step();
  /// The mean loss per token of some examples, without dropout, `batch` at a time.
  double evaluate(const std::vector<Example>& examples, int64_t batch);

  const Model& model() const { return model_; }
  Runner& runner() { return runner_; }
  Optimizer& optimizer() { return optimizer_; }
  TrainStep& train_step() { return train_step_; }
  /// What the optimiser moves: the weights, or the adapters.
  Parameters& trained() { return lora_ != nullptr ? lora_->adapters() : weights_; }
  int64_t steps_made() const { return optimizer_.steps(); }
  /// After values, moments and steps have been put back from a checkpoint.
  void restored();

 private:
  CrossEntropy gradients(const std::vector<std::vector<Example>>& parts, double counted);
  std::optional<NonFinite> what_went_wrong(const std::vector<std::vector<Example>>& parts, double counted);

  Parameters& weights_;
  Runner& runner_;
  TrainerSettings settings_;
  BatchSource batches_;
  Lora* lora_;
  Model model_;
  TrainStep train_step_;
  Optimizer optimizer_;
};

}  // namespace liuli
