// Not x86: one copy of rowwise.cpp, gemm.cpp and attention_f32.cpp for the compiler's best target (NEON on aarch64), used by
// every level there is.
#include "hwy/highway.h"
#include "kernels/cpu_features.h"
#include "kernels/isa_tables.h"

namespace liuli::kernels {

namespace HWY_NAMESPACE {
const RowKernels* row_table() noexcept;
const GemmKernel* gemm_table() noexcept;
const GemmKernel* gemm_bf16_table() noexcept;
const AttentionKernels* attention_f32_table() noexcept;
}  // namespace HWY_NAMESPACE

namespace {
bool of_this_machine(Isa isa) { return isa == Isa::scalar || (isa == Isa::neon && cpu_features().neon); }
}  // namespace

const RowKernels* rows_highway(Isa isa) noexcept {
  return of_this_machine(isa) ? HWY_NAMESPACE::row_table() : nullptr;
}

const GemmKernel* gemm_highway(Isa isa) noexcept {
  return of_this_machine(isa) ? HWY_NAMESPACE::gemm_table() : nullptr;
}

const GemmKernel* gemm_bf16_highway(Isa isa) noexcept {
  return of_this_machine(isa) ? HWY_NAMESPACE::gemm_bf16_table() : nullptr;
}

const AttentionKernels* attention_f32_highway(Isa isa) noexcept {
  return of_this_machine(isa) ? HWY_NAMESPACE::attention_f32_table() : nullptr;
}

}  // namespace liuli::kernels
