// A strip of 16 rows times one panel, out of L1, for the integer engines in 256-bit registers. Included only by ISA files; all
// of it has internal linkage.
#pragma once
#include <type_traits>

#include "kernels/avx2/prompt_transpose.h"
#include "kernels/avx2/vector.h"

#include "kernels/prompt_blocked.h"

namespace liuli::kernels {
namespace {

constexpr int kRowBytes = 4;  // of a row in a line: a pair of 16 bits, four bytes, or a scale

/// A row's word of a line, in every lane.
template <class Value>
LIULI_INLINE __m256i word_of_row(const Value* line, int r) {
  int word;
  __builtin_memcpy(&word, line + r * (kRowBytes / sizeof(Value)), sizeof word);
  return EightLanes::words(word);
}

/// add(rows, a, sums) for six rows at a time, the last of a whole strip four; `rows` is an integral_constant. Rows there are not are
/// multiplied as the zeros they are.
template <class Value, class Add>
LIULI_INLINE void multiply_strip(const RegisterTile<Value>& t, int rows, Add&& add) {
  alignas(64) float sums[kStrip][kPanelRows] = {};
  if (t.c_in)
    for (int r = 0; r < rows; r++) __builtin_memcpy(sums[r], t.c_in + r * t.ldc_in, sizeof sums[r]);
  for (int r = 0; r < rows;) {
    const Value* a = t.a + r * (kRowBytes / sizeof(Value));
    const int left = rows - r;
    if (left > 4)
      add(std::integral_constant<int, 6>{}, a, sums + r), r += 6;
    else if (left > 2)
      add(std::integral_constant<int, 4>{}, a, sums + r), r += 4;
    else
      add(std::integral_constant<int, 2>{}, a, sums + r), r += 2;
  }
  for (int r = 0; r < rows; r++) __builtin_memcpy(t.c_out + r * t.ldc_out, sums[r], sizeof sums[r]);
}

}  // namespace
}  // namespace liuli::kernels
