// Muon's update: momentum with all its directions made equally long.
#pragma once
#include <cstdint>

#include "ops/context.h"

namespace liuli {

/// G becomes nearly U Vᵀ of its singular value decomposition G = U S Vᵀ: five steps of
///   X ← aX + (bA + cA²) X,  A = X Xᵀ,  (a, b, c) = (3.4445, −4.7750, 2.0315),
/// from X = G / ‖G‖. Singular values end between 0.7 and 1.2, which is what its author chose: larger ones are not
/// waited for. A zero matrix stays zero. Independent of the number of threads.
/// Shapes: g [rows, columns], dense.   Source: Jordan et al. 2024, "Muon".
void orthogonalise(OpContext& c, float* g, int64_t rows, int64_t columns);

}  // namespace liuli
