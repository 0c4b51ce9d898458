// The peak of vdpbf16ps: two products of bf16 per f32 lane.
#include <immintrin.h>

#include "kernels/peak_rounds.h"
#include "kernels/peaks.h"

namespace liuli::kernels {
namespace {

constexpr int kSums = 16;

struct Avx512Bf16 {
  static void hide(__m512& value) { asm volatile("" : "+v"(value)); }
  static void hide(__m512bh& value) { asm volatile("" : "+v"(value)); }
};

void dot_bf16(int64_t rounds) noexcept {
  const __m512i ones = _mm512_set1_epi16(0x3f80);  // 1 in bf16
  run_rounds<Avx512Bf16, kSums>(
      rounds, _mm512_setzero_ps(), (__m512bh)ones, (__m512bh)ones,
      [](__m512 sum, __m512bh a, __m512bh b) { return _mm512_dpbf16_ps(sum, a, b); });
}

constexpr PeakLoop kLoops[] = {{"bf16 dot products", 2.0 * 32 * kSums, dot_bf16}};

}  // namespace

PeakTable peaks_avx512_bf16() noexcept { return {kLoops, 1}; }

}  // namespace liuli::kernels
