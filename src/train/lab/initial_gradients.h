// Every block's gradient before anything has been learned, for each place of the norms.
#pragma once
#include <vector>

#include "train/lab/experiments.h"
#include "train/lab/stack.h"

namespace liuli::lab {

constexpr Placement kPlacements[] = {Placement::pre, Placement::post, Placement::sandwich,
                                     Placement::deepnorm};

struct AtStart {
  Placement placement;
  int64_t depth;
  std::vector<double> w2, stream;  // means over the seeds, by block
  double last_square = 0;          // mean ‖x‖² / d of what leaves the last block
};

/// Every placement at depths 6 … 96 (quick: 6 and 24), several seeds each: an encoder without mask on 16 rows of unit
/// variance, width 128, relu, Xavier normal, random targets of 64 classes.
std::vector<AtStart> measure_at_start(const Bench& bench);
const AtStart& at_start(const std::vector<AtStart>& all, Placement placement, int64_t depth);

/// The table and the picture, and a note with the picture in numbers.
void show_start(const std::vector<AtStart>& found, LabReport& report);
void describe_start(const std::vector<AtStart>& found, LabReport& report);

}  // namespace liuli::lab
