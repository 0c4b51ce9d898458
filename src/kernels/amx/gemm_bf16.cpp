// Products of plain arrays by tdpbf16ps: 2 × 2 tiles of C, 32 values of k at a time, ascending.
#include "kernels/amx/tiles.h"
#include "kernels/avx512/gemm_pairs.h"
#include "kernels/gemm_blocked.h"
#include "kernels/isa_tables.h"

namespace liuli::kernels {
namespace {

struct TileEngine {
  using Value = uint16_t;
  static constexpr int kUnit = 32, kRows = 32, kColumns = 32, kLanes = 32;

  // A lies row by row within 32 values of k: [k / 32][32 rows][32].
  static void pack_rows(const float* x, int64_t along, int64_t across, int64_t k, int64_t n, uint16_t* out) {
    for (int64_t first = 0; first < kRows; first += 16) {
      const PairBlock block{x + first * across, along, across, k, n - first < 16 ? n - first : 16};
      for (int64_t at = 0; at < k; at += kUnit) {
        __m512i lines[16];
        block.members(at, lines);
        for (int64_t i = 0; i < 16; i++)
          _mm512_storeu_si512(out + at * kRows + (first + i) * kUnit, lines[i]);
      }
    }
  }
  static void pack_columns(const float* x, int64_t along, int64_t across, int64_t k, int64_t n,
                           uint16_t* out) {
    pack_pairs<kColumns>(x, along, across, k, n, (k + kUnit - 1) / kUnit * kUnit, out);
  }

  static void tile(const uint16_t* a, const uint16_t* b, int64_t k, float* c, int64_t c_row, bool resume,
                   int64_t) {
    const auto stride = static_cast<ptrdiff_t>(c_row * static_cast<int64_t>(sizeof(float)));
    load_tile_config(make_tile_config(16, 4, 5));
    tile_zero<0>(), tile_zero<1>(), tile_zero<2>(), tile_zero<3>();
    if (resume) {
      tile_load<0>(c, stride), tile_load<1>(c + 16, stride);
      tile_load<2>(c + 16 * c_row, stride), tile_load<3>(c + 16 * c_row + 16, stride);
    }
    for (int64_t at = 0; at < k; at += kUnit, a += kUnit * kRows, b += kUnit * kColumns) {
      tile_load<4>(b, 4 * kColumns), tile_load<5>(b + 32, 4 * kColumns);
      tile_load<6>(a, 2 * kUnit), tile_load<7>(a + 16 * kUnit, 2 * kUnit);
      tile_dot_bf16<0, 6, 4>(), tile_dot_bf16<1, 6, 5>();
      tile_dot_bf16<2, 7, 4>(), tile_dot_bf16<3, 7, 5>();
    }
    tile_store<0>(c, stride), tile_store<1>(c + 16, stride);
    tile_store<2>(c + 16 * c_row, stride), tile_store<3>(c + 16 * c_row + 16, stride);
    release_tiles();
  }
};

}  // namespace

const GemmKernel* LIULI_AMX_NAME(gemm_bf16)() noexcept {
  static constexpr GemmKernel kernel = BlockedGemm<TileEngine>::table("bf16 tiles, AMX");
  return &kernel;
}

}  // namespace liuli::kernels
