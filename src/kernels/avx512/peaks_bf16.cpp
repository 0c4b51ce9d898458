// The peak of vdpbf16ps: two products of bf16 per f32 lane.
#include <immintrin.h>

#include "kernels/peaks.h"

namespace liuli::kernels {
namespace {

constexpr int kSums = 16;

void dot_bf16(int64_t rounds) noexcept {
  __m512 sums[kSums] = {};
  for (__m512& sum : sums) asm volatile("" : "+v"(sum));  // equal sums would become one
  const __m512i ones = _mm512_set1_epi16(0x3f80);         // 1 in bf16
  __m512bh a = (__m512bh)ones, b = (__m512bh)ones;
  for (int64_t i = 0; i < rounds; i++) {
    asm volatile("" : "+v"(a), "+v"(b));  // so that no round can be computed ahead
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, a, b);
  }
  for (__m512& sum : sums) asm volatile("" : : "v"(sum));
}

constexpr PeakLoop kLoops[] = {{"bf16 dot products", 2.0 * 32 * kSums, dot_bf16}};

}  // namespace

PeakTable peaks_avx512_bf16() noexcept { return {kLoops, 1}; }

}  // namespace liuli::kernels
