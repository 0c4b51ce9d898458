// The prompt product by AVX2 f32 FMA over weights rounded to bf16: the scalar level's bits.
#include "kernels/avx2/prompt_transpose.h"
#include "kernels/isa_tables.h"
#include "kernels/prompt_blocked.h"

namespace liuli::kernels {
namespace {

struct Avx2Engine : PlainColumns<float, 1> {
  static constexpr int kRows = 6, kPanels = 1, kGroup = 4, kChunk = 256;

  static void expand(const WeightKernels& weight, const uint8_t* panel, int64_t k, int64_t k0, int64_t k1,
                     float* b) {
    alignas(64) uint16_t tile[kTileK * kPanelRows];
    for (int64_t column = k0; column < k1; column += kTileK) {
      weight.expand_bf16(panel, k, column, column + kTileK, tile);
      for (int i = 0; i < kTileK; i += 2, b += 2 * kPanelRows) {
        for (int half = 0; half < kPanelRows; half += 8) {
          const auto* line = reinterpret_cast<const __m256i*>(tile + i * kPanelRows + 2 * half);
          const __m256i pairs = _mm256_load_si256(line);
          _mm256_storeu_ps(b + half, _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)));
          const __m256i odd = _mm256_and_si256(pairs, _mm256_set1_epi32(0xffff0000));
          _mm256_storeu_ps(b + kPanelRows + half, _mm256_castsi256_ps(odd));
        }
      }
    }
  }

  static void pack(const float* x, ptrdiff_t ldx, int rows, int64_t k, float* out) {
    const int64_t end = BlockedPrompt<Avx2Engine>::padded_k(k);
    for (int64_t i = 0; i < end; i += 8, out += 8 * kStrip) transpose_rows(x, ldx, rows, i, k, out);
  }

  // 6 × 16: 12 accumulators, two registers of weights and one broadcast fill the 16 there are. (Loops are
  // unrolled by hand-given counts: left to itself GCC 12 keeps the accumulators in memory, at half the
  // speed.)
  template <int R, int P>
  static void tile(const RegisterTile<float>& t) {
    __m256 acc[R][2];
#pragma GCC unroll 6
    for (int r = 0; r < R; r++) {
      acc[r][0] = t.c_in ? _mm256_loadu_ps(t.c_in + r * t.ldc_in) : _mm256_setzero_ps();
      acc[r][1] = t.c_in ? _mm256_loadu_ps(t.c_in + r * t.ldc_in + 8) : _mm256_setzero_ps();
    }
    const float *a = t.a, *b = t.b;
    for (int i = 0; i < t.units; i++, a += kStrip, b += kPanelRows) {
      const __m256 low = _mm256_loadu_ps(b), high = _mm256_loadu_ps(b + 8);
#pragma GCC unroll 6
      for (int r = 0; r < R; r++) {
        const __m256 x = _mm256_broadcast_ss(a + r);
        acc[r][0] = _mm256_fmadd_ps(x, low, acc[r][0]);
        acc[r][1] = _mm256_fmadd_ps(x, high, acc[r][1]);
      }
    }
#pragma GCC unroll 6
    for (int r = 0; r < R; r++) {
      _mm256_storeu_ps(t.c_out + r * t.ldc_out, acc[r][0]);
      _mm256_storeu_ps(t.c_out + r * t.ldc_out + 8, acc[r][1]);
    }
  }
};

}  // namespace

const PromptKernels* prompt_avx2() noexcept {
  static constexpr PromptKernels kernels = BlockedPrompt<Avx2Engine>::table("f32 fused multiply-add, AVX2");
  return &kernels;
}

}  // namespace liuli::kernels
