// Attention of generated tokens over pages of codes: 16-bit integers against the codes where they lie, exact integer
// sums, so that every level gives the same bits. Private, as attention_blocked.h.
//
//   scores   q ≈ s_q · Q, |Q| ≤ 32512;  t = s_q · Σ_groups scale[key, group] · Σ_32 Q · code
//   values   of each page and 32 dims: p · scale[key] ≈ s_p · P, |P| ≤ 32512;  z += s_p · Σ_64 P · code
//
// with one fused multiply-add per group (page). Codes are stored with an offset, which the integer sum gives back. Beside
// expanding to bf16 this reads half the bytes, converts nothing per code, and rounds 100 times finer.
#pragma once
#include "kernels/attention_blocked.h"

namespace liuli::kernels {
namespace {

constexpr float kLargestInt = 32512.0f;
constexpr float kLeastScaled = 1e-30f;  // what is smaller is nothing beside a weight of 1

/// kRows units × kTiles tiles of 16 keys (or dims) at a time. kTiles is 1 or 2.
template <class LanesType, class CodesType, int kRows, int kTiles>
struct CodeDots {
  using Lanes = LanesType;
  using Codes = CodesType;
  struct Pages : Codes {
    static constexpr bool kExpands = false, kRoundsWeights = false;
    static size_t values_at(PageShape shape) { return code_layout(shape, Codes::kTileBytes).values(); }
    static size_t value_bytes(PageShape shape) {
      const CodeLayout at = code_layout(shape, Codes::kTileBytes);
      return at.bytes() - at.values();
    }
    static void turn(const uint16_t* page, PageShape shape, uint16_t* values) {
      turn_code_page<Codes>(bytes_of(page), shape, reinterpret_cast<uint8_t*>(values));
    }
  };
  using V = typename Lanes::V;
  using Sums = typename Lanes::Sums;
  using Query = int16_t;
  using Weight = float;
  using View = GroupView<CodeDots>;
  static constexpr int kGroup = kRows;

  static void begin(int) {}
  static void end() {}

  // A unit's integers, then s_q, then kOffset · Σ Q of each group.
  static int query_row(int key_dim) { return (key_dim + 2 + key_dim / 32 * 2 + 31) / 32 * 32; }
  static float query_scale(const int16_t* q, int key_dim) {
    float scale;
    __builtin_memcpy(&scale, q + key_dim, sizeof scale);
    return scale;
  }
  static int32_t query_offset(const int16_t* q, int key_dim, int group) {
    int32_t offset;
    __builtin_memcpy(&offset, q + key_dim + 2 + 2 * group, sizeof offset);
    return offset;
  }
  static V load_part(const float* x, int at, int n) {
    if (at + 16 <= n) return Lanes::load(x + at);
    float part[16] = {};
    for (int i = at; i < n; i++) part[i - at] = x[i];
    return Lanes::load(part);
  }
  static V magnitude(V v) { return Lanes::max(v, Lanes::sub(Lanes::set1(0.0f), v)); }

  static void load_query(const float* q, float scale, int n, int padded, int16_t* out) {
    const V factor = Lanes::set1(scale);
    V top = Lanes::set1(0.0f), nothing = top;  // nothing: 0, or NaN where q is not finite
    for (int d = 0; d < n; d += 16) {
      const V x = Lanes::mul(load_part(q, d, n), factor);
      top = Lanes::max(top, magnitude(x));
      nothing = Lanes::fma(x, Lanes::set1(0.0f), nothing);
    }
    const float largest = Lanes::reduce_max(top);
    const float inverse = largest > kLeastScaled ? kLargestInt / largest : 0.0f;
    const float step = (largest > kLeastScaled ? largest / kLargestInt : 0.0f) + Lanes::reduce_add(nothing);
    for (int d = 0; d < padded; d += 16)
      Lanes::store_i16(out + d, Lanes::mul(Lanes::mul(load_part(q, d, n), factor), Lanes::set1(inverse)));
    __builtin_memcpy(out + padded, &step, sizeof step);
    for (int group = 0; group < padded / 32; group++) {
      int32_t sum = 0;
      for (int d = 0; d < 32; d++) sum += out[32 * group + d];
      sum *= Codes::kOffset;
      __builtin_memcpy(out + padded + 2 + 2 * group, &sum, sizeof sum);
    }
  }
  static void store_weights(float* p, V even, V odd) {
    Lanes::store(p, even);
    Lanes::store(p + 16, odd);
  }

