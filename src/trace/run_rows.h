// Rows of values of a run, recorded by demand: a calculation asks for its operands, what is missing is noted, the model
// runs, and the calculation is done again.
#pragma once
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "model/probe.h"

namespace liuli {

class RunRows final : public Probe {
 public:
  RunRows(const ModelConfig& config, TokenCounts counts) : config_(config), counts_(counts) {}

  const ModelConfig& config() const { return config_; }
  TokenCounts counts() const { return counts_; }

  /// The values of one token: all of its heads and dimensions; of score-like points all keys of one head. Zeros as long
  /// as they have not been recorded.
  std::span<const float> row(const Place& place, int64_t token, int64_t head = 0);
  /// One number by its full index.
  float value(const Place& place, const std::vector<int64_t>& index);
  /// Whether the run had that row: tokens pass through some experts only. True as long as nothing was recorded.
  bool passed(const Place& place, int64_t token);

  /// Whether something was asked for that no run has recorded yet.
  bool is_incomplete() const { return !missing_.empty(); }
  /// To be called after a run that was listened to: what was not seen does not exist.
  void close_run();

  /// What a run has to do for the missing rows.
  bool needs_one_pass() const;
  bool needs_every_logit() const;
  int last_layer() const;  ///< of the decoder; n_layers when anything behind the last block is missing

  bool wants(const Place& place) const override { return missing_places_.count(key(place)) != 0; }
  void see(const ProbedValue& value) override;
  bool may_change(const Place&) const override { return false; }

 private:
  using PlaceKey = std::tuple<int, int, int, int>;
  struct RowKey {
    PlaceKey place;
    int64_t token, head;
    auto operator<=>(const RowKey&) const = default;
  };
  struct Row {
    std::vector<float> values;
    bool recorded = false, passed = true;
  };
  static PlaceKey key(const Place& place) {
    return {static_cast<int>(place.stack), place.layer, static_cast<int>(place.point), place.expert};
  }
  Row& find(const Place& place, int64_t token, int64_t head);

  const ModelConfig& config_;
  TokenCounts counts_;
  std::map<RowKey, Row> rows_;
  std::set<RowKey> missing_;
  std::map<PlaceKey, Place> missing_places_;
};

}  // namespace liuli
