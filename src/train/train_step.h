// One step of learning: forward, loss, backward.
#pragma once
#include <deque>
#include <functional>
#include <vector>

#include "model/backward.h"
#include "model/transformer.h"
#include "ops/cross_entropy.h"
#include "train/dropout.h"

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

/// What a forward pass keeps for the way back.
enum class Keep : uint8_t {
  nothing,
  everything,
  /// Only what enters each block; the rest is formed again on the way back: one more forward pass for about a tenth of the
  /// memory. Not for encoder-decoders.
  block_inputs
};

/// Runs passes over a model whose weights are plain f32 rows. Deterministic, and independent of the number of threads.
/// The order of calls: forward, then perhaps loss (which needs an output matrix), then perhaps backward.
class TrainStep {
 public:
  /// padding_id: a token whose embedding learns nothing from being looked up (−1: none), as Hugging Face's classes have
  /// it for a configuration's pad_token_id.
  TrainStep(const Model& model, Runner& runner, int padding_id = -1)
      : model_(model), runner_(runner), padding_id_(padding_id) {}

  /// Of every forward that keeps something, and of its way back.
  void set_dropout(const Dropout& dropout) { dropout_ = dropout; }

  /// Runs a batch; its rows of the residual stream after the last block, all sequences one after another.
  Rows forward(const std::vector<Example>& batch, Keep keep);

  /// Cross-entropy of the targets through the final norm and the output matrix, in chunks of rows so that no more than a
  /// few hundred rows of logits exist at once. With gradients: theirs are added, and dx becomes what the residual stream
  /// gets.
  CrossEntropy loss(const LossSettings& settings, GradientMap* gradients = nullptr, Rows* dx = nullptr);

  /// dx: the gradient of forward's result. Adds every weight's gradient.
  void backward(Rows dx, GradientMap gradients);

  /// All three: the loss, its gradients added.
  CrossEntropy run(const std::vector<Example>& batch, GradientMap gradients,
                   const LossSettings& settings = {}, Keep keep = Keep::everything);

  Rows new_rows_like_output();  ///< zeros, for a dx made by the caller
  /// Called on the way back with the gradient of each block's output (layer n_layers: of the last block's), for those who
  /// watch.
  std::function<void(int layer, Rows dx)> on_gradient;
  /// Sees every value of a forward pass that it wants, after dropout; it must see batches. Null: nobody.
  Probe* watcher = nullptr;

 private:
  class Keeper;

  void place(const std::vector<Example>& batch);
  std::vector<SequenceInput> make_inputs(const StepOptions& options);
  void loss_of_rows(int64_t first, int64_t n, const LossSettings& settings, double divisor,
                    GradientMap* gradients, Rows* dx, CrossEntropy& total);
  std::vector<RopeAngles> angles_of(const std::vector<int>& positions);
  void form_again(int layer, Backward& s);
  Rows tower_backward(const std::vector<Block>& blocks, Rows dx, Backward& s);
  void embedding_backward(Rows dx, const std::vector<int>& ids, const std::vector<int>& positions,
                          Backward& s);

  const Model& model_;
  Runner& runner_;
  int padding_id_;
  Dropout dropout_;
  Keep keep_ = Keep::nothing;
  Saved saved_{&runner_.pool}, layer_saved_{&runner_.pool};  ///< layer_saved_: of the block formed again
  Arena scratch_;  ///< of loss and the way back; the forward pass uses the runner's
  std::vector<Example> batch_;
  std::vector<SequenceRows> sequences_;
  std::vector<int> ids_, positions_, targets_, types_, source_positions_;
  Rows output_;
  std::deque<KvCache> caches_;
};

}  // namespace liuli
