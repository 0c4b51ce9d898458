// Products of plain arrays by vdpbf16ps: pairs of k, ascending, into one f32 accumulator per output.
#include "kernels/avx512/gemm_pairs.h"
#include "kernels/gemm_blocked.h"
#include "kernels/isa_tables.h"

namespace liuli::kernels {
namespace {

struct PairEngine {
  using Value = uint16_t;
  static constexpr int kUnit = 2, kRows = 16, kColumns = 48, kLanes = 16;

  static void pack_rows(const float* x, int64_t along, int64_t across, int64_t k, int64_t n, uint16_t* out) {
    pack_pairs<kRows>(x, along, across, k, n, (k + 1) / 2 * 2, out);
  }
  static void pack_columns(const float* x, int64_t along, int64_t across, int64_t k, int64_t n,
                           uint16_t* out) {
    pack_pairs<kColumns>(x, along, across, k, n, (k + 1) / 2 * 2, out);
  }

  // 8 × 3 accumulators of 32 registers: 3 loads of B and 8 broadcasts for 24 products; vdpbf16ps issues one per cycle.
  template <int V>
  static void half_tile(const uint16_t* a, const uint16_t* b, int64_t pairs, float* c, int64_t c_row,
                        bool resume) {
    __m512 sum[8][V];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
#pragma GCC unroll 8
      for (int j = 0; j < V; j++)
        sum[i][j] = resume ? _mm512_loadu_ps(c + i * c_row + j * kLanes) : _mm512_setzero_ps();
    for (int64_t at = 0; at < pairs; at++, a += 2 * kRows, b += 2 * kColumns) {
      __m512bh column[V];
#pragma GCC unroll 8
      for (int j = 0; j < V; j++) column[j] = (__m512bh)_mm512_loadu_si512(b + j * 2 * kLanes);
#pragma GCC unroll 8
      for (int i = 0; i < 8; i++) {
        int pair;
        __builtin_memcpy(&pair, a + 2 * i, sizeof pair);
        const __m512bh row = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 8
        for (int j = 0; j < V; j++) sum[i][j] = _mm512_dpbf16_ps(sum[i][j], column[j], row);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
#pragma GCC unroll 8
      for (int j = 0; j < V; j++) _mm512_storeu_ps(c + i * c_row + j * kLanes, sum[i][j]);
  }

  static void tile(const uint16_t* a, const uint16_t* b, int64_t k, float* c, int64_t c_row, bool resume,
                   int64_t columns) {
    const auto half = columns == kColumns     ? &half_tile<3>
                      : columns == 2 * kLanes ? &half_tile<2>
                                              : &half_tile<1>;
    half(a, b, k / 2, c, c_row, resume);
    half(a + 16, b, k / 2, c + 8 * c_row, c_row, resume);
  }
};

}  // namespace

const GemmKernel* gemm_bf16_avx512() noexcept {
  static constexpr GemmKernel kernel = BlockedGemm<PairEngine>::table("bf16 dot product, AVX512_BF16");
  return &kernel;
}

}  // namespace liuli::kernels
