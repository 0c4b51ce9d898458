// What this machine's CPU and operating system allow, asked once at run time.
#pragma once

namespace liuli::kernels {

/// One flag per level of Isa above scalar; each of x86 includes the ones before it, but avxvnni is
/// no part of those behind it.
struct CpuFeatures {
  bool avx2 = false;         ///< AVX2, FMA, F16C, BMI1, BMI2
  bool avxvnni = false;      ///< AVX-VNNI: VNNI in 256-bit registers, on CPUs with and without AVX-512
  bool avx512 = false;       ///< AVX-512 F, BW, DQ, VL, VNNI
  bool avx512_bf16 = false;  ///< AVX512_BF16
  bool amx = false;          ///< AMX tile, int8, bf16, and Linux granted this process the tile registers
  bool neon = false;         ///< 64-bit Arm with the dot product (ARMv8.2 and later)
};

/// The features of this machine. The first call asks Linux for the tile registers (a permission per process).
const CpuFeatures& cpu_features() noexcept;

}  // namespace liuli::kernels
