// The prompt product of 16-bit fixed point (fixed16.h) in 256-bit registers, over `Pairs::add(sum, w, q)`: a level's way to
// add the products of two columns to 32-bit sums. Included only by ISA files; all of it has internal linkage.
#pragma once
#include "kernels/avx2/prompt_transpose.h"
#include "kernels/avx2/vector.h"

#include "kernels/fixed16_lanes.h"
#include "kernels/prompt_blocked.h"

namespace liuli::kernels {
namespace {

template <class Pairs>
struct Fixed16Engine : FixedColumns {
  // All rows of a strip one after another: its activations, 16.5 KiB, and the panel's as much are read out of L1 then.
  static constexpr int kRows = kStrip, kPanels = 1, kGroup = 4, kChunk = 512;

  static void pack(const float* x, ptrdiff_t ldx, int rows, int64_t k, int16_t* out) {
    alignas(64) float columns[kFixedBlock][kPanelRows];
    for (int64_t i = 0; i < k; i += kFixedBlock, out += kFixedLines * kFixedLine) {
      for (int j = 0; j < kFixedBlock; j += 8) transpose_rows(x, ldx, rows, i + j, k, columns[j]);
      fixed16_lines(columns, out);
    }
  }

  template <int R, int P>
  static void tile(const RegisterTile<int16_t>& t) {
    multiply_strip(t, R);
  }

  // Six rows at a time, the last of a whole strip four: rows there are not are multiplied as the zeros they are.
  static __attribute__((noinline)) void multiply_strip(const RegisterTile<int16_t>& t, int rows) {
    alignas(64) float sums[kStrip][kPanelRows] = {};
    if (t.c_in)
      for (int r = 0; r < rows; r++) __builtin_memcpy(sums[r], t.c_in + r * t.ldc_in, sizeof sums[r]);
    for (int r = 0; r < rows;) {
      const int left = rows - r, step = left > 4 ? 6 : left > 2 ? 4 : 2;
      const auto add = step == 6 ? &add_blocks<6> : step == 4 ? &add_blocks<4> : &add_blocks<2>;
      add(t.a + 2 * r, t.b, t.units / (kFixedBlock / 2), sums + r);
      r += step;
    }
    for (int r = 0; r < rows; r++) __builtin_memcpy(t.c_out + r * t.ldc_out, sums[r], sizeof sums[r]);
  }

  template <int R>
  static __attribute__((noinline)) void add_blocks(const int16_t* a, const int16_t* b, int blocks,
                                                   float (*sums)[kPanelRows]) {
    for (; blocks > 0; blocks--, a += kFixedLines * kFixedLine, b += kFixedLines * kFixedLine)
      add_block<R>(a, b, sums);
  }

  LIULI_INLINE __m256i word_of_row(const int16_t* line, int r) {
    int word;
    __builtin_memcpy(&word, line + 2 * r, sizeof word);
    return EightLanes::words(word);
  }

  // 12 accumulators, two registers of weights, a broadcast and a product fill the 16 there are.
  template <int R>
  LIULI_INLINE void add_block(const int16_t* a, const int16_t* b, float (*sums)[kPanelRows]) {
    __m256i acc[R][2];
#pragma GCC unroll 6
    for (int r = 0; r < R; r++) acc[r][0] = acc[r][1] = EightLanes::zero();
#pragma GCC unroll 1
    for (int i = 0; i < kFixedBlock / 2; i++) {
      const __m256i w[2] = {EightLanes::load(b + i * kFixedLine), EightLanes::load(b + i * kFixedLine + 16)};
#pragma GCC unroll 6
      for (int r = 0; r < R; r++) {
        const __m256i q = word_of_row(a + i * kFixedLine, r);
        Pairs::add(acc[r][0], w[0], q);
        Pairs::add(acc[r][1], w[1], q);
      }
    }
    const auto* scales = reinterpret_cast<const float*>(b + kFixedScales);
    const __m256 low = EightLanes::load_f32(scales), high = EightLanes::load_f32(scales + 8);
#pragma GCC unroll 6
    for (int r = 0; r < R; r++) {
      const __m256 row_scale = EightLanes::as_f32(word_of_row(a + kFixedScales, r));
      add_scaled(sums[r], acc[r][0], EightLanes::mul(low, row_scale));
      add_scaled(sums[r] + 8, acc[r][1], EightLanes::mul(high, row_scale));
    }
    asm volatile("" ::: "memory");  // GCC would carry the sums in registers that there are not
  }

  LIULI_INLINE void add_scaled(float* sums, __m256i integers, __m256 scale) {
    EightLanes::store(sums, EightLanes::fma(EightLanes::to_f32(integers), scale, EightLanes::load_f32(sums)));
  }
};

}  // namespace
}  // namespace liuli::kernels