  /// sums[r][t] = Σ of the 8 lines of tile t with a[r]'s 32 integers.
  template <bool kFetch, bool kKeys, int R, int T>
  static inline __attribute__((always_inline)) void accumulate(Sums (&sums)[R][T], const int16_t* a,
                                                               ptrdiff_t lda, const uint8_t* tiles,
                                                               ptrdiff_t tile, const uint8_t* ahead) {
    for (int line = 0; line < 8; line++) {
      typename Lanes::BytePairs pairs[T];
      for (int t = 0; t < T; t++) {
        const uint8_t* at = tiles + t * tile;
        if constexpr (kKeys)
          pairs[t] = Lanes::byte_pairs(Codes::template key_line<Lanes>(at, line));
        else
          pairs[t] = Lanes::byte_pairs(Codes::template value_line<Lanes>(at, line));
        if constexpr (kFetch) {
          if (line * 64 < static_cast<int>(Codes::kTileBytes))
            __builtin_prefetch(ahead + t * tile + line * 64, 0, 2);
        }
      }
      for (int r = 0; r < R; r++)
        for (int t = 0; t < T; t++) sums[r][t] = Lanes::dot(sums[r][t], pairs[t], a + r * lda + 4 * line);
    }
  }

  static void fetch(const uint8_t* line) { __builtin_prefetch(line, 0, 2); }
  static const uint8_t* bytes_of(const uint16_t* at) { return reinterpret_cast<const uint8_t*>(at); }

  template <bool kFetch, int R>
  static void score_rows(const View& g) {
    const CodeLayout at = code_layout({g.head_dim, g.value_dim}, Codes::kTileBytes);
    const int groups = g.key_dim / 32, row = query_row(g.key_dim);
    const auto tile = static_cast<ptrdiff_t>(at.tile);
    for (int page = g.page_begin; page < g.page_end; page++) {
      const uint8_t* keys = bytes_of(g.pages.keys[page]);
      const auto* scales = reinterpret_cast<const uint16_t*>(keys + at.key_scales());
      for (int t = 0; t < 4; t += kTiles) {
        V s[R][kTiles];
        for (auto& unit : s) {
          for (V& v : unit) v = Lanes::set1(0.0f);
        }
        for (int group = 0; group < groups; group++) {
          const int first = t * groups + group;
          Sums sums[R][kTiles];
          for (auto& unit : sums) {
            for (Sums& v : unit) v = Lanes::no_sums();
          }
          if constexpr (kFetch)  // the values' scales: 128 bytes per 32 dims
            fetch(bytes_of(g.after_keys(page)) + (at.value_scales() - at.values()) +
                  64 * static_cast<size_t>(t / kTiles * groups + group));
          accumulate<kFetch, true, R, kTiles>(sums, g.q + 32 * group, row, keys + first * tile, groups * tile,
                                              bytes_of(g.after_keys(page)) + first * tile);
          for (int j = 0; j < kTiles; j++) {
            const V scale = Lanes::widen_f16(scales + (first + j * groups) * 16);
            for (int r = 0; r < R; r++) {
              const int32_t offset = query_offset(g.q + r * row, g.key_dim, group);
              s[r][j] = Lanes::fma(Lanes::less(sums[r][j], offset), scale, s[r][j]);
            }
          }
        }
        for (int r = 0; r < R; r++) {
          const V scale = Lanes::set1(query_scale(g.q + r * row, g.key_dim));
          for (int j = 0; j < kTiles; j++)
            Lanes::store(g.scores + r * kBlock + page * kPagePositions + (t + j) * 16,
                         Lanes::mul(s[r][j], scale));
        }
      }
    }
  }

  // A unit's weights of a page times the scales of 32 dims, as integers.
  struct Scaled {
    float step;
    int32_t offset;
  };
  static Scaled scale_weights(const float* p, const float* scales, int16_t* out) {
    V x[4], top = Lanes::set1(0.0f), sums = top;
    for (int i = 0; i < 4; i++) {
      x[i] = Lanes::mul(Lanes::load(p + 16 * i), Lanes::load(scales + 16 * i));
      top = Lanes::max(top, magnitude(x[i]));
    }
    const float largest = Lanes::reduce_max(top);
    const bool some = largest > kLeastScaled;
    const V inverse = Lanes::set1(some ? kLargestInt / largest : 0.0f);
    for (int i = 0; i < 4; i++) {
      const V whole = Lanes::nearest(Lanes::mul(x[i], inverse));
      Lanes::store_i16(out + 16 * i, whole);
      sums = Lanes::add(sums, whole);
    }
    const float sum = Lanes::reduce_add(sums);  // exact: 64 · 32512 < 2^24; NaN where a scale is
    const bool sound = sum == sum;
    return {(some ? largest / kLargestInt : 0.0f) + (sound ? 0.0f : sum),
            (sound ? static_cast<int32_t>(sum) : 0) * Codes::kOffset};
  }

