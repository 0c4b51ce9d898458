// log.jsonl: one line of JSON per step, evaluation and sample, in the order they happened.
#pragma once
#include <cstdio>
#include <string>

#include <nlohmann/json.hpp>

#include "train/loss_plot.h"

namespace liuli {

/// Appends; a line is with the system when write() returns. Errors: io_error.
class TrainingLog {
 public:
  /// Goes on with what is there up to `step` (what a killed run wrote after its checkpoint comes again); curves() then
  /// has it. step 0: begins anew.
  TrainingLog(const std::string& path, int64_t step);
  ~TrainingLog();
  TrainingLog(const TrainingLog&) = delete;
  TrainingLog& operator=(const TrainingLog&) = delete;

  /// {"step": …, "loss" or "held_out_loss": …, …}
  void write(const nlohmann::ordered_json& line);
  const RunCurves& curves() const { return curves_; }
  double smoothed_loss() const { return weight_ > 0 ? sum_ / weight_ : 0; }

 private:
  void take(const nlohmann::ordered_json& line);

  std::string path_;
  std::FILE* file_ = nullptr;
  RunCurves curves_;
  double sum_ = 0, weight_ = 0;  // of the moving average
};

}  // namespace liuli
