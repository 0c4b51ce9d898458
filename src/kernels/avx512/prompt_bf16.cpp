// The prompt product by vdpbf16ps: pairs of k, ascending, into one f32 accumulator per output.
#include "kernels/avx512/prompt_transpose.h"
#include "kernels/isa_tables.h"
#include "kernels/prompt_blocked.h"

namespace liuli::kernels {
namespace {

struct Bf16Engine : PlainColumns<uint16_t, 2> {
  static constexpr int kRows = 8, kPanels = 3, kGroup = 6, kChunk = 512;

  static void expand(const WeightKernels& weight, const uint8_t* panel, int64_t k, int64_t k0, int64_t k1,
                     uint16_t* b) {
    weight.expand_bf16(panel, k, k0, k1, b);
  }

  static void pack(const float* x, ptrdiff_t ldx, int rows, int64_t k, uint16_t* out) {
    for (int64_t i = 0; i < k; i += kTileK, out += kTileK * kStrip) {
      __m512i lines[kStrip];
      for (int r = 0; r < kStrip; r++) {
        lines[r] = _mm512_setzero_si512();
        if (r >= rows) continue;
        const float* row = x + r * ldx;
        lines[r] = (__m512i)_mm512_cvtne2ps_pbh(load_to_end(row, i + 16, k), load_to_end(row, i, k));
      }
      transpose_16x16(lines);
      for (int r = 0; r < kStrip; r++) _mm512_storeu_si512(out + r * 2 * kStrip, lines[r]);
    }
  }

  // 8 × 3: 24 accumulators, 3 loads of weights and 8 broadcasts for 24 products; vdpbf16ps issues one per
  // cycle.
  template <int R, int P>
  static void tile(const RegisterTile<uint16_t>& t) {
    __m512 acc[R][P];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
#pragma GCC unroll 8
      for (int p = 0; p < P; p++) {
        acc[r][p] = t.c_in ? _mm512_loadu_ps(t.c_in + r * t.ldc_in + p * kPanelRows) : _mm512_setzero_ps();
      }
    }
    const uint16_t *a = t.a, *b = t.b;
    for (int i = 0; i < t.units; i++, a += 2 * kStrip, b += 2 * kPanelRows) {
      __m512bh w[P];
#pragma GCC unroll 8
      for (int p = 0; p < P; p++) w[p] = (__m512bh)_mm512_loadu_si512(b + p * t.b_panel);
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) {
        int pair;
        __builtin_memcpy(&pair, a + 2 * r, sizeof pair);
        const __m512bh both = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 8
        for (int p = 0; p < P; p++) acc[r][p] = _mm512_dpbf16_ps(acc[r][p], w[p], both);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
#pragma GCC unroll 8
      for (int p = 0; p < P; p++) _mm512_storeu_ps(t.c_out + r * t.ldc_out + p * kPanelRows, acc[r][p]);
    }
  }
};

}  // namespace

const PromptKernels* prompt_avx512_bf16() noexcept {
  static constexpr PromptKernels kernels = BlockedPrompt<Bf16Engine>::table("bf16 dot product, AVX512_BF16");
  return &kernels;
}

}  // namespace liuli::kernels
