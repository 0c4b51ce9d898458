// Attention over 16-bit pages by AVX-512 f32 FMA: the scalar level's bits.
#include "kernels/attention_codes.h"
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

CodeAttention attention_codes_avx512() noexcept {
  using Dots = F32Dots<Avx512Lanes, Bf16Pages, 8, 2>;
  static constexpr AttentionKernels q8_0 =
      CodeAttentionOf<Dots, Q8Pages, CodeDots<Avx512Lanes, Codes8, 8, 2>>::table("Q8_0 pages, AVX-512");
  static constexpr AttentionKernels q4_0 =
      CodeAttentionOf<Dots, Q4Pages, CodeDots<Avx512Lanes, Codes4, 8, 2>>::table("Q4_0 pages, AVX-512");
  return {&q8_0, &q4_0};
}

}  // namespace liuli::kernels
