// Peaks of 256-bit registers. Twelve sums hide the instructions' latency (4 cycles, two per cycle) and leave room for the
// operands.
#include <immintrin.h>

#include "kernels/peaks.h"

namespace liuli::kernels {
namespace {

constexpr int kSums = 12;

void fma_f32(int64_t rounds) noexcept {
  __m256 sums[kSums] = {};
  for (__m256& sum : sums) asm volatile("" : "+x"(sum));  // equal sums would become one
  __m256 a = _mm256_set1_ps(0.5f), b = _mm256_set1_ps(1.0f);
  for (int64_t i = 0; i < rounds; i++) {
    asm volatile("" : "+x"(a), "+x"(b));  // so that no round can be computed ahead
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, a, b);
  }
  for (__m256& sum : sums) asm volatile("" : : "x"(sum));
}

// Without VNNI a product of bytes is three instructions: pairs to 16 bits, fours to 32 bits, and the sum.
void dot_int8(int64_t rounds) noexcept {
  __m256i sums[kSums] = {};
  for (__m256i& sum : sums) asm volatile("" : "+x"(sum));  // equal sums would become one
  __m256i codes = _mm256_set1_epi8(3), values = _mm256_set1_epi8(-5), ones = _mm256_set1_epi16(1);
  for (int64_t i = 0; i < rounds; i++)
    for (__m256i& sum : sums) {
      asm volatile("" : "+x"(codes), "+x"(values));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(codes, values), ones));
    }
  for (__m256i& sum : sums) asm volatile("" : : "x"(sum));
}

constexpr PeakLoop kLoops[] = {{"f32 FMA", 2.0 * 8 * kSums, fma_f32},
                               {"int8 dot products", 2.0 * 32 * kSums, dot_int8}};

}  // namespace

PeakTable peaks_avx2() noexcept { return {kLoops, 2}; }

}  // namespace liuli::kernels
