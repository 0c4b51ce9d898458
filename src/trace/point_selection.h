// Which points a user asked for: names, aliases and wildcards against what this model has.
#pragma once
#include <string>
#include <vector>

#include "liuli/config.h"
#include "model/point.h"

namespace liuli {

/// Every place of a model in the order a token meets them; points its family lacks are left out.
std::vector<Place> all_places(const ModelConfig& config);

/// The places that match any of the patterns ("blocks.*.resid_post", "blocks.3.attn.hook_pattern", "*": any
/// characters), each once, in the model's order. Errors: not_found for a pattern that matches nothing, naming
/// the nearest points.
std::vector<Place> select_places(const ModelConfig& config, const std::vector<std::string>& patterns);

}  // namespace liuli
