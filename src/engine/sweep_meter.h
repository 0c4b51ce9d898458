// What a patched run is judged by.
#pragma once
#include <span>
#include <vector>

#include "liuli/sweep.h"
#include "ops/matrix.h"

namespace liuli {

/// A sweep's metric of the logits behind a last token: all of them, or only those that output() gives.
class SweepMeter {
 public:
  SweepMeter(const std::vector<SweepPair>& pairs, SweepMetric metric) : pairs_(pairs), metric_(metric) {}

  /// Selects the rows of the output matrix that the metric looks at. REQUIRES: tokens within the vocabulary.
  void prepare(const Matrix& whole, ThreadPool& pool);
  const Matrix& output() const { return ids_.empty() ? *whole_ : selected_; }
  /// The clean run's logits of a pair, all of them: what KL compares with.
  void set_clean(size_t pair, std::span<const float> logits);
  double measure(size_t pair, std::span<const float> logits) const;

 private:
  struct Prediction {
    std::vector<float> p;
    double negative_entropy = 0;
  };
  double logit(std::span<const float> logits, int id) const;
  double divergence(const Prediction& clean, std::span<const float> logits) const;

  const std::vector<SweepPair>& pairs_;
  SweepMetric metric_;
  const Matrix* whole_ = nullptr;
  std::vector<int> ids_;  ///< ascending; none: the whole matrix
  Matrix selected_;       ///< their rows
  std::vector<Prediction> clean_;
};

}  // namespace liuli
