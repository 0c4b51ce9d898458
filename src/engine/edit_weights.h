// A row of a weight matrix exchanged while a model runs.
#pragma once
#include <functional>
#include <vector>

#include "liuli/edit.h"
#include "liuli/engine.h"

namespace liuli {

/// Hooks that add (new − old) · x to the row's output, x being what the matrix multiplies; `applied` hears how many tokens
/// were changed. prompt: its tokens (a row of the embedding is used by the tokens of that id).
/// Errors: not_found, invalid_argument, unsupported (a matrix whose input or output has no point).
std::vector<Hook> weight_hooks(Engine& engine, const Edit& edit, const std::vector<int>& prompt,
                               int n_generated, std::function<void(int64_t)> applied);

}  // namespace liuli
