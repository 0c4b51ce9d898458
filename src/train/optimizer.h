// How gradients move weights: AdamW, Adam, SGD with momentum, and clipping by the global norm.
#pragma once
#include <vector>

#include "core/thread_pool.h"
#include "train/parameters.h"

namespace liuli {

enum class OptimizerKind { adamw, adam, sgd, muon };

struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::adamw;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double weight_decay = 0.1;  ///< adamw: θ −= lr · wd · θ; adam, sgd: g += wd · θ
  bool decay_vectors =
      false;              ///< norms and biases too; usually only tensors with two or more dimensions decay
  double momentum = 0.9;  ///< sgd, muon
  bool nesterov = false;  ///< sgd
};

/// Moments beside the parameters, in the same order. A step's result depends on gradients and settings alone, not on
/// threads.
///   adamw  m ← β₁m + (1 − β₁)g,  v ← β₂v + (1 − β₂)g²,  θ ← θ − lr (m̂ / (√v̂ + eps) + wd θ)
///   sgd    b ← μb + g (b = g at first),  θ ← θ − lr b
///   muon   matrices inside blocks: b ← μb + g,  θ ← θ − lr (0.2 √max(d_out, d_in) · orthogonalised(g + μb) + wd θ);
///          everything else as adamw. The factor makes its steps as long as AdamW's usual ones, so that one learning
///          rate serves both (Liu et al. 2025, arXiv 2502.16982).
class Optimizer {
 public:
  Optimizer(Parameters& parameters, const OptimizerSettings& settings);

  /// clip: what gradients are multiplied by on the way, see clip_factor().
  void step(ThreadPool& pool, double learning_rate, float clip = 1);
  int64_t steps() const { return steps_; }

  /// What a checkpoint keeps: the moments of parameter i, and how many steps were made.
  std::vector<std::vector<float>>& first_moments() { return first_; }
  std::vector<std::vector<float>>& second_moments() { return second_; }  ///< empty for sgd
  void set_steps(int64_t steps) { steps_ = steps; }

 private:
  bool takes_muon(const Parameter& p) const;
  void muon_steps(ThreadPool& pool, float learning_rate, float clip);

  Parameters& parameters_;
  OptimizerSettings settings_;
  Arena scratch_;
  std::vector<std::vector<float>> first_, second_;
  int64_t steps_ = 0;
};

/// √(Σ g²) over all gradients; independent of the number of threads.
double gradient_norm(ThreadPool& pool, const Parameters& parameters);
/// min(1, limit / (norm + 1e-6)): clipping by the norm. An optimiser that is given it saves a pass over all gradients.
float clip_factor(double norm, double limit);
/// Scales all gradients by it.
void clip_gradients(ThreadPool& pool, Parameters& parameters, double norm, double limit);

}  // namespace liuli
