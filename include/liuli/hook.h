// Changing values while a model runs.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace liuli {

/// A value on its way, where it lies: what a hook writes takes effect. A pass covers some tokens of the prompt, or one
/// generated token; index 0 of the token axis is position first_position.
struct HookValue {
  const std::string& name;  ///< "blocks.3.attn.pattern"
  float* data;
  const std::vector<int64_t>&
      shape;  ///< as `points` prints it, with this pass's tokens (and the keys so far)
  const std::vector<int64_t>& strides;  ///< in floats, per index of the shape
  int first_position;
  /// Values of one expert exist for some tokens only: row i is of the pass's token tokens[i]. Else null.
  const int* tokens;

  float& at(const std::vector<int64_t>& index) const {
    float* place = data;
    for (size_t i = 0; i < index.size(); i++) place += index[i] * strides[i];
    return *place;
  }
};

/// Called for every value whose name matches one of `points` (names, aliases, wildcards), in the order a token meets them;
/// several hooks on one value in the order they are given.
struct Hook {
  std::vector<std::string> points;
  std::function<void(const HookValue&)> call;
};

}  // namespace liuli
