// What a trace keeps of a run: values by name, whole or cut down to some layers, heads and positions.
#pragma once
#include <string>
#include <vector>

#include "liuli/trace.h"
#include "model/point.h"

namespace liuli {

/// One value to be kept, or a part of it.
struct Capture {
  Place place;
  std::string name;  ///< "blocks.3.attn.pattern", with the slice if it has one of its own
  std::vector<int64_t> full_shape, shape;  ///< of the value; of what is kept (an axis cut to one index by its
                                           ///< number alone is gone)
  std::vector<std::vector<int64_t>> kept;  ///< per axis of full_shape, ascending

  int64_t elements() const;
};

/// The captures that patterns ask for: names, aliases and wildcards as select_places() knows them, each perhaps with a
/// slice in brackets ("blocks.*.attn.pattern[:,2,:5]": every axis in order, the last ones may be left out), cut down
/// further by `slices`. Errors: not_found, invalid_argument.
std::vector<Capture> select_captures(const ModelConfig& config, const std::vector<std::string>& patterns,
                                     const TraceSlices& slices, TokenCounts counts);

/// The whole of each place.
std::vector<Capture> whole_captures(const ModelConfig& config, const std::vector<Place>& places,
                                    TokenCounts counts);

}  // namespace liuli