  // Adds a page's share of 16 or 32 dims that have their scales in common.
  template <bool kFetch, int R, int T>
  static void add_values(const View& g, const int16_t* weights, const Scaled* scaled, const uint8_t* tiles,
                         const uint8_t* ahead, int d) {
    constexpr auto kTile = static_cast<ptrdiff_t>(Codes::kTileBytes);
    Sums sums[R][T];
    for (auto& unit : sums) {
      for (Sums& v : unit) v = Lanes::no_sums();
    }
    for (int half = 0; half < 2; half++)
      accumulate<kFetch, false, R, T>(sums, weights + 32 * half, kPagePositions, tiles + half * kTile,
                                      2 * kTile, ahead + half * kTile);
    for (int r = 0; r < R; r++) {
      float* z = g.z + r * g.value_dim + 16 * d;
      for (int t = 0; t < T; t++) {
        const V sum = Lanes::less(sums[r][t], scaled[r].offset);
        Lanes::store(z + 16 * t, Lanes::fma(sum, Lanes::set1(scaled[r].step), Lanes::load(z + 16 * t)));
      }
    }
  }

  template <bool kFetch, int R>
  static void value_page(const View& g, int page) {
    const CodeLayout at = code_layout({g.head_dim, g.value_dim}, Codes::kTileBytes);
    const uint8_t *values = bytes_of(g.pages.values[page]), *next = bytes_of(g.after_values(page));
    const auto* scales = reinterpret_cast<const uint16_t*>(values + (at.value_scales() - at.values()));
    alignas(64) int16_t weights[R * kPagePositions];
    Scaled scaled[R];
    for (int d = 0; d < g.value_dim / 16; d += 2) {
      if constexpr (kFetch) {  // the next keys' scales
        const uint8_t* ahead = next + at.key_scales() + 64 * static_cast<size_t>(d);
        fetch(ahead);
        fetch(ahead + 64);
      }
      alignas(64) float widened[kPagePositions];
      for (int i = 0; i < kPagePositions; i += 16)
        Lanes::store(widened + i, Lanes::widen_f16(scales + d / 2 * kPagePositions + i));
      for (int r = 0; r < R; r++)
        scaled[r] =
            scale_weights(g.p + r * kBlock + page * kPagePositions, widened, weights + r * kPagePositions);
      const bool two = d + 1 < g.value_dim / 16;
      const size_t first = 2 * static_cast<size_t>(d) * at.tile;
      if (two && kTiles == 2) {
        add_values<kFetch, R, kTiles>(g, weights, scaled, values + first, next + first, d);
        continue;
      }
      add_values<kFetch, R, 1>(g, weights, scaled, values + first, next + first, d);
      if (two)
        add_values<kFetch, R, 1>(g, weights, scaled, values + first + 2 * at.tile, next + first + 2 * at.tile,
                                 d + 1);
    }
  }

  template <bool kFetch, int R>
  static void value_rows(const View& g) {
    for (int page = g.page_begin; page < g.page_end; page++) value_page<kFetch, R>(g, page);
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

/// The kernels of pages of codes: prompts by way of bf16 pages and Engine, generated tokens by CodeDots.
template <class Engine, class CodePages, class Generated>
struct CodeAttentionOf {
  using Expanded = BlockedAttention<Engine, CodePages>;
  using AsTheyLie = BlockedAttention<Generated>;

  static size_t scratch_bytes(PageShape shape, int group) noexcept {
    const size_t a = Expanded::scratch_bytes(shape, group);
    const size_t b = AsTheyLie::scratch_bytes(shape, group);
    return a > b ? a : b;
  }
  static constexpr AttentionKernels table(const char* name) {
    AttentionKernels kernels = Expanded::table(name);
    kernels.scratch_bytes = &scratch_bytes;
    kernels.attend_generated = &AsTheyLie::attend;
    return kernels;
  }
};

}  // namespace
}  // namespace liuli::kernels
