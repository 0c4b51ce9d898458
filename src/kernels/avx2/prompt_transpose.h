// Packing for the AVX2 prompt products: 8 rows of 8 values become 8 lines of 8 rows.
#pragma once
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

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

// Values of up to 16 rows as lines of 16 rows: out[j] = value i + j of each, j < 8; zeros where nothing is.
inline void transpose_rows(const float* x, ptrdiff_t ldx, int rows, int64_t i, int64_t k, float* out) {
  for (int half = 0; half < 16; half += 8) {
    __m256 lines[8];
    for (int r = 0; r < 8; r++) {
      lines[r] = half + r < rows ? load_to_end(x + (half + r) * ldx, i, k) : _mm256_setzero_ps();
    }
    transpose_8x8(lines);
    for (int j = 0; j < 8; j++) _mm256_storeu_ps(out + j * 16 + half, lines[j]);
  }
}

}  // namespace
}  // namespace liuli::kernels
