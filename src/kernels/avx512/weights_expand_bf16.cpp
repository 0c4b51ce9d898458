// bf16 tiles straight from the codes: two columns are rounded by one vcvtne2ps2bf16. By way of decoded floats in L1
// and rounding in integers, expansion took 27 % of a prompt's time at 48 rows per matrix (experts), Q4_K on Zen 4.
//
// The instruction takes subnormal floats for zero. MXFP4's scales reach down to 2^-127 and keep the other way; all
// others are halves or larger, and what they decode to is zero or above 2^-126.
#include "kernels/avx512/vector.h"
#include "kernels/granule_list.h"
#include "kernels/weights_bf16.h"

namespace liuli::kernels {
namespace {

// Two columns of 16 rows, side by side in every lane.
LIULI_INLINE void store_pair(uint16_t* pair, __m512 even, __m512 odd) {
  alignas(64) static constexpr uint16_t kSideBySide[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                           21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                           11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(odd, even);
  _mm512_storeu_si512(pair, _mm512_permutexvar_epi16(_mm512_load_si512(kSideBySide), both));
}

// Byte b of the quad's codes as weights, with the arithmetic of decode_row.
template <class T, int b>
LIULI_INLINE Vec::F weight(Vec::I code, Vec::F scale, Vec::F minimum) {
  Vec::F w = Vec::unsigned_byte<b>(code);
  if constexpr (T::kOffset >= 0) w = Vec::sub(w, Vec::set(static_cast<float>(1 << T::kOffset)));
  w = Vec::mul(w, scale);
  if constexpr (T::kMinimum) w = Vec::add(w, minimum);
  return w;
}

// The 32 columns of group g: one tile.
template <class T, int g>
LIULI_INLINE void expand_group(const typename T::Scales& scales, const At& at, const uint8_t* next,
                               uint16_t* tile) {
  prefetch_panel_behind<T>(next, g);
  unroll<0, 8>([&](auto quad) __attribute__((always_inline)) {
    constexpr int j = decltype(quad)::value, sub = (32 * g + 4 * j) / T::kSub;
    const Vec::I code = T::template code<g, j>(at);
    const Vec::F scale = T::template scale<sub>(scales, at);
    Vec::F minimum = Vec::zero_f32();
    if constexpr (T::kMinimum) minimum = T::template minimum<sub>(scales, at);
    store_pair(tile + 64 * j, weight<T, 0>(code, scale, minimum), weight<T, 1>(code, scale, minimum));
    store_pair(tile + 64 * j + 32, weight<T, 2>(code, scale, minimum), weight<T, 3>(code, scale, minimum));
  });
}

// Groups [begin, end) of a chunk; those from `present` on lie beyond k.
template <class T>
LIULI_INLINE void expand_chunk(const At& at, const uint8_t* next, int begin, int present, int end,
                               uint16_t* tiles) {
  const typename T::Scales scales = T::scales(at);
  unroll<0, 8>([&](auto group) __attribute__((always_inline)) {
    constexpr int g = decltype(group)::value;
    if (g >= begin && g < present)
      expand_group<T, g>(scales, at, next, tiles + 32 * kPanelRows * (g - begin));
  });
  for (int g = present < begin ? begin : present; g < end; g++)
    __builtin_memset(tiles + 32 * kPanelRows * (g - begin), 0, 32 * kPanelRows * sizeof *tiles);
}

template <class T>
void expand(const uint8_t* panel, int64_t k, int64_t k_begin, int64_t k_end, uint16_t* tiles) noexcept {
  const int64_t stride = panel_stride<T>(k);
  for (int64_t column = k_begin; column < k_end;) {
    const int64_t chunk = column / kChunk, first = chunk * kChunk;
    const int64_t end = k_end < first + kChunk ? k_end : first + kChunk;
    const int64_t in_row = (k - first + 31) / 32;
    const int last = static_cast<int>((end - first) / 32);
    const int present = in_row < last ? static_cast<int>(in_row) : last;
    const At at = chunk_at<T>(panel, chunk);
    expand_chunk<T>(at, at.body + stride, static_cast<int>((column - first) / 32), present, last, tiles);
    tiles += (end - column) * kPanelRows;
    column = end;
  }
}

}  // namespace

void set_expand_avx512_bf16(WeightTable& table) noexcept {
  for_each_granule_type([&](auto t) {
    using T = decltype(t);
    if constexpr (T::kType != DType::mxfp4) table.by_type[static_cast<int>(T::kType)].expand_bf16 = expand<T>;
  });
}

}  // namespace liuli::kernels
