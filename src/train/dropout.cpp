#include "train/dropout.h"

#include "core/rng.h"

namespace liuli {

bool Dropout::drops(const Place& place) const {
  if (rate <= 0) return false;
  return place.point == Point::attn_out || place.point == Point::mlp_out ||
         place.point == Point::cross_attn_out || (place.point == Point::resid_pre && place.layer == 0);
}

void Dropout::apply(OpContext& c, const Place& place, Rows x) const {
  const auto kept = static_cast<float>(1 / (1 - rate));
  const uint64_t where = (static_cast<uint64_t>(place.layer + 1) << 16) |
                         (static_cast<uint64_t>(place.stack) << 8) | static_cast<uint64_t>(place.point);
  for_each_row(c, x.n, [&](int64_t i) {
    Rng rng(seed + static_cast<uint64_t>(step), (where << 32) + static_cast<uint64_t>(i));
    for (int64_t j = 0; j < x.width; j++) x.row(i)[j] = rng.uniform() < rate ? 0.0f : x.row(i)[j] * kept;
  });
}

}  // namespace liuli
