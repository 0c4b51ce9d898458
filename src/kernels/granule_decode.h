// The decode class over granule types: integer activations against unsigned codes. Included only by ISA
// files.
//
// One row runs straight from the panel, everything unrolled (also a row's last chunk, which is not whole at 576 or 896
// columns). Several rows unpack a chunk once into L1 and dot
// it with each row: eight groups times eight rows of unrolled code would leave the micro-op cache. Both
// compute, per sub-block, f = fma(float(Σ code·q), scale, f), then f = fma(minimum, Σ q, f): the same bits.
#pragma once
#include "kernels/granule_lattices.h"
#include "kernels/granule_list.h"
#include "kernels/granule_unpacked.h"
#include "kernels/panels.h"
#include "kernels/weight_parts.h"

namespace liuli::kernels {
namespace {

// Asks for a chunk's share of sub-block i, 8 KiB ahead, into L2, at the pace of reading; a burst is slower than none.
//
// Who reads upwards, line by line, without a gap and without pausing, does better without: the processor runs ahead by
// itself, and software's requests take the line buffers of L1 (24 on Zen 4). Several rows pause for a chunk's arithmetic, and so
// does one row of types whose bytes hold codes of four groups (kFetchAhead). Zen 4, one thread, GiB/s without / with: Q8_0
// 27.6 / 18.0, Q6_K 29 / 21, Q4_0 28.7 / 23; Q3_K 18.1 / 22.7, Q2_K 13.5 / 18.3; four rows of Q4_K 5.8 / 9.8.
template <class T>
LIULI_INLINE void prefetch_share(const uint8_t* body, int i) {
  constexpr int lines = T::kBytes / 64 + T::kPaired, subs = kChunk / T::kSub, ahead = 8192;
  for (int l = lines * i / subs; l < lines * (i + 1) / subs; l++)
    __builtin_prefetch(body + ahead + 64 * l, 0, 2);
}

LIULI_INLINE int groups_of(int64_t k, int64_t chunk) {
  const int64_t left = (k - chunk * kChunk) / 32;
  return static_cast<int>(left < 8 ? left : 8);
}

// What a sub-block's integer sum starts from: minus the offset times Σ q.
template <class T, int sub>
LIULI_INLINE Vec::Sum start_sum(const ActivationChunk& act, int i) {
  constexpr int offset = T::kOffset < 0 ? 0 : 1 << T::kOffset;
  return Vec::start(sub == 16 ? act.negative_sum16[i] : act.negative_sum32[i], offset);
}

LIULI_INLINE float activation_sum(const ActivationChunk& act, int sub, int i) {
  return sub == 16 ? act.sum16[i] : act.sum32[i];
}

// ---- one row ---------------------------------------------------------------------------------------------

// `groups` of 32 columns, if the chunk is not whole.
template <class T, bool whole>
LIULI_INLINE Vec::F dot_chunk(const At& at, const ActivationChunk& act, int groups) {
  const typename T::Scales scales = T::scales(at);
  constexpr int subs = kChunk / T::kSub, quads = T::kSub / 4;
  Vec::F f = Vec::zero_f32();
  unroll<0, subs>([&](auto index) __attribute__((always_inline)) {
    constexpr int i = decltype(index)::value;
    if (!whole && T::kSub * i >= 32 * groups) return;
    if (T::kFetchAhead) prefetch_share<T>(at.body, i);
    const Vec::F scale = T::template scale<i>(scales, at);
    Vec::F minimum = Vec::zero_f32();
    if constexpr (T::kMinimum) minimum = T::template minimum<i>(scales, at);
    // Scales are read before codes, in the order they lie: Q4_0 24.9 -> 28.7 GiB/s, Q5_0 23.0 -> 28.8. And groups share
    // lines (a byte holds codes of two or four): reading one again costs less than the spills by which GCC would keep it.
    asm volatile("" ::: "memory");
    Vec::Sum sum = start_sum<T, T::kSub>(act, i);
    unroll<quads * i, quads * i + quads>([&](auto q) __attribute__((always_inline)) {
      constexpr int quad = decltype(q)::value;
      Vec::dot<T::kBits + code_shift<T>(quad / 8), quad % quads, quads>(
          sum, T::template code<quad / 8, quad % 8>(at), act, 4 * quad);
    });
    f = Vec::fma(Vec::to_f32(Vec::finish(sum)), scale, f);
    if constexpr (T::kMinimum) f = Vec::fma(minimum, Vec::set(activation_sum(act, T::kSub, i)), f);
  });
  return f;
}

// ---- several rows ---------------------------------------------------------------------------------------

/// Bits of any code as code<g, j> gives it.
template <class T>
constexpr int kMostBits = [] {
  int most = 0;
  for (int g = 0; g < 8; g++) most = T::kBits + code_shift<T>(g) > most ? T::kBits + code_shift<T>(g) : most;
  return most;
}();

// R rows share each code vector. `body`, if given: the chunk from which to prefetch on.
template <class T, int R>
LIULI_INLINE void dot_unpacked(const Unpacked<T>& w, const uint8_t* body, int subs,
                               const ActivationChunk* act, float (*total)[kPanelRows]) {
  constexpr int quads = Unpacked<T>::kQuads;
  Vec::F f[R];
  for (int r = 0; r < R; r++) f[r] = Vec::zero_f32();
  for (int i = 0; i < subs; i++) {
    Vec::Sum sum[R];
    if (body) prefetch_share<T>(body, i);
    for (int r = 0; r < R; r++) sum[r] = start_sum<T, T::kSub>(act[r], i);
    unroll<0, quads>([&](auto quad) __attribute__((always_inline)) {
      constexpr int j = decltype(quad)::value;
      const Vec::I code = Vec::load(w.codes[quads * i + j]);
#pragma GCC unroll 4
      for (int r = 0; r < R; r++) Vec::dot<kMostBits<T>, j, quads>(sum[r], code, act[r], 4 * (quads * i + j));
    });
    const Vec::F scale = Vec::load_f32(w.scale[i]);
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
      f[r] = Vec::fma(Vec::to_f32(Vec::finish(sum[r])), scale, f[r]);
      if constexpr (T::kMinimum)
        f[r] = Vec::fma(Vec::load_f32(w.minimum[i]), Vec::set(activation_sum(act[r], T::kSub, i)), f[r]);
    }
  }
  for (int r = 0; r < R; r++)
    Vec::store(total[r], Vec::fma(f[r], Vec::set(act[r].scale), Vec::load_f32(total[r])));
}

/// Rows whose sums, of two planes, the registers have room for; at most four.
constexpr int kRowsOfPlanes = Vec::kSums / 2 < 4 ? Vec::kSums / 2 : 4;

// n_rows ≤ 8 rows of one chunk, a few at a time.
template <class T>
void dot_rows(const Unpacked<T>& w, const uint8_t* body, int subs, const ActivationChunk* act, int n_rows,
              float (*total)[kPanelRows]) {
  int m = 0;
  const auto take = [&](auto rows) __attribute__((always_inline)) {
    constexpr int R = decltype(rows)::value;
    for (; m + R <= n_rows; m += R) dot_unpacked<T, R>(w, m == 0 ? body : nullptr, subs, act + m, total + m);
  };
  take(Index<kRowsOfPlanes>{});
  if constexpr (kRowsOfPlanes > 2) take(Index<2>{});
  take(Index<1>{});
}

constexpr int kRowsAtOnce = 8;

// Rows [first, first + n_rows) of n_all, n_rows ≤ 8.
template <class T>
void decode_rows(const uint8_t* panel, int64_t k, const ActivationChunk* act, int n_all, int n_rows, float* y,
                 ptrdiff_t ldy) {
  alignas(64) float total[kRowsAtOnce][kPanelRows] = {};
  Unpacked<T> w;
  for (int64_t chunk = 0; chunk * kChunk < k; chunk++, act += n_all) {
    const int groups = groups_of(k, chunk);
    const At at = chunk_at<T>(panel, chunk);
    unpack<T>(at, groups, w);
    dot_rows<T>(w, at.body, groups * 32 / T::kSub, act, n_rows, total);
  }
  for (int m = 0; m < n_rows; m++) Vec::store(y + m * ldy, Vec::load_f32(total[m]));
}

template <class T>
void decode_one_row(const uint8_t* panel, int64_t k, const ActivationChunk* act, float* y) {
  Vec::F total = Vec::zero_f32();
  const int64_t whole = k / kChunk;
  for (int64_t chunk = 0; chunk < whole; chunk++) {
    const Vec::F f = dot_chunk<T, true>(chunk_at<T>(panel, chunk), act[chunk], 8);
    total = Vec::fma(f, Vec::set(act[chunk].scale), total);
  }
  if (T::kColumns < kChunk && whole * kChunk < k) {
    const Vec::F f = dot_chunk<T, false>(chunk_at<T>(panel, whole), act[whole], groups_of(k, whole));
    total = Vec::fma(f, Vec::set(act[whole].scale), total);
  }
  Vec::store(y, total);
}

template <class T>
void decode_x16(const uint8_t* panel, int64_t k, const ActivationChunk* act, int n_rows, float* y,
                ptrdiff_t ldy) noexcept {
  if constexpr (!kLattice<T>) {
    if (n_rows == 1) return decode_one_row<T>(panel, k, act, y);
  }
  for (int m = 0; m < n_rows; m += kRowsAtOnce)
    decode_rows<T>(panel, k, act + m, n_rows, n_rows - m < kRowsAtOnce ? n_rows - m : kRowsAtOnce,
                   y + m * ldy, ldy);
}

/// For for_each_granule_type() and for_each_lattice_type(): each type's kernel into its place of the table.
struct SetDecode {
  WeightTable& table;
  template <class T>
  void operator()(T) const {
    WeightKernels& w = table.by_type[static_cast<int>(T::kType)];
    w.integer_decode = true;
    w.decode_x16 = decode_x16<T>;
  }
};

}  // namespace
}  // namespace liuli::kernels
