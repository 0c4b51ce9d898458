// f32 products of plain arrays, split among threads: what backward passes and training are made of.
#pragma once
#include "ops/context.h"

namespace liuli {

/// C = A · B, or added to C. An output's bits depend on its row, its column and k only: not on threads.
void gemm(OpContext& c, const kernels::GemmArgs& args);

/// Scratch for one thread's kernel calls of at most this size, from the arena.
float* gemm_scratch(OpContext& c, int64_t m, int64_t n, int64_t k);

}  // namespace liuli
