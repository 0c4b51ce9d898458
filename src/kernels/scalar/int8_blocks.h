// 8-bit blocks in plain loops: the reference for every level, and what explanations compute with.
#pragma once
#include "kernels/int8_blocks.h"

namespace liuli::kernels {

/// A block of n ≤ 32 activations (zeros beyond): its 32 integers. Returns its scale.
float int8_block(const float* x, int n, int8_t* q) noexcept;
/// The same, put into lane `row` of a block's lines.
void int8_store(const float* x, int n, int row, int8_t* lines) noexcept;

/// 32 weights of a row as they multiply: codes without offset, a scale (and minimum) per half; with one per block, of the
/// first half.
struct Int8Weights {
  int8_t code[kInt8Block];
  float scale[2], minimum[2];
};
/// Into lane `row` of a block's lines.
void int8_store(const Int8Weights& w, bool two_scales, bool has_minimum, int row, int8_t* lines) noexcept;

}  // namespace liuli::kernels
