// What every head's pattern looks like, as means; the patterns themselves are not kept.
#pragma once
#include <map>
#include <vector>

#include "liuli/attribution.h"
#include "model/probe.h"

namespace liuli {

/// Listens to attn.pattern of every block.
class AttentionSummary final : public Probe {
 public:
  /// ids: the tokens of the run, which tell where earlier occurrences are.
  explicit AttentionSummary(std::vector<int> ids);

  bool wants(const Place& place) const override {
    return place.point == Point::attn_pattern && place.stack != Stack::cross && place.stack != Stack::encoder;
  }
  void see(const ProbedValue& value) override;
  bool may_change(const Place&) const override { return false; }

  HeadsReport report() const;

 private:
  // The row of one position: attention to each key.
  void add(HeadSummary& head, int64_t position, const float* row, int64_t n_keys) const;

  std::vector<int> ids_;
  std::vector<std::vector<int>> earlier_;                 ///< per position: where its token occurred before
  std::map<std::pair<int, int64_t>, HeadSummary> heads_;  ///< sums so far
};

}  // namespace liuli
