#include "train/schedule.h"

#include <algorithm>
#include <cmath>

namespace liuli {

double Schedule::rate(int64_t it) const {
  const auto step = static_cast<double>(it), warm = static_cast<double>(warm_up),
             all = static_cast<double>(steps);
  const double floor = min_factor * peak;
  if (kind == ScheduleKind::noam && warm_up > 0)
    return peak * std::min((step + 1) / warm, std::sqrt(warm / (step + 1)));
  if (it < warm_up) return peak * (step + 1) / warm;
  const double done = all > warm ? std::min(1.0, (step - warm) / (all - warm)) : 1;
  switch (kind) {
    case ScheduleKind::cosine:
      return floor + 0.5 * (1 + std::cos(M_PI * done)) * (peak - floor);
    case ScheduleKind::linear:
      return peak + done * (floor - peak);
    case ScheduleKind::wsd: {
      const double begin = all * (1 - decay_fraction);
      return step < begin ? peak : peak + std::min(1.0, (step - begin) / (all - begin)) * (floor - peak);
    }
    case ScheduleKind::constant:
    case ScheduleKind::noam:
      break;
  }
  return peak;
}

}  // namespace liuli
