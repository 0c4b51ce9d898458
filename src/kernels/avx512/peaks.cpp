// Peaks of 512-bit registers: f32 FMA and VNNI.
#include <immintrin.h>

#include "kernels/peaks.h"

namespace liuli::kernels {
namespace {

constexpr int kSums = 16;

void fma_f32(int64_t rounds) noexcept {
  __m512 sums[kSums] = {};
  for (__m512& sum : sums) asm volatile("" : "+v"(sum));  // equal sums would become one
  __m512 a = _mm512_set1_ps(0.5f), b = _mm512_set1_ps(1.0f);
  for (int64_t i = 0; i < rounds; i++) {
    asm volatile("" : "+v"(a), "+v"(b));  // so that no round can be computed ahead
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, a, b);
  }
  for (__m512& sum : sums) asm volatile("" : : "v"(sum));
}

void dot_int8(int64_t rounds) noexcept {
  __m512i sums[kSums] = {};
  for (__m512i& sum : sums) asm volatile("" : "+v"(sum));  // equal sums would become one
  __m512i codes = _mm512_set1_epi8(3), values = _mm512_set1_epi8(-5);
  for (int64_t i = 0; i < rounds; i++) {
    asm volatile("" : "+v"(codes), "+v"(values));
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, codes, values);
  }
  for (__m512i& sum : sums) asm volatile("" : : "v"(sum));
}

constexpr PeakLoop kLoops[] = {{"f32 FMA", 2.0 * 16 * kSums, fma_f32},
                               {"int8 dot products", 2.0 * 64 * kSums, dot_int8}};

}  // namespace

PeakTable peaks_avx512() noexcept { return {kLoops, 2}; }

}  // namespace liuli::kernels
