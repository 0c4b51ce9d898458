// The products of attention in f32 FMA, over pages widened a line at a time: one accumulator per output, dims (scores)
// and keys (values) ascending. For bf16 pages on levels without a bf16 dot product, and for f16 pages. Private, as
// attention_blocked.h.
#pragma once
#include "kernels/attention_blocked.h"

namespace liuli::kernels {
namespace {

/// kRows units × kTiles tiles of 16 keys (or dims) at a time.
template <class LanesType, class PagesType, int kRows, int kTiles>
struct F32Dots {
  using Lanes = LanesType;
  using Pages = PagesType;
  using V = typename Lanes::V;
  using Query = float;
  using Weight = float;
  using View = GroupView<F32Dots>;
  static constexpr int kGroup = kRows;

  static int query_row(int key_dim) { return key_dim; }
  static void begin(int) {}
  static void end() {}
  static void load_query(const float* q, float scale, int n, int padded, float* out) {
    for (int d = 0; d < padded; d++) out[d] = d < n ? q[d] * scale : 0.0f;
  }
  static void store_weights(float* p, V even, V odd) {
    Lanes::store(p, Pages::kRoundsWeights ? Lanes::round_to_bf16(even) : even);
    Lanes::store(p + 16, Pages::kRoundsWeights ? Lanes::round_to_bf16(odd) : odd);
  }

  /// acc[r][t] += Σ over `lines` of the pair a[r][2 i], a[r][2 i + 1] times line i of tile t; `ahead` is
  /// fetched alongside.
  template <bool kFetch, int R, int T>
  static inline __attribute__((always_inline)) void accumulate(V (&acc)[R][T], const float* a, ptrdiff_t lda,
                                                               const uint16_t* tiles, ptrdiff_t tile,
                                                               int lines, const uint16_t* ahead) {
    for (int i = 0; i < lines; i++) {
      V even[T], odd[T];
      for (int t = 0; t < T; t++) {
        Pages::template widen<Lanes>(tiles + t * tile + i * 32, even[t], odd[t]);
        if constexpr (kFetch) __builtin_prefetch(ahead + t * tile + i * 32, 0, 2);
      }
      for (int r = 0; r < R; r++) {
        const V first = Lanes::set1(a[r * lda + 2 * i]), second = Lanes::set1(a[r * lda + 2 * i + 1]);
        for (int t = 0; t < T; t++)
          acc[r][t] = Lanes::fma(second, odd[t], Lanes::fma(first, even[t], acc[r][t]));
      }
    }
  }

  template <bool kFetch, int R>
  static void score_rows(const View& g) {
    const ptrdiff_t tile = g.key_dim * 16;
    for (int page = g.page_begin; page < g.page_end; page++) {
      const uint16_t* keys = g.pages.keys[page];
      for (int t = 0; t < 4; t += kTiles) {
        V acc[R][kTiles];
        for (auto& row : acc) {
          for (V& v : row) v = Lanes::set1(0.0f);
        }
        accumulate<kFetch, R, kTiles>(acc, g.q, g.key_dim, keys + t * tile, tile, (g.head_dim + 1) / 2,
                                      g.after_keys(page) + t * tile);
        float* s = g.scores + page * kPagePositions + t * 16;
        for (int r = 0; r < R; r++) {
          for (int j = 0; j < kTiles; j++) Lanes::store(s + r * kBlock + j * 16, acc[r][j]);
        }
      }
    }
  }

  template <bool kFetch, int R, int T>
  static void value_tiles(const View& g, int d) {
    V acc[R][T];
    float* z = g.z + d * 16;
    for (int r = 0; r < R; r++) {
      for (int j = 0; j < T; j++) acc[r][j] = Lanes::load(z + r * g.value_dim + j * 16);
    }
    for (int page = g.page_begin; page < g.page_end; page++) {
      const uint16_t* values = g.pages.values[page] + d * 1024;
      accumulate<kFetch, R, T>(acc, g.p + page * kPagePositions, kBlock, values, 1024, kPagePositions / 2,
                               g.after_values(page) + d * 1024);
    }
    for (int r = 0; r < R; r++) {
      for (int j = 0; j < T; j++) Lanes::store(z + r * g.value_dim + j * 16, acc[r][j]);
    }
  }

  template <bool kFetch, int R>
  static void value_rows(const View& g) {
    int d = 0;
    for (; d + kTiles <= g.value_dim / 16; d += kTiles) value_tiles<kFetch, R, kTiles>(g, d);
    for (; d < g.value_dim / 16; d++) value_tiles<kFetch, R, 1>(g, d);
  }

  static void scores(const View& g) {
    for_units<kRows>(g.units,
                     [&]<int R>() { g.fetch_values ? score_rows<true, R>(g) : score_rows<false, R>(g); });
  }
  static void values(const View& g) {
    for_units<kRows>(g.units,
                     [&]<int R>() { g.fetch_next ? value_rows<true, R>(g) : value_rows<false, R>(g); });
  }
};

}  // namespace
}  // namespace liuli::kernels
