// Stands in for the x86 files on other architectures: every table absent.
#include "kernels/isa_tables.h"
#include "kernels/peaks.h"
#include "kernels/weights_bf16.h"

namespace liuli::kernels {

const WeightTable* weights_avx2() noexcept { return nullptr; }
const WeightTable* weights_avxvnni() noexcept { return nullptr; }
const WeightTable* weights_avx512() noexcept { return nullptr; }
const WeightTable* weights_avx512_bf16() noexcept { return nullptr; }

QuantizeRows quantize_x16_avx2() noexcept { return nullptr; }
QuantizeRows quantize_x16_avx512() noexcept { return nullptr; }

const PromptKernels* prompt_avx2() noexcept { return nullptr; }
const PromptKernels* prompt_avx512() noexcept { return nullptr; }
const PromptKernels* prompt_avx512_bf16() noexcept { return nullptr; }
const PromptKernels* prompt_amx() noexcept { return nullptr; }
const PromptKernels* prompt_fixed16_avx2() noexcept { return nullptr; }
const PromptKernels* prompt_fixed16_avxvnni() noexcept { return nullptr; }
const PromptKernels* prompt_fixed16_avx512() noexcept { return nullptr; }
const PromptKernels* prompt_int8_avx2() noexcept { return nullptr; }
const PromptKernels* prompt_int8_avxvnni() noexcept { return nullptr; }
const PromptKernels* prompt_int8_avx512() noexcept { return nullptr; }

const GemmKernel* gemm_bf16_avx512() noexcept { return nullptr; }
const GemmKernel* gemm_bf16_amx() noexcept { return nullptr; }

const AttentionKernels* attention_avx2() noexcept { return nullptr; }
const AttentionKernels* attention_avx512() noexcept { return nullptr; }
const AttentionKernels* attention_avx512_bf16() noexcept { return nullptr; }
const AttentionKernels* attention_amx() noexcept { return nullptr; }
const AttentionKernels* attention_f16_avx2() noexcept { return nullptr; }
const AttentionKernels* attention_f16_avx512() noexcept { return nullptr; }
CodeAttention attention_codes_avx2() noexcept { return {}; }
CodeAttention attention_codes_avx512() noexcept { return {}; }
CodeAttention attention_codes_avx512_bf16() noexcept { return {}; }
CodeAttention attention_codes_amx() noexcept { return {}; }

PeakTable peaks_avx2() noexcept { return {}; }
PeakTable peaks_avxvnni() noexcept { return {}; }
PeakTable peaks_avx512() noexcept { return {}; }
PeakTable peaks_avx512_bf16() noexcept { return {}; }
PeakTable peaks_amx() noexcept { return {}; }

}  // namespace liuli::kernels
