// What a person sees of a run: one line that rewrites itself on a terminal, plain lines elsewhere.
#pragma once
#include <chrono>
#include <string>

#include "liuli/train.h"

namespace liuli::cli {

class TrainDisplay {
 public:
  TrainDisplay();
  ~TrainDisplay();
  TrainDisplay(const TrainDisplay&) = delete;
  TrainDisplay& operator=(const TrainDisplay&) = delete;

  void plan(const TrainPlan& plan);
  void step(const TrainProgress& progress);
  void evaluation(int64_t step, double loss);
  void sample(int64_t step, const std::string& text);
  void checkpoint(int64_t step, const std::string& path);
  void note(const std::string& text);  ///< a whole line
  void clear();                        ///< takes the rewriting line away

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_, drawn_ = false;
  Clock::time_point last_draw_;
};

}  // namespace liuli::cli
