// Experts taken away from tokens, or exchanged.
#pragma once
#include <functional>
#include <vector>

#include "engine/edit_places.h"
#include "liuli/hook.h"

namespace liuli {

/// The weight of the expert at edit.at becomes 0 for these tokens, the others' grow if the edit says so. `count` hears how
/// many tokens it was taken from. Errors: not_found, invalid_argument.
std::vector<Hook> drop_hooks(const ModelConfig& config, const Edit& edit, const AxisChoice& tokens,
                             std::function<void(int64_t)> count);
/// These tokens' way through the expert leads through edit.to_expert, unless they go there already.
std::vector<Hook> reroute_hooks(const ModelConfig& config, const Edit& edit, const AxisChoice& tokens,
                                std::function<void(int64_t)> count);

}  // namespace liuli
