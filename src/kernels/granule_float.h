// Kernels over decoded weights: the f32 class, decode_f32, and the bf16 tiles of the prompt class. Included
// only by ISA files. A type is either "plain" (F32, F16, BF16: a register of weights per column, straight
// from the panel) or "chunked" (a chunk of 256 columns is decoded to f32 in L1 first; 16 KiB).
#pragma once
#include "kernels/fixed16_lanes.h"
#include "kernels/granule_fp8.h"
#include "kernels/granule_list.h"
#include "kernels/granule_unpacked.h"
#include "kernels/isa_tables.h"
#include "kernels/panels.h"

namespace liuli::kernels {
namespace {

// ---- plain types ----------------------------------------------------------------------------------------

// weights<odd>(panel, pair): column 2 · pair + odd.
struct PlainF32 {
  static constexpr DType kType = DType::f32;
  static constexpr int kPairBytes = 128;
  template <bool odd>
  LIULI_INLINE Vec::F weights(const uint8_t* panel, int64_t pair) {
    return Vec::load_f32(reinterpret_cast<const float*>(panel + pair * kPairBytes + 64 * odd));
  }
};
struct PlainF16 {
  static constexpr DType kType = DType::f16;
  static constexpr int kPairBytes = 64;
  template <bool odd>
  LIULI_INLINE Vec::F weights(const uint8_t* panel, int64_t pair) {
    return Vec::half_of_pair<odd>(panel + pair * kPairBytes);
  }
};
struct PlainBf16 {
  static constexpr DType kType = DType::bf16;
  static constexpr int kPairBytes = 64;
  template <bool odd>
  LIULI_INLINE Vec::F weights(const uint8_t* panel, int64_t pair) {
    return Vec::bf16_of_pair<odd>(panel + pair * kPairBytes);
  }
};

// R rows at once. `split`: even and odd columns have their own accumulators (decode class); else one, k
// ascending.
//
// Lines are asked for ahead for several rows only, as in granule_decode.h. Zen 4, one thread, GiB/s with 2 KiB into L1 for all ->
// this: F16 one row 22 -> 26, four 11 -> 14.8; F32 eight rows 16 -> 24, but four (two times two) 18 -> 15.7.
template <class T, int R, bool split>
void plain_rows(const uint8_t* panel, int64_t k, const float* x, ptrdiff_t ldx, float* y, ptrdiff_t ldy) {
  constexpr int ahead = 8192;
  Vec::F even[R], odd[R];
  for (int r = 0; r < R; r++) even[r] = odd[r] = Vec::zero_f32();
  for (int64_t pair = 0; pair < (k + 1) / 2; pair++) {
    if (R > 1)
      for (int i = 0; i < T::kPairBytes; i += 64)
        __builtin_prefetch(panel + pair * T::kPairBytes + ahead + i, 0, 2);
    const Vec::F w0 = T::template weights<false>(panel, pair), w1 = T::template weights<true>(panel, pair);
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      const float* xr = x + r * ldx + 2 * pair;
      even[r] = Vec::fma(w0, Vec::set(xr[0]), even[r]);
      Vec::F& second = split ? odd[r] : even[r];
      second = Vec::fma(w1, Vec::set(xr[1]), second);
    }
  }
  for (int r = 0; r < R; r++) Vec::store(y + r * ldy, split ? Vec::add(even[r], odd[r]) : even[r]);
}

template <class T, bool split>
void plain_product(const uint8_t* panel, int64_t k, const float* x, ptrdiff_t ldx, int n_rows, float* y,
                   ptrdiff_t ldy) noexcept {
  constexpr int most = kRowsOfSums<split>;
  int m = 0;
  for (; m + most <= n_rows; m += most)
    plain_rows<T, most, split>(panel, k, x + m * ldx, ldx, y + m * ldy, ldy);
  for (; m + 2 <= n_rows; m += 2) plain_rows<T, 2, split>(panel, k, x + m * ldx, ldx, y + m * ldy, ldy);
  if (m < n_rows) plain_rows<T, 1, split>(panel, k, x + m * ldx, ldx, y + m * ldy, ldy);
}

// ---- chunked types --------------------------------------------------------------------------------------

/// Decoded weights of a chunk: [column][row].
using DecodedChunk = float[kChunk][kPanelRows];
/// Decodes groups [begin, end) of 32 columns of a chunk into out[0 …].
using DecodeGroups = void (*)(const uint8_t* panel, int64_t k, int64_t chunk, int begin, int end,
                              float (*out)[kPanelRows]);

// The 32 columns of group g, with the arithmetic of decode_row: scale · (code − offset), rounded, plus the
// minimum.
template <class T, int g>
LIULI_INLINE void decode_group(const typename T::Scales& scales, const At& at, float (*out)[kPanelRows]) {
  unroll<0, 8>([&](auto quad) __attribute__((always_inline)) {
    constexpr int j = decltype(quad)::value, sub = (32 * g + 4 * j) / T::kSub;
    const Vec::I code = T::template code<g, j>(at);
    const Vec::F scale = T::template scale<sub>(scales, at);
    unroll<0, 4>([&](auto byte) __attribute__((always_inline)) {
      constexpr int b = decltype(byte)::value;
      Vec::F w = Vec::unsigned_byte<b>(code);
      if constexpr (T::kOffset >= 0) w = Vec::sub(w, Vec::set(static_cast<float>(1 << T::kOffset)));
      w = Vec::mul(w, scale);
      if constexpr (T::kMinimum) w = Vec::add(w, T::template minimum<sub>(scales, at));
      Vec::store(out[4 * j + b], w);
    });
  });
}

template <class T>
void decode_granules(const uint8_t* panel, int64_t /*k*/, int64_t chunk, int begin, int end,
                     float (*out)[kPanelRows]) {
  const At at = chunk_at<T>(panel, chunk);
  const typename T::Scales scales = T::scales(at);
  unroll<0, 8>([&](auto group) __attribute__((always_inline)) {
    constexpr int g = decltype(group)::value;
    if (g >= begin && g < end) decode_group<T, g>(scales, at, out + 32 * (g - begin));
  });
}

// Lattice points: their codes first, in L1.
template <class T>
void decode_points(const uint8_t* panel, int64_t /*k*/, int64_t chunk, int begin, int end,
                   float (*out)[kPanelRows]) {
  Unpacked<T> w;
  unpack_points<T>(chunk_at<T>(panel, chunk), begin, end, w);
  for (int quad = 8 * begin; quad < 8 * end; quad++) {
    const Vec::I code = Vec::load(w.codes[quad]);
    const Vec::F scale = Vec::load_f32(w.scale[4 * quad / T::kSub]);
    unroll<0, 4>([&](auto byte) __attribute__((always_inline)) {
      constexpr int b = decltype(byte)::value;
      const Vec::F signed_code =
          Vec::sub(Vec::unsigned_byte<b>(code), Vec::set(static_cast<float>(1 << T::kOffset)));
      Vec::store(out[4 * (quad - 8 * begin) + b], Vec::mul(signed_code, scale));
    });
  }
}

// Types in the "rows" form: scalar code decodes, whole chunks.
template <DType type>
void decode_file_rows(const uint8_t* panel, int64_t k, int64_t chunk, int begin, int end,
                      float (*out)[kPanelRows]) {
  alignas(64) DecodedChunk all;
  decode_chunk(type, panel, k, chunk, all[0]);
  __builtin_memcpy(out, all[32 * begin], static_cast<size_t>(end - begin) * 32 * sizeof *out);
}

LIULI_INLINE int groups_in_chunk(int64_t k, int64_t chunk) {
  const int64_t groups = (k - chunk * kChunk + 31) / 32;
  return static_cast<int>(groups < 8 ? groups : 8);
}

// sums[…] += columns of one chunk; R rows at once. Two accumulators per row if `split`, at sums and sums +
// odd_sums.
template <int R, bool split>
void add_products(const DecodedChunk& w, int columns, const float* x, ptrdiff_t ldx, float* sums,
                  ptrdiff_t lds, ptrdiff_t odd_sums) {
  Vec::F even[R], odd[R];
  for (int r = 0; r < R; r++) {
    even[r] = Vec::load_f32(sums + r * lds);
    if (split) odd[r] = Vec::load_f32(sums + odd_sums + r * lds);
  }
  for (int i = 0; i < columns; i += 2) {
    const Vec::F w0 = Vec::load_f32(w[i]), w1 = Vec::load_f32(w[i + 1]);
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      even[r] = Vec::fma(w0, Vec::set(x[r * ldx + i]), even[r]);
      Vec::F& second = split ? odd[r] : even[r];
      second = Vec::fma(w1, Vec::set(x[r * ldx + i + 1]), second);
    }
  }
  for (int r = 0; r < R; r++) {
    Vec::store(sums + r * lds, even[r]);
    if (split) Vec::store(sums + odd_sums + r * lds, odd[r]);
  }
}

