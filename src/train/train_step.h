// One step of learning: forward, loss, backward.
#pragma once
#include <deque>
#include <vector>

#include "model/backward.h"
#include "model/transformer.h"
#include "ops/cross_entropy.h"

namespace liuli {

/// One sequence of a batch. target[t] is what should follow input[t]; kIgnoredTarget counts nothing. An encoder-decoder
/// takes one example per step.
struct Example {
  std::vector<int> input, target;
  std::vector<int> source;  ///< of an encoder-decoder
  std::vector<int> types;   ///< segments (BERT); empty: all 0
};

struct LossSettings {
  double label_smoothing = 0;
  double divisor =
      0;  ///< what the summed loss is divided by; 0: the positions counted in this batch (the mean)
};

/// Runs passes over a model whose weights are plain f32 rows. Deterministic, and independent of the number of threads.
/// The order of calls: forward, then perhaps loss (which needs an output matrix), then perhaps backward.
class TrainStep {
 public:
  /// padding_id: a token whose embedding learns nothing from being looked up (−1: none), as Hugging Face's classes have
  /// it for a configuration's pad_token_id.
  TrainStep(const Model& model, Runner& runner, int padding_id = -1)
      : model_(model), runner_(runner), padding_id_(padding_id) {}

  /// Runs a batch; its rows of the residual stream after the last block, all sequences one after another. with_saved:
  /// keeps what backward needs. `mask_branch` is called for every branch that is to be added, forward and backward alike
  /// (dropout); null: none.
  Rows forward(const std::vector<Example>& batch, bool with_saved);

  /// Cross-entropy of the targets through the final norm and the output matrix, in chunks of rows so that no more than a
  /// few hundred rows of logits exist at once. With gradients: theirs are added, and dx (returned) is what the residual
  /// stream gets.
  CrossEntropy loss(const LossSettings& settings, GradientMap* gradients = nullptr, Rows* dx = nullptr);

  /// dx: the gradient of forward's result. Adds every weight's gradient.
  void backward(Rows dx, GradientMap gradients);

  /// All three: the loss, its gradients added.
  CrossEntropy run(const std::vector<Example>& batch, GradientMap gradients,
                   const LossSettings& settings = {});

  Rows new_rows_like_output();  ///< for a dx made by the caller
  const Saved& saved() const { return saved_; }

 private:
  void place(const std::vector<Example>& batch);
  std::vector<RopeAngles> angles_of(const std::vector<int>& positions);
  Rows tower_backward(const std::vector<Block>& blocks, Rows dx, Backward& s);
  void embedding_backward(Rows dx, const std::vector<int>& ids, const std::vector<int>& positions,
                          Backward& s);

  const Model& model_;
  Runner& runner_;
  int padding_id_;
  Saved saved_;
  Arena scratch_;  ///< of loss and the way back; the forward pass uses the runner's
  std::vector<Example> batch_;
  std::vector<SequenceRows> sequences_;
  std::vector<int> ids_, positions_, targets_, types_, source_positions_;
  Rows output_;
  std::deque<KvCache> caches_;
};

}  // namespace liuli
