// A listener that keeps what it sees.
#pragma once
#include <unordered_map>
#include <vector>

#include "liuli/trace.h"
#include "model/probe.h"
#include "trace/point_selection.h"

namespace liuli {

/// What a capture of these places holds.
int64_t capture_bytes(const ModelConfig& config, const std::vector<Place>& places, TokenCounts counts);

/// Records chosen places over all tokens of a prompt, whatever the chunks it comes in.
class Recorder : public Probe {
 public:
  /// counts: the lengths of the prompt and the source. Errors: out_of_memory when the capture would pass max_bytes, naming
  /// both.
  Recorder(const ModelConfig& config, std::vector<Place> places, TokenCounts counts, int64_t max_bytes);

  bool wants(const Place& place) const override { return slots_.count(key(place)) != 0; }
  void see(const ProbedValue& value) override;

  /// Scores before the mask need every key at once: the prompt must come in one pass.
  bool needs_one_pass() const;
  /// Whether anything after the last block is wanted at every position.
  bool needs_every_logit() const;

  std::vector<TracedTensor> take() { return std::move(tensors_); }

 private:
  static uint64_t key(const Place& place) {
    const auto layer = static_cast<uint32_t>(place.layer + 1),
               expert = static_cast<uint32_t>(place.expert + 1);
    return (uint64_t{expert} << 40) | (uint64_t{layer} << 16) | (static_cast<uint64_t>(place.stack) << 8) |
           static_cast<uint64_t>(place.point);
  }

  std::vector<Place> places_;
  std::vector<TracedTensor> tensors_;
  std::unordered_map<uint64_t, size_t> slots_;
};

}  // namespace liuli
