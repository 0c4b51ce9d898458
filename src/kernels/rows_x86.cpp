// Which compiled copy of rowwise.cpp, gemm.cpp and attention_f32.cpp belongs to which level: chosen here, so that LIULI_ISA rules and
// Highway's own run-time choice (always the best target) stays out.
#include "kernels/cpu_features.h"
#include "kernels/isa_tables.h"

namespace liuli::kernels {

namespace N_AVX2 {
const RowKernels* row_table() noexcept;
const GemmKernel* gemm_table() noexcept;
const GemmKernel* gemm_bf16_table() noexcept;
AttentionKernels attention_f32_table() noexcept;
}  // namespace N_AVX2
namespace N_AVX3 {  // Highway's name for AVX-512 F BW DQ VL
const RowKernels* row_table() noexcept;
const GemmKernel* gemm_table() noexcept;
const GemmKernel* gemm_bf16_table() noexcept;
AttentionKernels attention_f32_table() noexcept;
}  // namespace N_AVX3

const RowKernels* rows_highway(Isa isa) noexcept {
  if (isa == Isa::scalar || isa == Isa::neon) return nullptr;
  if (isa == Isa::avx2) return cpu_features().avx2 ? N_AVX2::row_table() : nullptr;
  return cpu_features().avx512 ? N_AVX3::row_table() : nullptr;
}

const GemmKernel* gemm_highway(Isa isa) noexcept {
  if (isa == Isa::scalar || isa == Isa::neon) return nullptr;
  if (isa == Isa::avx2) return cpu_features().avx2 ? N_AVX2::gemm_table() : nullptr;
  return cpu_features().avx512 ? N_AVX3::gemm_table() : nullptr;
}

const GemmKernel* gemm_bf16_highway(Isa isa) noexcept {
  if (isa == Isa::scalar || isa == Isa::neon) return nullptr;
  if (isa == Isa::avx2) return cpu_features().avx2 ? N_AVX2::gemm_bf16_table() : nullptr;
  return cpu_features().avx512 ? N_AVX3::gemm_bf16_table() : nullptr;
}

const AttentionKernels* attention_f32_highway(Isa isa) noexcept {
  static const AttentionKernels avx2 = N_AVX2::attention_f32_table(), avx512 = N_AVX3::attention_f32_table();
  if (isa == Isa::scalar || isa == Isa::neon) return nullptr;
  if (isa == Isa::avx2) return cpu_features().avx2 ? &avx2 : nullptr;
  return cpu_features().avx512 ? &avx512 : nullptr;
}

}  // namespace liuli::kernels
