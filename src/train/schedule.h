// How the learning rate goes over a run.
#pragma once
#include <cstdint>

namespace liuli {

enum class ScheduleKind {
  constant,
  cosine,  ///< down to min_factor · peak at the last step
  linear,  ///< down to min_factor · peak
  wsd,     ///< constant, then linear over the last decay_fraction
  noam     ///< peak · min(s / warm_up, √(warm_up / s)): the 2017 Transformer's, with its peak named
};

struct Schedule {
  ScheduleKind kind = ScheduleKind::cosine;
  double peak = 3e-4, min_factor = 0.1, decay_fraction = 0.2;
  int64_t warm_up = 0, steps = 1;

  /// The rate of step `it`, from 0: peak · (it + 1) / warm_up while warming up.
  double rate(int64_t it) const;
};

}  // namespace liuli
