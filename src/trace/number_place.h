// "blocks.3.attn.pattern[2,5,1]": one number of one value.
#pragma once
#include <string>
#include <vector>

#include "liuli/config.h"
#include "model/point.h"

namespace liuli {

struct NumberPlace {
  Place place;
  std::vector<int64_t> index;  ///< every one from 0, within the shape
};

/// A name with its index; negative indices count from the end. Errors: not_found for a name the model lacks (naming the
/// nearest), invalid_argument for an index that is missing, malformed or outside the shape (which is printed).
NumberPlace parse_number_place(const ModelConfig& config, const std::string& text, TokenCounts counts);

/// The same as text.
std::string number_name(const Place& place, const std::vector<int64_t>& index);

/// "[n_tokens 8, n_heads 4, head_dim 16]"
std::string shape_text(const ModelConfig& config, const Place& place, TokenCounts counts);

/// Whether a value is one of [head][token][key] numbers.
bool is_score_like(Point point);

}  // namespace liuli
