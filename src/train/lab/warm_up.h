// Does post-norm need a warm-up, and pre-norm none? The same stacks at several learning rates, with and without.
#pragma once
#include <vector>

#include "train/lab/experiments.h"
#include "train/lab/training.h"

namespace liuli::lab {

/// Nats below what a model that knows only how frequent characters are reaches: then a run has learnt.
constexpr double kLearnt = 0.3;

/// What is built under a placement's name: in a run of the opposite, pre- and post-norm change their names.
Placement built_as(const Bench& bench, Placement placement);

struct WarmUpRun {
  Placement placement;  ///< pre or post
  double rate;
  bool warm_up;  ///< the first quarter of the steps
  int64_t steps;
  TrainingRun run;
  double gain = 0;  ///< nats below the entropy of single characters; −∞ when it blew up
};

/// Stacks of 12 blocks (width 32), where post-norm at 3e-3 no longer learns, at three rates (quick: two).
std::vector<WarmUpRun> train_with_and_without_warm_up(const Bench& bench, const Language28& language);

/// The most that warm-up adds at any one rate: gain with it − gain without, nats.
double most_from_warm_up(const std::vector<WarmUpRun>& runs, Placement placement);

/// The table, the picture, two checks and what they come to.
void judge_warm_up(const std::vector<WarmUpRun>& runs, LabReport& report);

}  // namespace liuli::lab
