// Tables of x86 files that are not written yet; each line goes away with the file that defines it.
#include "kernels/isa_tables.h"

namespace liuli::kernels {

const WeightTable* weights_avx2() noexcept { return nullptr; }
const WeightTable* weights_avx512() noexcept { return nullptr; }

QuantizeRows quantize_x16_avx2() noexcept { return nullptr; }
QuantizeRows quantize_x16_avx512() noexcept { return nullptr; }

const PromptKernels* prompt_avx2() noexcept { return nullptr; }
const PromptKernels* prompt_avx512() noexcept { return nullptr; }
const PromptKernels* prompt_avx512_bf16() noexcept { return nullptr; }
const PromptKernels* prompt_amx() noexcept { return nullptr; }

const AttentionKernels* attention_avx2() noexcept { return nullptr; }
const AttentionKernels* attention_avx512() noexcept { return nullptr; }
const AttentionKernels* attention_avx512_bf16() noexcept { return nullptr; }
const AttentionKernels* attention_amx() noexcept { return nullptr; }

}  // namespace liuli::kernels
