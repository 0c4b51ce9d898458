// Not x86: one copy of rowwise.cpp, gemm.cpp and attention_f32.cpp for the compiler's best target (NEON on aarch64), used by the only level
// there is.
#include "hwy/highway.h"
#include "kernels/isa_tables.h"

namespace liuli::kernels {

namespace HWY_NAMESPACE {
const RowKernels* row_table() noexcept;
const GemmKernel* gemm_table() noexcept;
AttentionKernels attention_f32_table() noexcept;
}  // namespace HWY_NAMESPACE

const RowKernels* rows_highway(Isa isa) noexcept {
  return isa == Isa::scalar ? HWY_NAMESPACE::row_table() : nullptr;
}

const GemmKernel* gemm_highway(Isa isa) noexcept {
  return isa == Isa::scalar ? HWY_NAMESPACE::gemm_table() : nullptr;
}

const AttentionKernels* attention_f32_highway(Isa isa) noexcept {
  static const AttentionKernels kernels = HWY_NAMESPACE::attention_f32_table();
  return isa == Isa::scalar ? &kernels : nullptr;
}

}  // namespace liuli::kernels
