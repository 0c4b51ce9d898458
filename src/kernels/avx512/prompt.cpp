// The prompt product by AVX-512 f32 FMA over weights rounded to bf16: the scalar level's bits.
#include "kernels/avx512/prompt_transpose.h"
#include "kernels/isa_tables.h"
#include "kernels/prompt_blocked.h"

namespace liuli::kernels {
namespace {

struct Avx512Engine : PlainColumns<float, 1> {
  static constexpr int kRows = 8, kPanels = 3, kGroup = 6, kChunk = 256;

  static void expand(const WeightKernels& weight, const uint8_t* panel, int64_t k, int64_t k0, int64_t k1,
                     float* b) {
    alignas(64) uint16_t tile[kTileK * kPanelRows];
    for (int64_t column = k0; column < k1; column += kTileK) {
      weight.expand_bf16(panel, k, column, column + kTileK, tile);
      for (int i = 0; i < kTileK; i += 2, b += 2 * kPanelRows) {
        const __m512i line = _mm512_load_si512(tile + i * kPanelRows);
        _mm512_storeu_si512(b, _mm512_slli_epi32(line, 16));
        _mm512_storeu_si512(b + kPanelRows, _mm512_and_si512(line, _mm512_set1_epi32(0xffff0000)));
      }
    }
  }

  static void pack(const float* x, ptrdiff_t ldx, int rows, int64_t k, float* out) {
    const int64_t end = BlockedPrompt<Avx512Engine>::padded_k(k);
    for (int64_t i = 0; i < end; i += 16, out += 16 * kStrip) {
      __m512i lines[kStrip];
      for (int r = 0; r < kStrip; r++) {
        lines[r] = r < rows ? _mm512_castps_si512(load_to_end(x + r * ldx, i, k)) : _mm512_setzero_si512();
      }
      transpose_16x16(lines);
      for (int r = 0; r < kStrip; r++) _mm512_storeu_si512(out + r * kStrip, lines[r]);
    }
  }

  template <int R, int P>
  static void tile(const RegisterTile<float>& t) {
    __m512 acc[R][P];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
#pragma GCC unroll 8
      for (int p = 0; p < P; p++) {
        acc[r][p] = t.c_in ? _mm512_loadu_ps(t.c_in + r * t.ldc_in + p * kPanelRows) : _mm512_setzero_ps();
      }
    }
    const float *a = t.a, *b = t.b;
    for (int i = 0; i < t.units; i++, a += kStrip, b += kPanelRows) {
      __m512 w[P];
#pragma GCC unroll 8
      for (int p = 0; p < P; p++) w[p] = _mm512_loadu_ps(b + p * t.b_panel);
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) {
        const __m512 x = _mm512_set1_ps(a[r]);
#pragma GCC unroll 8
        for (int p = 0; p < P; p++) acc[r][p] = _mm512_fmadd_ps(x, w[p], acc[r][p]);
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

const PromptKernels* prompt_avx512() noexcept {
  static constexpr PromptKernels kernels =
      BlockedPrompt<Avx512Engine>::table("f32 fused multiply-add, AVX-512");
  return &kernels;
}

}  // namespace liuli::kernels
