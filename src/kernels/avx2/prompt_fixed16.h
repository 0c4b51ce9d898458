// The prompt product of 16-bit fixed point (fixed16.h) in 256-bit registers, over `Pairs::add(sum, w, q)`: a level's way to
// add the products of two columns to 32-bit sums. Included only by ISA files; all of it has internal linkage.
#pragma once
#include "kernels/avx2/prompt_strip.h"
#include "kernels/fixed16_lanes.h"

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
    multiply(t, R);
  }

  static __attribute__((noinline)) void multiply(const RegisterTile<int16_t>& t, int rows) {
    multiply_strip(t, rows, [&](auto step, const int16_t* a, float(*sums)[kPanelRows]) {
      add_blocks<step.value>(a, t.b, t.units / (kFixedBlock / 2), sums);
    });
  }

  template <int R>
  static __attribute__((noinline)) void add_blocks(const int16_t* a, const int16_t* b, int blocks,
                                                   float (*sums)[kPanelRows]) {
    for (; blocks > 0; blocks--, a += kFixedLines * kFixedLine, b += kFixedLines * kFixedLine)
      add_block<R>(a, b, sums);
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
