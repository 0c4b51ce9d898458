// A small network with one norm, column by column or row by row: the simplest place to see the two differ.
#pragma once
#include <string>
#include <vector>

#include "liuli/norm_kind.h"
#include "model/transformer.h"
#include "train/parameters.h"

namespace liuli::lab {

/// Which statistics a batch norm uses; a layer norm knows no difference.
enum class Statistics { of_batch, running };

/// Three characters in, the next one out: embed → W₁ → norm → relu → W₂ → logits.
class Perceptron {
 public:
  static constexpr int64_t kContext = 3, kEmbedding = 16, kHidden = 64;
  Perceptron(NormKind norm, int64_t vocabulary, uint64_t seed);

  struct Batch {
    std::vector<int> inputs;  ///< [n, kContext]
    std::vector<int> targets;
  };
  /// Mean loss of a batch, its gradients added to the (cleared) parameters'; the running statistics move.
  double train_pass(Runner& runner, const Batch& batch);
  /// Mean loss without learning. of_batch with a single row: every x̂ is 0, the output is β.
  double evaluate(Runner& runner, const Batch& batch, Statistics statistics);
  Parameters& parameters() { return parameters_; }

 private:
  struct Pass {  // rows of one pass, in the runner's scratch
    Rows embedded, hidden, normed, active, logits;
  };
  Pass forward(OpContext& c, const Batch& batch, Statistics statistics, bool learning);
  void backward(OpContext& c, const Batch& batch, const Pass& pass);
  void normalise(OpContext& c, Statistics statistics, bool learning, const Pass& pass);
  Norm norm() const;

  NormKind kind_;
  int64_t vocabulary_;
  Parameters parameters_;
  Parameter *embed_, *w1_, *gamma_, *beta_, *w2_;
  std::vector<float> running_mean_, running_var_;
};

}  // namespace liuli::lab
