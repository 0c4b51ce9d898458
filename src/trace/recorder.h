// A listener that keeps what it sees.
#pragma once
#include <unordered_map>
#include <vector>

#include "core/thread_pool.h"
#include "liuli/trace.h"
#include "model/probe.h"
#include "trace/captures.h"

namespace liuli {

/// What a capture of these places holds.
int64_t capture_bytes(const ModelConfig& config, const std::vector<Place>& places, TokenCounts counts);
int64_t capture_bytes(const std::vector<Capture>& captures);

/// Records chosen places over all tokens of a prompt, whatever the chunks it comes in.
class Recorder : public Probe {
 public:
  /// counts: the lengths of the prompt and the source. Errors: out_of_memory when the capture would pass max_bytes, naming
  /// both.
  Recorder(const ModelConfig& config, const std::vector<Place>& places, TokenCounts counts, int64_t max_bytes)
      : Recorder(whole_captures(config, places, counts), max_bytes) {}
  /// The same for parts of values; they go to `sink` if there is one, and are kept otherwise. Large values are copied by
  /// the threads of `pool`, if there is one.
  Recorder(std::vector<Capture> captures, int64_t max_bytes, TraceSink* sink = nullptr,
           ThreadPool* pool = nullptr);

  bool wants(const Place& place) const override { return slots_.count(key(place)) != 0; }
  void see(const ProbedValue& value) override;
  bool may_change(const Place&) const override { return false; }
  float* storage(const Place& place, int64_t n) override;

  /// Scores before the mask need every key at once: the prompt must come in one pass.
  bool needs_one_pass() const;
  /// Whether anything after the last block is wanted at every position.
  bool needs_every_logit() const;

  /// Names and shapes; the values too unless they went to a sink.
  std::vector<TracedTensor> take();

 private:
  // A value as rows of numbers: [token][everything else], of score-like points [head] before them.
  struct Layout {
    bool by_head = false;
    int64_t n_heads = 1, n_rows = 0, width = 0;  // of the whole value
    std::vector<int64_t> head_slot, row_slot;    // where each goes among the kept ones; −1: nowhere
    int64_t kept_rows = 0, kept_width = 0;
    std::vector<int64_t> columns;  // the kept ones; empty: all
  };
  static Layout layout_of(const Capture& capture);
  bool is_whole(const Layout& layout) const;
  void keep(size_t tensor, const ProbedValue& value);
  void begin(size_t tensor, const ProbedValue& value);
  void zero(size_t tensor);
  bool keep_rows_at_once(size_t tensor, const ProbedValue& value);
  void write(size_t tensor, int64_t first, const float* values, int64_t n);

  static uint64_t key(const Place& place) {
    const auto layer = static_cast<uint32_t>(place.layer + 1),
               expert = static_cast<uint32_t>(place.expert + 1);
    return (uint64_t{expert} << 40) | (uint64_t{layer} << 16) | (static_cast<uint64_t>(place.stack) << 8) |
           static_cast<uint64_t>(place.point);
  }

  std::vector<Capture> captures_;
  std::vector<Layout> layouts_;
  std::vector<TracedTensor> tensors_;
  std::vector<float*> memory_;  ///< of every tensor; null: through the sink
  std::vector<bool> begun_;     ///< whether anything of it came
  TraceSink* sink_;
  ThreadPool* pool_;
  std::vector<float> row_;
  std::unordered_map<uint64_t, std::vector<size_t>> slots_;
};

}  // namespace liuli