template <bool split>
LIULI_INLINE void add_rows(const DecodedChunk& w, int columns, const float* x, ptrdiff_t ldx, int n_rows,
                           float* sums, ptrdiff_t lds, ptrdiff_t odd_sums = 0) {
  constexpr int most = kRowsOfSums<split>;
  int m = 0;
  for (; m + most <= n_rows; m += most)
    add_products<most, split>(w, columns, x + m * ldx, ldx, sums + m * lds, lds, odd_sums);
  for (; m < n_rows; m++) add_products<1, split>(w, columns, x + m * ldx, ldx, sums + m * lds, lds, odd_sums);
}

LIULI_INLINE void clear(float* y, ptrdiff_t ldy, int n_rows) {
  for (int m = 0; m < n_rows; m++) Vec::store(y + m * ldy, Vec::zero_f32());
}

// (noipa: or GCC makes a copy of these loops for every decoder.)
//
// y itself holds the accumulators between chunks: each chunk is decoded once, whatever n_rows is.
__attribute__((noipa)) void chunked_product(DecodeGroups decode, const uint8_t* panel, int64_t k,
                                            const float* x, ptrdiff_t ldx, int n_rows, float* y,
                                            ptrdiff_t ldy) {
  alignas(64) DecodedChunk w;
  clear(y, ldy, n_rows);
  for (int64_t chunk = 0; chunk * kChunk < k; chunk++) {
    const int groups = groups_in_chunk(k, chunk);
    decode(panel, k, chunk, 0, groups, w);
    add_rows<false>(w, 32 * groups, x + chunk * kChunk, ldx, n_rows, y, ldy);
  }
}

