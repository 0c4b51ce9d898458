// Attention by vdpbf16ps on the page's own lines: 16 keys (or dims) per line, the pair of q (or p) broadcast.
#include "kernels/attention_codes.h"
#include "kernels/avx512/attention_lanes.h"
#include "kernels/avx512/bf16_rows.h"
#include "kernels/isa_tables.h"

namespace liuli::kernels {
namespace {

struct Bf16Dots {
  using Lanes = Avx512Lanes;
  using Query = uint16_t;
  using Weight = uint16_t;
  using Pages = Bf16Pages;
  using View = GroupView<Bf16Dots>;
  static constexpr int kGroup = 8;
  static constexpr int kTiles =
      2;  // tiles of 16 keys or dims at a time: 16 accumulators, twice the latency of a product

  static int query_row(int key_dim) { return key_dim; }
  static void begin(int) {}
  static void end() {}
  static void load_query(const float* q, float scale, int n, int padded, uint16_t* out) {
    load_query_bf16(q, scale, n, padded, out);
  }
  static void store_weights(uint16_t* p, __m512 even, __m512 odd) { store_weights_bf16(p, even, odd); }

  /// acc[r][t] += Σ over `lines` of the pair i of a[r] times line i of tile t; `ahead` is fetched alongside.
  template <bool kFetch, int R, int T>
  static inline __attribute__((always_inline)) void accumulate(__m512 (&acc)[R][T], const uint16_t* a,
                                                               ptrdiff_t lda, const uint16_t* tiles,
                                                               ptrdiff_t tile, int lines,
                                                               const uint16_t* ahead) {
    for (int i = 0; i < lines; i++) {
      __m512bh line[T];
      for (int t = 0; t < T; t++) {
        line[t] = (__m512bh)_mm512_loadu_si512(tiles + t * tile + i * 32);
        if constexpr (kFetch) _mm_prefetch(ahead + t * tile + i * 32, _MM_HINT_T1);
      }
      for (int r = 0; r < R; r++) {
        int pair;
        __builtin_memcpy(&pair, a + r * lda + 2 * i, sizeof pair);
        const __m512bh both = (__m512bh)_mm512_set1_epi32(pair);
        for (int t = 0; t < T; t++) acc[r][t] = _mm512_dpbf16_ps(acc[r][t], line[t], both);
      }
    }
  }

  template <bool kFetch, int R>
  static void score_rows(const View& g) {
    const ptrdiff_t tile = g.key_dim * 16;
    for (int page = g.page_begin; page < g.page_end; page++) {
      const uint16_t* keys = g.pages.keys[page];
      for (int t = 0; t < 4; t += kTiles) {
        __m512 acc[R][kTiles];
        for (auto& row : acc) {
          for (__m512& v : row) v = _mm512_setzero_ps();
        }
        accumulate<kFetch, R, kTiles>(acc, g.q, g.key_dim, keys + t * tile, tile, (g.head_dim + 1) / 2,
                                      g.after_keys(page) + t * tile);
        float* s = g.scores + page * kPagePositions + t * 16;
        for (int r = 0; r < R; r++) {
          for (int j = 0; j < kTiles; j++) _mm512_storeu_ps(s + r * kBlock + j * 16, acc[r][j]);
        }
      }
    }
  }

  template <bool kFetch, int R, int T>
  static void value_tiles(const View& g, int d) {
    __m512 acc[R][T];
    float* z = g.z + d * 16;
    for (int r = 0; r < R; r++) {
      for (int j = 0; j < T; j++) acc[r][j] = _mm512_loadu_ps(z + r * g.value_dim + j * 16);
    }
    for (int page = g.page_begin; page < g.page_end; page++) {
      const uint16_t* values = g.pages.values[page] + d * 1024;
      accumulate<kFetch, R, T>(acc, g.p + page * kPagePositions, kBlock, values, 1024, kPagePositions / 2,
                               g.after_values(page) + d * 1024);
    }
    for (int r = 0; r < R; r++) {
      for (int j = 0; j < T; j++) _mm512_storeu_ps(z + r * g.value_dim + j * 16, acc[r][j]);
    }
  }

  template <bool kFetch, int R>
  static void value_rows(const View& g) {
    int d = 0;
    for (; d + kTiles <= g.value_dim / 16; d += kTiles) value_tiles<kFetch, R, kTiles>(g, d);
    for (; d < g.value_dim / 16; d++) value_tiles<kFetch, R, 1>(g, d);
  }

  static void scores(const View& g) {
    for_units<kGroup>(g.units,
                      [&]<int R>() { g.fetch_values ? score_rows<true, R>(g) : score_rows<false, R>(g); });
  }
  static void values(const View& g) {
    for_units<kGroup>(g.units,
                      [&]<int R>() { g.fetch_next ? value_rows<true, R>(g) : value_rows<false, R>(g); });
  }
};

}  // namespace

const AttentionKernels* attention_avx512_bf16() noexcept {
  static constexpr AttentionKernels kernels =
      BlockedAttention<Bf16Dots>::table("bf16 pages, bf16 dot product, AVX512_BF16");
  return &kernels;
}

CodeAttention attention_codes_avx512_bf16() noexcept {
  using Dots = Bf16Dots;
  static constexpr AttentionKernels q8_0 =
      CodeAttentionOf<Dots, Q8Pages, CodeDots<Avx512Lanes, Codes8, 8, 2>>::table(
          "Q8_0 pages, AVX512_BF16, VNNI");
  static constexpr AttentionKernels q4_0 =
      CodeAttentionOf<Dots, Q4Pages, CodeDots<Avx512Lanes, Codes4, 8, 2>>::table(
          "Q4_0 pages, AVX512_BF16, VNNI");
  return {&q8_0, &q4_0};
}

}  // namespace liuli::kernels
