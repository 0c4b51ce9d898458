// Peaks of 256-bit registers. Twelve sums hide the instructions' latency (4 cycles, two per cycle) and leave room for the
// operands.
#include <immintrin.h>

#include "kernels/peak_rounds.h"
#include "kernels/peaks.h"

namespace liuli::kernels {
namespace {

constexpr int kSums = 12;

struct Avx2 {
  static void hide(__m256& value) { asm volatile("" : "+x"(value)); }
  static void hide(__m256i& value) { asm volatile("" : "+x"(value)); }
};

void fma_f32(int64_t rounds) noexcept {
  run_rounds<Avx2, kSums>(rounds, _mm256_setzero_ps(), _mm256_set1_ps(0.5f), _mm256_set1_ps(1.0f),
                          [](__m256 sum, __m256 a, __m256 b) { return _mm256_fmadd_ps(sum, a, b); });
}

// Without VNNI a product of bytes is three instructions: pairs to 16 bits, fours to 32 bits, and the sum.
void dot_int8(int64_t rounds) noexcept {
  const __m256i ones = _mm256_set1_epi16(1);
  run_rounds<Avx2, kSums>(
      rounds, _mm256_setzero_si256(), _mm256_set1_epi8(3), _mm256_set1_epi8(-5),
      [ones](__m256i sum, __m256i codes, __m256i values) {
        Avx2::hide(codes);  // the product does not depend on the sum: it must not be shared
        const __m256i pairs = _mm256_maddubs_epi16(codes, values);
        return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
      });
}

constexpr PeakLoop kLoops[] = {{"f32 FMA", 2.0 * 8 * kSums, fma_f32},
                               {"int8 dot products", 2.0 * 32 * kSums, dot_int8}};

}  // namespace

PeakTable peaks_avx2() noexcept { return {kLoops, 2}; }

}  // namespace liuli::kernels
