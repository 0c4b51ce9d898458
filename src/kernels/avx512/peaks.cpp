// Peaks of 512-bit registers: f32 FMA and VNNI (of 16 and of 8 bits).
#include <immintrin.h>

#include "kernels/peak_rounds.h"
#include "kernels/peaks.h"

namespace liuli::kernels {
namespace {

constexpr int kSums = 16;

struct Avx512 {
  static void hide(__m512& value) { asm volatile("" : "+v"(value)); }
  static void hide(__m512i& value) { asm volatile("" : "+v"(value)); }
};

void fma_f32(int64_t rounds) noexcept {
  run_rounds<Avx512, kSums>(rounds, _mm512_setzero_ps(), _mm512_set1_ps(0.5f), _mm512_set1_ps(1.0f),
                            [](__m512 sum, __m512 a, __m512 b) { return _mm512_fmadd_ps(sum, a, b); });
}

void dot_int8(int64_t rounds) noexcept {
  run_rounds<Avx512, kSums>(
      rounds, _mm512_setzero_si512(), _mm512_set1_epi8(3), _mm512_set1_epi8(-5),
      [](__m512i sum, __m512i codes, __m512i values) { return _mm512_dpbusd_epi32(sum, codes, values); });
}

void dot_int16(int64_t rounds) noexcept {
  run_rounds<Avx512, kSums>(
      rounds, _mm512_setzero_si512(), _mm512_set1_epi16(3), _mm512_set1_epi16(-5),
      [](__m512i sum, __m512i codes, __m512i values) { return _mm512_dpwssd_epi32(sum, codes, values); });
}

constexpr PeakLoop kLoops[] = {{"f32 FMA", 2.0 * 16 * kSums, fma_f32},
                               {"int16 dot products", 2.0 * 32 * kSums, dot_int16},
                               {"int8 dot products", 2.0 * 64 * kSums, dot_int8}};

}  // namespace

PeakTable peaks_avx512() noexcept { return {kLoops, 3}; }

}  // namespace liuli::kernels
