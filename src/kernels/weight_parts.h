// The pieces of one ISA's weight table, each in a file of its own because the templates take long to compile.
#pragma once
#include "kernels/isa_tables.h"

namespace liuli::kernels {

void set_decode_avx2(WeightTable& table) noexcept;
void set_lattice_avx2(WeightTable& table) noexcept;
void set_expand_int8_avx2(WeightTable& table) noexcept;
void set_float_avx2(WeightTable& table) noexcept;  ///< decode_f32, product_f32 and expand_bf16

void set_decode_avxvnni(WeightTable& table) noexcept;
void set_lattice_avxvnni(WeightTable& table) noexcept;

void set_decode_avx512(WeightTable& table) noexcept;
void set_lattice_avx512(WeightTable& table) noexcept;
void set_float_avx512(WeightTable& table) noexcept;
void set_expand_int8_avx512(WeightTable& table) noexcept;

void set_decode_neon(WeightTable& table) noexcept;
void set_lattice_neon(WeightTable& table) noexcept;
void set_float_neon(WeightTable& table) noexcept;

}  // namespace liuli::kernels