// Eight rows at a time: their sixteen accumulators wait in L1 between chunks.
__attribute__((noipa)) void chunked_decode(DecodeGroups decode, const uint8_t* panel, int64_t k,
                                           const float* x, ptrdiff_t ldx, int n_rows, float* y,
                                           ptrdiff_t ldy) {
  alignas(64) DecodedChunk w;
  alignas(64) float sums[2][8][kPanelRows];
  for (int m = 0; m < n_rows; m += 8) {
    const int rows = n_rows - m < 8 ? n_rows - m : 8;
    clear(sums[0][0], kPanelRows, 16);
    for (int64_t chunk = 0; chunk * kChunk < k; chunk++) {
      const int groups = groups_in_chunk(k, chunk);
      decode(panel, k, chunk, 0, groups, w);
      add_rows<true>(w, 32 * groups, x + m * ldx + chunk * kChunk, ldx, rows, sums[0][0], kPanelRows,
                     8 * kPanelRows);
    }
    for (int r = 0; r < rows; r++)
      Vec::store(y + (m + r) * ldy, Vec::add(Vec::load_f32(sums[0][r]), Vec::load_f32(sums[1][r])));
  }
}

// ---- bf16 tiles -----------------------------------------------------------------------------------------

template <class T>
void plain_expand(const uint8_t* panel, int64_t k, int64_t k_begin, int64_t k_end, uint16_t* tiles) noexcept {
  // The panel is padded with zeros to 64 columns; tiles end there too.
  (void)k;
  for (int64_t pair = k_begin / 2; pair < k_end / 2; pair++, tiles += 32)
    Vec::store(tiles, Vec::pair_of_bf16(T::template weights<false>(panel, pair),
                                        T::template weights<true>(panel, pair)));
}

template <class T>
void plain_expand_fixed16(const uint8_t* panel, int64_t, int64_t k_begin, int64_t k_end,
                          int16_t* lines) noexcept {
  alignas(64) float columns[kFixedBlock][kPanelRows];
  for (int64_t at = k_begin; at < k_end; at += kFixedBlock, lines += kFixedLines * kFixedLine) {
    for (int i = 0; i < kFixedBlock; i += 2) {
      Vec::store(columns[i], T::template weights<false>(panel, (at + i) / 2));
      Vec::store(columns[i + 1], T::template weights<true>(panel, (at + i) / 2));
    }
    fixed16_lines(columns, lines);
  }
}

