// The prompt product of 16-bit fixed point by vpmaddwd: the scalar level's bits.
#include "kernels/avx2/prompt_transpose.h"
#include "kernels/avx2/vector.h"

#include "kernels/fixed16_lanes.h"
#include "kernels/isa_tables.h"
#include "kernels/prompt_blocked.h"

namespace liuli::kernels {
namespace {

struct Avx2Fixed16 : FixedColumns {
  static constexpr int kRows = 6, kPanels = 1, kGroup = 4, kChunk = 512;

  static void pack(const float* x, ptrdiff_t ldx, int rows, int64_t k, int16_t* out) {
    alignas(64) float columns[kFixedBlock][kPanelRows];
    for (int64_t i = 0; i < k; i += kFixedBlock, out += kFixedLines * kFixedLine) {
      for (int j = 0; j < kFixedBlock; j += 8) transpose_rows(x, ldx, rows, i + j, k, columns[j]);
      fixed16_lines(columns, out);
    }
  }

  // 12 accumulators, two registers of weights, a broadcast and a product fill the 16 there are.
  template <int R, int P>
  static void tile(const RegisterTile<int16_t>& t) {
    alignas(32) float sums[R][kPanelRows] = {};
    if (t.c_in) {
      for (int r = 0; r < R; r++) __builtin_memcpy(sums[r], t.c_in + r * t.ldc_in, sizeof sums[r]);
    }
    const int16_t *a = t.a, *b = t.b;
    for (int left = t.units; left > 0; left -= kFixedBlock / 2) {
      add_block<R>(a, b, sums);
      a += kFixedLines * kFixedLine;
      b += kFixedLines * kFixedLine;
    }
    for (int r = 0; r < R; r++) __builtin_memcpy(t.c_out + r * t.ldc_out, sums[r], sizeof sums[r]);
  }

  template <int R>
  static inline __attribute__((always_inline)) void add_block(const int16_t* a, const int16_t* b,
                                                              float (*sums)[kPanelRows]) {
    __m256i acc[R][2];
#pragma GCC unroll 6
    for (int r = 0; r < R; r++) acc[r][0] = acc[r][1] = _mm256_setzero_si256();
    for (int i = 0; i < kFixedBlock / 2; i++) {
      const __m256i low = EightLanes::load(b + i * kFixedLine),
                    high = EightLanes::load(b + i * kFixedLine + 16);
#pragma GCC unroll 6
      for (int r = 0; r < R; r++) {
        int pair;
        __builtin_memcpy(&pair, a + i * kFixedLine + 2 * r, sizeof pair);
        const __m256i both = _mm256_set1_epi32(pair);
        acc[r][0] = _mm256_add_epi32(acc[r][0], _mm256_madd_epi16(low, both));
        acc[r][1] = _mm256_add_epi32(acc[r][1], _mm256_madd_epi16(high, both));
      }
    }
    const auto* scales = reinterpret_cast<const float*>(b + kFixedScales);
    const __m256 low = _mm256_loadu_ps(scales), high = _mm256_loadu_ps(scales + 8);
#pragma GCC unroll 6
    for (int r = 0; r < R; r++) {
      float row_scale;
      __builtin_memcpy(&row_scale, a + kFixedScales + 2 * r, sizeof row_scale);
      const __m256 both = _mm256_set1_ps(row_scale);
      add_scaled(sums[r], acc[r][0], _mm256_mul_ps(low, both));
      add_scaled(sums[r] + 8, acc[r][1], _mm256_mul_ps(high, both));
    }
  }

  static inline __attribute__((always_inline)) void add_scaled(float* sums, __m256i integers, __m256 scale) {
    _mm256_storeu_ps(sums, _mm256_fmadd_ps(_mm256_cvtepi32_ps(integers), scale, _mm256_loadu_ps(sums)));
  }
};

}  // namespace

const PromptKernels* prompt_fixed16_avx2() noexcept {
  static constexpr PromptKernels kernels = BlockedPrompt<Avx2Fixed16>::table("16-bit fixed point, AVX2");
  return &kernels;
}

}  // namespace liuli::kernels
