// Python functions that change values while a model runs.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "liuli/hook.h"

namespace liuli::python {

/// (points, call): call(values, name, first_position, tokens) gets a NumPy array of its own, in the shape that `points`
/// prints, and returns an array of that shape or None (then what it left in its array counts).
using PythonHook = std::pair<std::vector<std::string>, nanobind::callable>;

/// The same as hooks of the engine: each takes the GIL while it runs, and what it raises ends the run. The callables
/// must outlive them.
std::vector<Hook> engine_hooks(const std::vector<PythonHook>& hooks);

}  // namespace liuli::python
