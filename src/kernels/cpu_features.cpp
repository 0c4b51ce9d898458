// x86: CPUID says what the CPU can do, XCR0 which registers the operating system saves. Compiler macros and
// CPU names say neither. (no_x86.cpp answers for other architectures.)
#include "kernels/cpu_features.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <initializer_list>

namespace liuli::kernels {
namespace {

struct Cpuid {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

/// Zeros where the CPU has no such leaf.
Cpuid cpuid(uint32_t leaf, uint32_t subleaf) noexcept {
  Cpuid r;
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

constexpr uint32_t bits(std::initializer_list<int> positions) {
  uint32_t mask = 0;
  for (int position : positions) mask |= uint32_t{1} << position;
  return mask;
}

bool has(uint32_t word, uint32_t mask) { return (word & mask) == mask; }

/// Register sets the operating system saves; 0 without OSXSAVE.
uint32_t xcr0(const Cpuid& leaf1) noexcept {
  constexpr uint32_t osxsave = bits({27});
  if (!has(leaf1.ecx, osxsave)) return 0;
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

/// Linux gives the 8 KiB of tile registers only to a process that asks (ARCH_REQ_XCOMP_PERM, feature 18 =
/// tile data).
bool tiles_granted() noexcept {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

CpuFeatures detect() noexcept {
  const Cpuid leaf1 = cpuid(1, 0), leaf7 = cpuid(7, 0), leaf7_1 = cpuid(7, leaf7.eax >= 1 ? 1 : 0);
  constexpr uint32_t ymm = bits({1, 2}), zmm = bits({5, 6, 7}), tiles = bits({17, 18});
  constexpr uint32_t fma_avx_f16c = bits({12, 28, 29});
  constexpr uint32_t bmi1_avx2_bmi2 = bits({3, 5, 8});
  constexpr uint32_t avx512_f_dq_bw_vl = bits({16, 17, 30, 31});
  constexpr uint32_t vnni = bits({11}), avx_vnni = bits({4}), bf16 = bits({5}),
                     amx_bf16_tile_int8 = bits({22, 24, 25});
  const uint32_t saved = xcr0(leaf1);

  CpuFeatures f;
  f.avx2 = has(saved, ymm) && has(leaf1.ecx, fma_avx_f16c) && has(leaf7.ebx, bmi1_avx2_bmi2);
  f.avxvnni = f.avx2 && leaf7.eax >= 1 && has(leaf7_1.eax, avx_vnni);
  f.avx512 = f.avx2 && has(saved, zmm) && has(leaf7.ebx, avx512_f_dq_bw_vl) && has(leaf7.ecx, vnni);
  f.avx512_bf16 = f.avx512 && leaf7.eax >= 1 && has(leaf7_1.eax, bf16);
  f.amx = f.avx512_bf16 && has(saved, tiles) && has(leaf7.edx, amx_bf16_tile_int8) && tiles_granted();
  return f;
}

}  // namespace

const CpuFeatures& cpu_features() noexcept {
  static const CpuFeatures features = detect();
  return features;
}

}  // namespace liuli::kernels
