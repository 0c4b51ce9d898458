// Attention over 16-bit pages by AVX-512 f32 FMA: the scalar level's bits.
#include "kernels/attention_f32_dots.h"
#include "kernels/avx512/attention_lanes.h"
#include "kernels/isa_tables.h"

namespace liuli::kernels {

const AttentionKernels* attention_avx512() noexcept {
  static constexpr AttentionKernels kernels = BlockedAttention<F32Dots<Avx512Lanes, Bf16Pages, 8, 2>>::table(
      "bf16 pages, f32 fused multiply-add, AVX-512");
  return &kernels;
}

const AttentionKernels* attention_f16_avx512() noexcept {
  static constexpr AttentionKernels kernels = BlockedAttention<F32Dots<Avx512Lanes, F16Pages, 8, 2>>::table(
      "f16 pages, f32 fused multiply-add, AVX-512");
  return &kernels;
}

}  // namespace liuli::kernels
