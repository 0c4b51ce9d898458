// The most arithmetic each level can do: loops of one instruction over registers, nothing else.
#pragma once
#include <cstdint>

#include "kernels/kernels.h"

namespace liuli::kernels {

/// What a roof is made of. A multiplication and an addition count as two operations.
struct PeakLoop {
  const char* name;      ///< "f32 FMA", "bf16 dot products", "int8 dot products", "bf16 tiles", "int8 tiles"
  double ops_per_round;  ///< operations of one round
  void (*run)(int64_t rounds) noexcept;
};

/// What a level has of its own; the levels below it have theirs.
struct PeakTable {
  const PeakLoop* loops = nullptr;
  int n = 0;
};

/// Of one level; empty for a level that this machine lacks.
PeakTable peak_loops(Isa isa) noexcept;

// What the folders contribute; null on other architectures.
PeakTable peaks_scalar() noexcept;
PeakTable peaks_avx2() noexcept;
PeakTable peaks_avxvnni() noexcept;
PeakTable peaks_avx512() noexcept;
PeakTable peaks_avx512_bf16() noexcept;
PeakTable peaks_amx() noexcept;
PeakTable peaks_neon() noexcept;

}  // namespace liuli::kernels
