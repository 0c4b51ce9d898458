// Which points a user asked for: names, aliases and wildcards against what this model has.
#pragma once
#include <string>
#include <vector>

#include "liuli/config.h"
#include "model/point.h"

namespace liuli {

struct PointPlace {
  Point point;
  int layer;  ///< −1 outside the blocks
  std::string name() const { return point_name(point, layer); }
};

/// Every place of a model in the order a token meets them; points its family lacks are left out.
std::vector<PointPlace> all_places(const ModelConfig& config);

/// The places that match any of the patterns ("blocks.*.resid_post", "blocks.3.attn.hook_pattern", "*": any
/// characters), each once, in the model's order. Errors: not_found for a pattern that matches nothing, naming
/// the nearest points.
std::vector<PointPlace> select_places(const ModelConfig& config, const std::vector<std::string>& patterns);

/// The shape of a place for n tokens.
std::vector<int64_t> place_shape(const ModelConfig& config, Point point, int64_t n_tokens);

}  // namespace liuli
