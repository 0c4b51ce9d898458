// Which compiled copy of rowwise.cpp, gemm.cpp and attention_f32.cpp belongs to which level: chosen here, so that LIULI_ISA rules and
// Highway's own run-time choice (always the best target) stays out.
#include "kernels/isa_tables.h"

namespace liuli::kernels {

namespace N_AVX2 {
const RowKernels* row_table() noexcept;
const GemmKernel* gemm_table() noexcept;
const GemmKernel* gemm_bf16_table() noexcept;
const AttentionKernels* attention_f32_table() noexcept;
}  // namespace N_AVX2
namespace N_AVX3 {  // Highway's name for AVX-512 F BW DQ VL
const RowKernels* row_table() noexcept;
const GemmKernel* gemm_table() noexcept;
const GemmKernel* gemm_bf16_table() noexcept;
const AttentionKernels* attention_f32_table() noexcept;
}  // namespace N_AVX3

namespace {
/// What a level has of its own. These functions are compiled for their target like the code they name: calling the other one
/// may already be an illegal instruction.
template <class Table>
Table own(Isa isa, Table (*avx2)() noexcept, Table (*avx512)() noexcept) {
  if (isa == Isa::avx2) return avx2();
  if (isa == Isa::avx512) return avx512();
  return nullptr;
}
}  // namespace

const RowKernels* rows_highway(Isa isa) noexcept { return own(isa, N_AVX2::row_table, N_AVX3::row_table); }

const GemmKernel* gemm_highway(Isa isa) noexcept { return own(isa, N_AVX2::gemm_table, N_AVX3::gemm_table); }

const GemmKernel* gemm_bf16_highway(Isa isa) noexcept {
  return own(isa, N_AVX2::gemm_bf16_table, N_AVX3::gemm_bf16_table);
}

const AttentionKernels* attention_f32_highway(Isa isa) noexcept {
  return own(isa, N_AVX2::attention_f32_table, N_AVX3::attention_f32_table);
}

}  // namespace liuli::kernels
