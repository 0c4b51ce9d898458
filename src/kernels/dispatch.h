// Choosing a level by name: what best_kernels() does with LIULI_ISA, open to tests.
#pragma once
#include <string>
#include <string_view>

#include "kernels/kernels.h"

namespace liuli::kernels {

/// The table of the level called `name`; empty means the best one. Throws Error invalid_argument, naming the
/// value and what this machine has, for a name that is unknown or a level this machine lacks.
const Kernels& kernels_named(std::string_view name);

/// The levels of this machine, best last: "scalar, avx2, avx512".
std::string available_isas();

}  // namespace liuli::kernels
