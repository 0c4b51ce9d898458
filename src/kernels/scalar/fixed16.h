// 16-bit fixed point in plain loops: the reference for every level, and what explanations compute with.
#pragma once
#include "kernels/fixed16.h"

namespace liuli::kernels {

/// A block of n ≤ 64 columns (zeros beyond): its 64 integers. Returns its scale.
float fixed16_block(const float* x, int n, int16_t* q) noexcept;
/// The same, put into lane `row` of a block's lines.
void fixed16_store(const float* x, int n, int row, int16_t* lines) noexcept;

}  // namespace liuli::kernels
