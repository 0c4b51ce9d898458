// The plainest product: one fused multiply-add per term, as the vector code has it.
#include <cmath>

#include "kernels/isa_tables.h"

namespace liuli::kernels {
namespace {

size_t scratch_floats(int64_t, int64_t, int64_t) noexcept { return 0; }

void multiply(const GemmArgs& g, float*) noexcept {
  for (int64_t i = 0; i < g.m; i++)
    for (int64_t j = 0; j < g.n; j++) {
      float sum = g.accumulate ? g.c[i * g.c_row + j] : 0.0f;
      for (int64_t k = 0; k < g.k; k++)
        sum = std::fma(g.a[i * g.a_m + k * g.a_k], g.b[k * g.b_k + j * g.b_n], sum);
      g.c[i * g.c_row + j] = sum;
    }
}

constexpr GemmKernel kTable = {scratch_floats, multiply};

}  // namespace

const GemmKernel* gemm_scalar() noexcept { return &kTable; }

}  // namespace liuli::kernels
