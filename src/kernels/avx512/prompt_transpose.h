// Packing for the AVX-512 prompt products: 16 rows of 16 32-bit words become 16 lines of 16 rows.
#pragma once
#include <immintrin.h>

#include "kernels/avx512/load_to_end.h"

namespace liuli::kernels {
namespace {

// In: v[r] = words of row r. Out: v[i] = word i of every row. Four rounds of 16 shuffles.
inline __attribute__((always_inline)) void transpose_16x16(__m512i (&v)[16]) {
  __m512i w[16];
  for (int i = 0; i < 16; i += 2) {
    w[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    w[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    v[i] = _mm512_unpacklo_epi64(w[i], w[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(w[i], w[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(w[i + 1], w[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(w[i + 1], w[i + 3]);
  }
  // v[4 g + j]: 128-bit lane q holds word 4 q + j of rows 4 g … 4 g + 3.
  for (int i = 0; i < 16; i += 8) {
    for (int j = 0; j < 4; j++) {
      w[i + j] = _mm512_shuffle_i32x4(v[i + j], v[i + 4 + j], 0x88);      // lanes 0, 2
      w[i + 4 + j] = _mm512_shuffle_i32x4(v[i + j], v[i + 4 + j], 0xdd);  // lanes 1, 3
    }
  }
  for (int j = 0; j < 4; j++) {
    v[j] = _mm512_shuffle_i32x4(w[j], w[8 + j], 0x88);            // lane 0 of all groups
    v[8 + j] = _mm512_shuffle_i32x4(w[j], w[8 + j], 0xdd);        // lane 2
    v[4 + j] = _mm512_shuffle_i32x4(w[4 + j], w[12 + j], 0x88);   // lane 1
    v[12 + j] = _mm512_shuffle_i32x4(w[4 + j], w[12 + j], 0xdd);  // lane 3
  }
}

}  // namespace
}  // namespace liuli::kernels
