// The prompt product of 16-bit fixed point by vpdpwssd: pairs of columns into 32-bit integers, a block of 64 at a time
// into one f32 accumulator per output. As many products per instruction as vdpbf16ps.
#include "kernels/avx512/prompt_transpose.h"
#include "kernels/avx512/vector.h"

#include "kernels/fixed16_lanes.h"
#include "kernels/isa_tables.h"
#include "kernels/prompt_blocked.h"

namespace liuli::kernels {
namespace {

struct Avx512Fixed16 : FixedColumns {
  static constexpr int kRows = 8, kPanels = 3, kGroup = 6, kChunk = 512;

  static void pack(const float* x, ptrdiff_t ldx, int rows, int64_t k, int16_t* out) {
    alignas(64) float columns[kFixedBlock][kPanelRows];
    for (int64_t i = 0; i < k; i += kFixedBlock, out += kFixedLines * kFixedLine) {
      for (int j = 0; j < kFixedBlock; j += 16) {
        __m512i lines[kStrip];
        for (int r = 0; r < kStrip; r++) {
          lines[r] =
              r < rows ? _mm512_castps_si512(load_to_end(x + r * ldx, i + j, k)) : _mm512_setzero_si512();
        }
        transpose_16x16(lines);
        for (int r = 0; r < kStrip; r++) _mm512_store_si512(columns[j + r], lines[r]);
      }
      fixed16_lines(columns, out);
    }
  }

  // 24 accumulators of integers in registers; the f32 sums wait in L1 for the end of a block.
  template <int R, int P>
  static void tile(const RegisterTile<int16_t>& t) {
    alignas(64) float sums[R][P][kPanelRows];
    for (int r = 0; r < R; r++) {
      for (int p = 0; p < P; p++) {
        _mm512_store_ps(sums[r][p], t.c_in ? _mm512_loadu_ps(t.c_in + r * t.ldc_in + p * kPanelRows)
                                           : _mm512_setzero_ps());
      }
    }
    const int16_t *a = t.a, *b = t.b;
    for (int left = t.units; left > 0; left -= kFixedBlock / 2) {
      add_block<R, P>(a, b, t.b_panel, sums);
      a += kFixedLines * kFixedLine;
      b += kFixedLines * kFixedLine;
    }
    for (int r = 0; r < R; r++) {
      for (int p = 0; p < P; p++)
        _mm512_storeu_ps(t.c_out + r * t.ldc_out + p * kPanelRows, _mm512_load_ps(sums[r][p]));
    }
  }

  // GCC 12 copies and spills every accumulator of _mm512_dpwssd_epi32: a quarter of the speed.
  static inline __attribute__((always_inline)) __m512i dot(__m512i sum, __m512i w, __m512i x) {
    __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x));
    return sum;
  }
  static inline __attribute__((always_inline)) void add_scaled(float* sums, __m512i integers,
                                                               const int16_t* scales, float row_scale) {
    const __m512 scale = _mm512_mul_ps(_mm512_loadu_ps(scales), _mm512_set1_ps(row_scale));
    _mm512_store_ps(sums, _mm512_fmadd_ps(_mm512_cvtepi32_ps(integers), scale, _mm512_load_ps(sums)));
  }

  template <int R, int P>
  static inline __attribute__((always_inline)) void add_block(const int16_t* a, const int16_t* b,
                                                              ptrdiff_t b_panel,
                                                              float (*sums)[P][kPanelRows]) {
    __m512i acc[R][P];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
#pragma GCC unroll 8
      for (int p = 0; p < P; p++) acc[r][p] = _mm512_setzero_si512();
    }
    for (int i = 0; i < kFixedBlock / 2; i++) {
      __m512i w[P];
#pragma GCC unroll 8
      for (int p = 0; p < P; p++) w[p] = _mm512_loadu_si512(b + p * b_panel + i * kFixedLine);
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) {
        int pair;
        __builtin_memcpy(&pair, a + i * kFixedLine + 2 * r, sizeof pair);
        const __m512i both = _mm512_set1_epi32(pair);
#pragma GCC unroll 8
        for (int p = 0; p < P; p++) acc[r][p] = dot(acc[r][p], w[p], both);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      float row_scale;
      __builtin_memcpy(&row_scale, a + kFixedScales + 2 * r, sizeof row_scale);
#pragma GCC unroll 8
      for (int p = 0; p < P; p++)
        add_scaled(sums[r][p], acc[r][p], b + p * b_panel + kFixedScales, row_scale);
    }
  }
};

}  // namespace

const PromptKernels* prompt_fixed16_avx512() noexcept {
  static constexpr PromptKernels kernels =
      BlockedPrompt<Avx512Fixed16>::table("16-bit fixed point, AVX-512 VNNI");
  return &kernels;
}

}  // namespace liuli::kernels
