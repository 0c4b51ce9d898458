// Products of plain arrays, split among threads: what backward passes and training are made of.
#pragma once
#include "ops/context.h"

namespace liuli {

/// What plain arrays are multiplied with here: in f32, or with operands rounded to bf16.
const kernels::GemmKernel& gemm_kernel(const OpContext& c);

/// C = A · B, or added to C. An output's bits depend on its row, its column and k only: not on threads.
void gemm(OpContext& c, const kernels::GemmArgs& args);

}  // namespace liuli
