// Weight tables that differ from the level below only by how bf16 tiles are made.
#pragma once
#include "kernels/isa_tables.h"

namespace liuli::kernels {

/// avx512's with tiles rounded by AVX512_BF16; amx shares it. Null on other architectures.
const WeightTable* weights_avx512_bf16() noexcept;
void set_expand_avx512_bf16(WeightTable& table) noexcept;

}  // namespace liuli::kernels
