// The residual stream as a sum, and the coordinates of it that stand out.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "liuli/attribution.h"

namespace liuli {

/// Some rows of one value of the stream: [n, width], one per position.
struct StreamRows {
  std::string name;
  int layer;
  std::span<const float> values;
};

/// The ledger of `terms` (as they enter the sum) against the last stream.
/// Shapes: every value [positions.size(), width].
LedgerReport make_ledger(const std::vector<int>& positions, const std::vector<StreamRows>& terms,
                         const StreamRows& final, const std::vector<int>& coordinates);

/// Coordinates whose |value| is at least `ratio` times the median |value| of their row, over the streams after each block
/// in order; one entry per position and coordinate. `terms` tell who wrote them.
std::vector<MassiveActivation> find_massive(const std::vector<int>& positions,
                                            const std::vector<StreamRows>& streams,
                                            const std::vector<StreamRows>& terms, double ratio);

}  // namespace liuli
