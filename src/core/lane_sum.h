// Sums of a row in double, in an order that the compiler can use vectors for.
#pragma once
#include <cstdint>

namespace liuli {

/// Σ f(j) for j in [0, n), in eight partial sums: one addition would have to wait for the other (four cycles each).
template <class F>
double lane_sum(int64_t n, F&& f) {
  constexpr int64_t kLanes = 8;
  double sum[kLanes] = {};
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes)
    for (int64_t lane = 0; lane < kLanes; lane++) sum[lane] += static_cast<double>(f(j + lane));
  for (int64_t lane = 0; j < n; j++, lane++) sum[lane] += static_cast<double>(f(j));
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

}  // namespace liuli
