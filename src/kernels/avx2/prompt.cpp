// The prompt product by AVX2 f32 FMA over weights rounded to bf16: the scalar level's bits.
#include <immintrin.h>

#include "kernels/isa_tables.h"
#include "kernels/prompt_blocked.h"

namespace liuli::kernels {
namespace {

// In: row r's values [i, i + 8). Out: value i + j of rows 0 … 7 in v[j].
inline __attribute__((always_inline)) void transpose_8x8(__m256 (&v)[8]) {
  __m256 w[8];
  for (int i = 0; i < 8; i += 2) {
    w[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
    w[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    v[i] = _mm256_shuffle_ps(w[i], w[i + 2], 0x44);
    v[i + 1] = _mm256_shuffle_ps(w[i], w[i + 2], 0xee);
    v[i + 2] = _mm256_shuffle_ps(w[i + 1], w[i + 3], 0x44);
    v[i + 3] = _mm256_shuffle_ps(w[i + 1], w[i + 3], 0xee);
  }
  for (int i = 0; i < 4; i++) {
    w[i] = _mm256_permute2f128_ps(v[i], v[i + 4], 0x20);
    w[i + 4] = _mm256_permute2f128_ps(v[i], v[i + 4], 0x31);
  }
  for (int i = 0; i < 8; i++) v[i] = w[i];
}

// Values [i, i + 8) of a row that ends at k; zeros beyond.
inline __m256 load_to_end(const float* row, int64_t i, int64_t k) {
  if (i + 8 <= k) return _mm256_loadu_ps(row + i);
  alignas(32) float values[8] = {};
  for (int j = 0; i + j < k; j++) values[j] = row[i + j];
  return _mm256_load_ps(values);
}

struct Avx2Engine {
  using Value = float;
  static constexpr int kUnit = 1, kRows = 6, kPanels = 1, kGroup = 4, kChunk = 256;

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
    for (int64_t i = 0; i < end; i += 8, out += 8 * kStrip) {
      for (int half = 0; half < kStrip; half += 8) {
        __m256 lines[8];
        for (int r = 0; r < 8; r++) {
          lines[r] = half + r < rows ? load_to_end(x + (half + r) * ldx, i, k) : _mm256_setzero_ps();
        }
        transpose_8x8(lines);
        for (int j = 0; j < 8; j++) _mm256_storeu_ps(out + j * kStrip + half, lines[j]);
      }
    }
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
