// What prompts multiply weights by, where an instruction set has a better way than the shared templates.
#pragma once
#include "kernels/isa_tables.h"

namespace liuli::kernels {

/// avx512's with tiles rounded by AVX512_BF16; amx shares it. Null on other architectures.
const WeightTable* weights_avx512_bf16() noexcept;
void set_expand_avx512_bf16(WeightTable& table) noexcept;
/// expand_fixed16 of F16.
void set_expand_fixed16_avx512(WeightTable& table) noexcept;

}  // namespace liuli::kernels
