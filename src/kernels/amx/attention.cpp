// Attention by tdpbf16ps: the pages' tiles are multiplied where they lie, 32 units at a time.
#include "kernels/amx/tiles.h"
#include "kernels/attention_codes.h"
#include "kernels/avx512/attention_lanes.h"
#include "kernels/avx512/bf16_rows.h"
#include "kernels/isa_tables.h"

namespace liuli::kernels {
namespace {

// 2 × 2 tiles: units in tiles 0 and 1, keys or values in 2 and 3, sums in 4 … 7. Rows of q, p and z lie as in
// the other levels, a unit's row after another; a tile is loaded with that stride.
struct TileDots {
  using Lanes = Avx512Lanes;
  using Pages = Bf16Pages;
  using Query = uint16_t;
  using Weight = uint16_t;
  using View = GroupView<TileDots>;
  static constexpr int kGroup = 32;
  static constexpr int kTileValues = 512, kTileRows = 16;

  static int query_row(int key_dim) { return key_dim; }
  // Tiles have a row per unit, down to one: a tile product takes as long as it has rows.
  static void begin(int units) {
    load_tile_config(make_tile_config(units < kTileRows ? units : kTileRows, 2, 3));
  }
  static void end() { release_tiles(); }
  static void load_query(const float* q, float scale, int n, int padded, uint16_t* out) {
    load_query_bf16(q, scale, n, padded, out);
  }
  static void store_weights(uint16_t* p, __m512 first, __m512 second) {
    store_weights_bf16(p, first, second);
  }

  /// Asks for `lines` lines from `ahead` on.
  static void fetch(const uint16_t* ahead, int lines) {
    for (int i = 0; i < lines; i++) _mm_prefetch(ahead + 32 * i, _MM_HINT_T1);
  }

  /// Sums of 1 or 2 tiles of units with two tiles of keys: Σ over head_dim.
  template <bool kTwo>
  static void score_tiles(const View& g, const uint16_t* keys, float* s) {
    const ptrdiff_t key_tile = g.key_dim / 32 * kTileValues, q_stride = g.key_dim * 2;
    const uint16_t* second_q = g.q + kTileRows * g.key_dim;
    tile_zero<4>();
    tile_zero<5>();
    if constexpr (kTwo) tile_zero<6>(), tile_zero<7>();
    for (int d = 0; d < g.key_dim / 32; d++) {
      tile_load<0>(g.q + 32 * d, q_stride);
      tile_load<2>(keys + d * kTileValues, 64);
      tile_dot_bf16<4, 0, 2>();
      tile_load<3>(keys + key_tile + d * kTileValues, 64);
      tile_dot_bf16<5, 0, 3>();
      if constexpr (kTwo) {
        tile_load<1>(second_q + 32 * d, q_stride);
        tile_dot_bf16<6, 1, 2>();
        tile_dot_bf16<7, 1, 3>();
      }
    }
    constexpr ptrdiff_t kStride = kBlock * sizeof(float);
    tile_store<4>(s, kStride);
    tile_store<5>(s + 16, kStride);
    if constexpr (kTwo) {
      tile_store<6>(s + kTileRows * kBlock, kStride);
      tile_store<7>(s + kTileRows * kBlock + 16, kStride);
    }
  }

  static void scores(const View& g) {
    for (int page = g.page_begin; page < g.page_end; page++) {
      for (int tile = 0; tile < 4; tile += 2) {
        const uint16_t* keys = g.pages.keys[page] + tile * 16 * g.key_dim;
        float* s = g.scores + page * kPagePositions + tile * 16;
        if (g.fetch_values) fetch(g.after_keys(page) + tile * 16 * g.key_dim, g.key_dim);
        g.units > kTileRows ? score_tiles<true>(g, keys, s) : score_tiles<false>(g, keys, s);
      }
    }
  }

  /// Adds p · v of the block to 1 or 2 tiles of units × 1 or 2 tiles of dims from `d`.
  template <bool kTwo, bool kPair>
  static void value_tiles(const View& g, int d) {
    const ptrdiff_t z_stride = g.value_dim * sizeof(float);
    constexpr ptrdiff_t kStride = kBlock * sizeof(uint16_t);
    float *z = g.z + d * 16, *second_z = z + kTileRows * g.value_dim;
    tile_load<4>(z, z_stride);
    if constexpr (kPair) tile_load<5>(z + 16, z_stride);
    if constexpr (kTwo) tile_load<6>(second_z, z_stride);
    if constexpr (kTwo && kPair) tile_load<7>(second_z + 16, z_stride);
    for (int t = 2 * g.page_begin; t < 2 * g.page_end; t++) {  // 32 keys
      const uint16_t* values = g.pages.values[t / 2] + (2 * d + t % 2) * kTileValues;
      if (g.fetch_next) fetch(g.after_values(t / 2) + (2 * d + t % 2) * kTileValues, 16);
      tile_load<0>(g.p + 32 * t, kStride);
      tile_load<2>(values, 64);
      tile_dot_bf16<4, 0, 2>();
      if constexpr (kPair) tile_load<3>(values + 2 * kTileValues, 64), tile_dot_bf16<5, 0, 3>();
      if constexpr (kTwo) tile_load<1>(g.p + kTileRows * kBlock + 32 * t, kStride), tile_dot_bf16<6, 1, 2>();
      if constexpr (kTwo && kPair) tile_dot_bf16<7, 1, 3>();
    }
    tile_store<4>(z, z_stride);
    if constexpr (kPair) tile_store<5>(z + 16, z_stride);
    if constexpr (kTwo) tile_store<6>(second_z, z_stride);
    if constexpr (kTwo && kPair) tile_store<7>(second_z + 16, z_stride);
  }

  static void values(const View& g) {
    const int tiles_of_dims = g.value_dim / 16;
    const bool two = g.units > kTileRows;
    int d = 0;
    for (; d + 2 <= tiles_of_dims; d += 2)
      two ? value_tiles<true, true>(g, d) : value_tiles<false, true>(g, d);
    if (d < tiles_of_dims) two ? value_tiles<true, false>(g, d) : value_tiles<false, false>(g, d);
  }
};

}  // namespace

const AttentionKernels* LIULI_AMX_NAME(attention)() noexcept {
  static constexpr AttentionKernels kernels = BlockedAttention<TileDots>::table("bf16 pages, AMX tiles");
  return &kernels;
}

CodeAttention LIULI_AMX_NAME(attention_codes)() noexcept {
  using Dots = TileDots;
  static constexpr AttentionKernels q8_0 =
      CodeAttentionOf<Dots, Q8Pages, CodeDots<Avx512Lanes, Codes8, 8, 2>>::table(
          "Q8_0 pages, AMX tiles, VNNI");
  static constexpr AttentionKernels q4_0 =
      CodeAttentionOf<Dots, Q4Pages, CodeDots<Avx512Lanes, Codes4, 8, 2>>::table(
          "Q4_0 pages, AMX tiles, VNNI");
  return {&q8_0, &q4_0};
}

}  // namespace liuli::kernels
