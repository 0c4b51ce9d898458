// A listener that keeps what it sees.
#pragma once
#include <unordered_map>
#include <vector>

#include "liuli/trace.h"
#include "model/probe.h"
#include "trace/point_selection.h"

namespace liuli {

/// What a capture of these places holds for n tokens.
int64_t capture_bytes(const ModelConfig& config, const std::vector<PointPlace>& places, int64_t n_tokens);

/// Records chosen places over all tokens of a prompt, whatever the chunks it comes in.
class Recorder : public Probe {
 public:
  /// n_tokens: the length of the prompt. Errors: out_of_memory when the capture would pass max_bytes, naming
  /// both.
  Recorder(const ModelConfig& config, std::vector<PointPlace> places, int64_t n_tokens, int64_t max_bytes);

  bool wants(Point point, int layer) const override { return slots_.count(key(point, layer)) != 0; }
  void see(const ProbedValue& value) override;

  /// Scores before the mask need every key at once: the prompt must come in one pass.
  bool needs_one_pass() const;
  /// Whether anything after the last block is wanted at every position.
  bool needs_every_logit() const;

  std::vector<TracedTensor> take() { return std::move(tensors_); }

 private:
  static int key(Point point, int layer) { return (layer + 1) * kPointCount + static_cast<int>(point); }

  std::vector<PointPlace> places_;
  std::vector<TracedTensor> tensors_;
  std::unordered_map<int, size_t> slots_;
};

}  // namespace liuli
