// A block in 16-bit fixed point (fixed16.h), lane = row, over `Vec`: included only by ISA files, after their vector.h.
// The bits are those of scalar/fixed16.cpp.
#pragma once
#include "kernels/fixed16.h"

namespace liuli::kernels {
namespace {

// n blocks side by side: the squares of a block are added one after another, and several blocks
// hide that latency.
template <int n>
LIULI_INLINE void fixed16_side_by_side(const float (*columns)[kPanelRows], int16_t* lines) {
  Vec::F most[n], to_one[n], squares[n];
  for (int b = 0; b < n; b++) most[b] = squares[b] = Vec::zero_f32();
  for (int i = 0; i < kFixedBlock; i++)
    for (int b = 0; b < n; b++)
      most[b] = Vec::larger_magnitude(most[b], Vec::load_f32(columns[b * kFixedBlock + i]));
  for (int b = 0; b < n; b++) {
    most[b] = Vec::drop_below(most[b], kFixedLeast);
    to_one[b] = Vec::div(Vec::set(1.0f), most[b]);
  }
  for (int i = 0; i < kFixedBlock; i++)
    for (int b = 0; b < n; b++) {
      const Vec::F part = Vec::mul(Vec::load_f32(columns[b * kFixedBlock + i]), to_one[b]);
      squares[b] = Vec::fma(part, part, squares[b]);
    }
  for (int b = 0; b < n; b++, columns += kFixedBlock, lines += kFixedLines * kFixedLine) {
    const Vec::F step =
        Vec::larger(Vec::mul(Vec::sqrt(squares[b]), Vec::set(kFixedByLength)), Vec::set(kFixedByLargest));
    const Vec::F scale = Vec::mul(most[b], step), inverse = Vec::div(Vec::set(1.0f), scale);
    for (int i = 0; i < kFixedBlock; i += 2)
      Vec::store(lines + i / 2 * kFixedLine,
                 Vec::pair_of_int16(Vec::mul(Vec::load_f32(columns[i]), inverse),
                                    Vec::mul(Vec::load_f32(columns[i + 1]), inverse)));
    Vec::store(reinterpret_cast<float*>(lines + kFixedScales), scale);
  }
}

/// 64 columns of 16 rows, [column][row], to their lines.
__attribute__((noipa)) void fixed16_lines(const float (*columns)[kPanelRows], int16_t* lines) {
  fixed16_side_by_side<1>(columns, lines);
}

/// Several times 64 columns; returns the end of their lines.
LIULI_INLINE int16_t* fixed16_all(const float (*columns)[kPanelRows], int blocks, int16_t* lines) {
  constexpr int together =
      Vec::kSums < 8 ? 2 : 4;  // four blocks' lengths and factors do not fit sixteen registers
  for (; blocks >= together; blocks -= together) {
    fixed16_side_by_side<together>(columns, lines);
    columns += together * kFixedBlock;
    lines += together * kFixedLines * kFixedLine;
  }
  for (; blocks > 0; blocks--) {
    fixed16_lines(columns, lines);
    columns += kFixedBlock;
    lines += kFixedLines * kFixedLine;
  }
  return lines;
}

}  // namespace
}  // namespace liuli::kernels
