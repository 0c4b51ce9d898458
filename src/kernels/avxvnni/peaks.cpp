// Peaks of VNNI in 256-bit registers.
#include "kernels/peaks.h"
#include "kernels/avxvnni/vnni.h"
#include "kernels/peak_rounds.h"

namespace liuli::kernels {
namespace {

constexpr int kSums = 12;  // as in avx2/peaks.cpp

struct AvxVnni {
  static void hide(__m256i& value) { asm volatile("" : "+x"(value)); }
};

void dot_int8(int64_t rounds) noexcept {
  run_rounds<AvxVnni, kSums>(
      rounds, _mm256_setzero_si256(), _mm256_set1_epi8(3), _mm256_set1_epi8(-5),
      [](__m256i sum, __m256i codes, __m256i values) { return dot_bytes(sum, codes, values); });
}

void dot_int16(int64_t rounds) noexcept {
  run_rounds<AvxVnni, kSums>(
      rounds, _mm256_setzero_si256(), _mm256_set1_epi16(3), _mm256_set1_epi16(-5),
      [](__m256i sum, __m256i codes, __m256i values) { return dot_words(sum, codes, values); });
}

constexpr PeakLoop kLoops[] = {{"int16 dot products", 2.0 * 16 * kSums, dot_int16},
                               {"int8 dot products", 2.0 * 32 * kSums, dot_int8}};

}  // namespace

PeakTable peaks_avxvnni() noexcept { return {kLoops, 2}; }

}  // namespace liuli::kernels
