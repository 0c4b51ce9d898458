// What each ISA folder contributes; dispatch.cpp assembles these into one Kernels table per level.
// Folders of another architecture are stood in for by no_x86.cpp and no_neon.cpp, which give null.
#pragma once
#include "kernels/kernels.h"

namespace liuli::kernels {

struct WeightTable {
  WeightKernels by_type[kDTypeCount];
};

const WeightTable* weights_scalar() noexcept;
const WeightTable* weights_avx2() noexcept;
const WeightTable* weights_avxvnni() noexcept;
const WeightTable* weights_avx512() noexcept;  ///< avx512, avx512_bf16 and amx share it
const WeightTable* weights_neon() noexcept;

QuantizeRows quantize_x16_scalar() noexcept;
QuantizeRows quantize_x16_avx2() noexcept;
QuantizeRows quantize_x16_avx512() noexcept;

const PromptKernels* prompt_scalar() noexcept;
const PromptKernels* prompt_avx2() noexcept;
const PromptKernels* prompt_avx512() noexcept;       ///< f32 FMA
const PromptKernels* prompt_avx512_bf16() noexcept;  ///< vdpbf16ps
const PromptKernels* prompt_amx() noexcept;          ///< tdpbf16ps
const PromptKernels* prompt_neon() noexcept;

const PromptKernels* prompt_fixed16_scalar() noexcept;
const PromptKernels* prompt_fixed16_avx2() noexcept;     ///< vpmaddwd
const PromptKernels* prompt_fixed16_avxvnni() noexcept;  ///< vpdpwssd
const PromptKernels* prompt_fixed16_avx512() noexcept;   ///< vpdpwssd; avx512_bf16 and amx share it

const PromptKernels* prompt_int8_scalar() noexcept;
const PromptKernels* prompt_int8_avx2() noexcept;
const PromptKernels* prompt_int8_avxvnni() noexcept;  ///< vpdpbusd
const PromptKernels* prompt_int8_avx512() noexcept;   ///< vpdpbusd; avx512_bf16 and amx share it

const AttentionKernels* attention_scalar() noexcept;
const AttentionKernels* attention_avx2() noexcept;
const AttentionKernels* attention_avx512() noexcept;
const AttentionKernels* attention_avx512_bf16() noexcept;
const AttentionKernels* attention_amx() noexcept;
const AttentionKernels* attention_neon() noexcept;
const AttentionKernels* attention_f16_scalar() noexcept;  ///< f16 pages
const AttentionKernels* attention_f16_avx2() noexcept;
const AttentionKernels* attention_f16_avx512() noexcept;  ///< avx512_bf16 and amx share it
const AttentionKernels* attention_f16_neon() noexcept;
const AttentionKernels* attention_f32_scalar() noexcept;  ///< plain f32 pages

/// Attention over pages of codes.
struct CodeAttention {
  const AttentionKernels *q8_0 = nullptr, *q4_0 = nullptr;
};
CodeAttention attention_codes_scalar() noexcept;
CodeAttention attention_codes_avx2() noexcept;
CodeAttention attention_codes_avx512() noexcept;
CodeAttention attention_codes_avx512_bf16() noexcept;
CodeAttention attention_codes_amx() noexcept;
CodeAttention attention_codes_neon() noexcept;

const RowKernels* rows_scalar() noexcept;
/// The Highway code compiled for a level's target, or null where the level adds none. For levels of this machine only.
const RowKernels* rows_highway(Isa isa) noexcept;

const GemmKernel* gemm_scalar() noexcept;
const GemmKernel* gemm_highway(Isa isa) noexcept;  ///< as rows_highway

const GemmKernel* gemm_bf16_scalar() noexcept;
const GemmKernel* gemm_bf16_highway(Isa isa) noexcept;  ///< f32 FMA over rounded operands
const GemmKernel* gemm_bf16_avx512() noexcept;          ///< vdpbf16ps
const GemmKernel* gemm_bf16_amx() noexcept;             ///< tdpbf16ps

const AttentionKernels* attention_f32_highway(Isa isa) noexcept;  ///< as rows_highway

}  // namespace liuli::kernels
