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

// Without VNNI a product of pairs is two instructions, the product and the sum; of bytes, too, where the sums fit 16 bits. In
// assembly: products do not depend on the sums, GCC would share them. Few sums, whose additions take a cycle: the products issue two
// per cycle.
constexpr int kIntegerSums = 8;

void dot_int16(int64_t rounds) noexcept {
  run_rounds<Avx2, kIntegerSums>(
      rounds, _mm256_setzero_si256(), _mm256_set1_epi16(3), _mm256_set1_epi16(-5),
      [](__m256i sum, __m256i codes, __m256i values) {
        __m256i product;
        asm volatile("vpmaddwd %2, %1, %0" : "=x"(product) : "x"(codes), "x"(values));
        asm("vpaddd %1, %0, %0" : "+x"(sum) : "x"(product));
        return sum;
      });
}

void dot_int8(int64_t rounds) noexcept {
  run_rounds<Avx2, kIntegerSums>(
      rounds, _mm256_setzero_si256(), _mm256_set1_epi8(3), _mm256_set1_epi8(-5),
      [](__m256i sum, __m256i codes, __m256i values) {
        __m256i product;
        asm volatile("vpmaddubsw %2, %1, %0" : "=x"(product) : "x"(codes), "x"(values));
        asm("vpaddw %1, %0, %0" : "+x"(sum) : "x"(product));
        return sum;
      });
}

constexpr PeakLoop kLoops[] = {{"f32 FMA", 2.0 * 8 * kSums, fma_f32},
                               {"int16 dot products", 2.0 * 16 * kIntegerSums, dot_int16},
                               {"int8 dot products", 2.0 * 32 * kIntegerSums, dot_int8}};

}  // namespace

PeakTable peaks_avx2() noexcept { return {kLoops, 3}; }

}  // namespace liuli::kernels