// Groups of 32 columns [begin, end) of a chunk; those from `present` on lie beyond k.
__attribute__((noipa)) void expand_groups(DecodeGroups decode, const uint8_t* panel, int64_t k, int64_t chunk,
                                          int begin, int end, uint16_t* tiles) {
  alignas(64) DecodedChunk w;
  const int groups = groups_in_chunk(k, chunk), present = groups < end ? groups : end;
  if (begin < present) decode(panel, k, chunk, begin, present, w);
  for (int i = 0; i < 32 * (end - begin); i += 2, tiles += 32) {
    if (i < 32 * (present - begin))
      Vec::store(tiles, Vec::pair_of_bf16(Vec::load_f32(w[i]), Vec::load_f32(w[i + 1])));
    else
      Vec::store(tiles, Vec::zero());
  }
}

__attribute__((noipa)) void chunked_expand(DecodeGroups decode, const uint8_t* panel, int64_t k,
                                           int64_t k_begin, int64_t k_end, uint16_t* tiles) {
  for (int64_t at = k_begin; at < k_end;) {
    const int64_t chunk = at / kChunk, chunk_end = (chunk + 1) * kChunk,
                  end = k_end < chunk_end ? k_end : chunk_end;
    expand_groups(decode, panel, k, chunk, static_cast<int>(at % kChunk / 32),
                  static_cast<int>((end - chunk * kChunk) / 32), tiles);
    tiles += (end - at) * kPanelRows;
    at = end;
  }
}

// ---- the table entries ----------------------------------------------------------------------------------

template <class T>
void set_plain(WeightKernels& w) {
  w.decode_f32 = plain_product<T, true>;
  w.product_f32 = plain_product<T, false>;
  w.expand_bf16 = plain_expand<T>;
}

// Only the decoder is compiled per type; the loops around it are shared.
template <DecodeGroups decode>
void set_chunked(WeightKernels& w) {
  w.decode_f32 = [](const uint8_t* panel, int64_t k, const float* x, ptrdiff_t ldx, int n_rows, float* y,
                    ptrdiff_t ldy) noexcept { chunked_decode(decode, panel, k, x, ldx, n_rows, y, ldy); };
  w.product_f32 = [](const uint8_t* panel, int64_t k, const float* x, ptrdiff_t ldx, int n_rows, float* y,
                     ptrdiff_t ldy) noexcept { chunked_product(decode, panel, k, x, ldx, n_rows, y, ldy); };
  w.expand_bf16 = [](const uint8_t* panel, int64_t k, int64_t k_begin, int64_t k_end,
                     uint16_t* tiles) noexcept { chunked_expand(decode, panel, k, k_begin, k_end, tiles); };
}

void set_float_kernels(WeightTable& table) {
  const auto entry = [&](DType type) -> WeightKernels& { return table.by_type[static_cast<int>(type)]; };
  set_plain<PlainF32>(entry(DType::f32));
  set_plain<PlainF16>(entry(DType::f16));
  set_plain<PlainBf16>(entry(DType::bf16));
  entry(DType::f16).expand_fixed16 = plain_expand_fixed16<PlainF16>;
  set_fp8(entry(DType::f8_e4m3_b128));
  for_each_granule_type([&](auto t) {
    using T = decltype(t);
    set_chunked<decode_granules<T>>(entry(T::kType));
  });
  for_each_lattice_type([&](auto t) {
    using T = decltype(t);
    set_chunked<decode_points<T>>(entry(T::kType));
  });
  set_chunked<decode_file_rows<DType::i8>>(entry(DType::i8));
  set_chunked<decode_file_rows<DType::i16>>(entry(DType::i16));
  set_chunked<decode_file_rows<DType::i32>>(entry(DType::i32));
  set_chunked<decode_file_rows<DType::i64>>(entry(DType::i64));
  set_chunked<decode_file_rows<DType::f64>>(entry(DType::f64));
}

}  // namespace
}  // namespace liuli::kernels
