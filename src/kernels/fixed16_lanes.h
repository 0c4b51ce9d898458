// A block in 16-bit fixed point (fixed16.h), lane = row, over `Vec`: included only by ISA files, after their vector.h.
// The bits are those of scalar/fixed16.cpp.
#pragma once
#include "kernels/fixed16.h"

namespace liuli::kernels {
namespace {

/// 64 columns of 16 rows, [column][row], to their lines.
__attribute__((noipa)) void fixed16_lines(const float (*columns)[kPanelRows], int16_t* lines) {
  for (int lane = 0; lane < kPanelRows; lane += Vec::kLanes) {
    Vec::F most = Vec::zero_f32(), squares = Vec::zero_f32();
    for (int i = 0; i < kFixedBlock; i++)
      most = Vec::larger_magnitude(most, Vec::load_f32(columns[i] + lane));
    most = Vec::drop_below(most, kFixedLeast);
    const Vec::F to_one = Vec::div(Vec::set(1.0f), most);
    for (int i = 0; i < kFixedBlock; i++) {
      const Vec::F part = Vec::mul(Vec::load_f32(columns[i] + lane), to_one);
      squares = Vec::fma(part, part, squares);
    }
    const Vec::F step =
        Vec::larger(Vec::mul(Vec::sqrt(squares), Vec::set(kFixedByLength)), Vec::set(kFixedByLargest));
    const Vec::F scale = Vec::mul(most, step), inverse = Vec::div(Vec::set(1.0f), scale);
    for (int i = 0; i < kFixedBlock; i += 2)
      Vec::store(lines + i / 2 * kFixedLine + 2 * lane,
                 Vec::pair_of_int16(Vec::mul(Vec::load_f32(columns[i] + lane), inverse),
                                    Vec::mul(Vec::load_f32(columns[i + 1] + lane), inverse)));
    Vec::store(reinterpret_cast<float*>(lines + kFixedScales) + lane, scale);
  }
}

}  // namespace
}  // namespace liuli::kernels
