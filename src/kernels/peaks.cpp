#include "kernels/peaks.h"

namespace liuli::kernels {

PeakTable peak_loops(Isa isa) noexcept {
  if (kernels_for(isa) == nullptr) return {};
  switch (isa) {
    case Isa::scalar:
      return peaks_scalar();
    case Isa::avx2:
      return peaks_avx2();
    case Isa::avxvnni:
      return peaks_avxvnni();
    case Isa::avx512:
      return peaks_avx512();
    case Isa::avx512_bf16:
      return peaks_avx512_bf16();
    case Isa::amx:
      return peaks_amx();
    case Isa::neon:
      return peaks_neon();
  }
  return {};
}

}  // namespace liuli::kernels
