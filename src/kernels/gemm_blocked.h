// The blocked product of plain arrays, shared by every engine. Private: each engine's file includes it once, and
// everything lives in an anonymous namespace, so that no copy compiled with wider instructions leaks to other files.
//
//   for a block of K: pack B once (strips of kColumns)
//     for a block of rows: pack A (strips of kRows; stays in L2)
//       for a strip of B: for a strip of A: a tile of C in registers
//
// Between blocks of K a sum rests in C, which is exact: an output's bits depend neither on m, n, nor on who computes
// which part.
//
// An engine gives:
//   Value, kUnit                  element of packed operands (float; uint16_t for bf16); K is padded to a multiple of kUnit
//   kRows, kColumns               a tile of C
//   kLanes                        columns that a tile may leave out at its end (a vector; kColumns where it cannot)
//   pack_rows(x, along, across, k, n, out), pack_columns(…)   a strip: n ≤ kRows (kColumns) members, the missing ones zero;
//                                 along: stride of k, across: between members; one of them is 1
//   tile(a, b, k, c, c_row, resume, columns)   k padded; resume: go on from what c holds
#pragma once
#include "kernels/kernels.h"

namespace liuli::kernels {
namespace {

template <class Engine>
struct BlockedGemm {
  using Value = typename Engine::Value;
  static constexpr int64_t kRows = Engine::kRows, kColumns = Engine::kColumns;
  static constexpr int64_t kBlockRows = 96;  // 96 · 512 · 4 B = 192 KiB
  static_assert(kBlockRows % kRows == 0 && kColumns % Engine::kLanes == 0);

  static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
  static int64_t padded(int64_t k) { return (k + Engine::kUnit - 1) / Engine::kUnit * Engine::kUnit; }
  static size_t floats(int64_t values) { return static_cast<size_t>(values) * sizeof(Value) / sizeof(float); }

  static size_t packed_floats(int64_t n, int64_t k) noexcept {
    return floats((n + kColumns - 1) / kColumns * kColumns * padded(k));
  }
  static size_t scratch_floats(int64_t, int64_t n, int64_t k) noexcept {
    const int64_t block = least(k, kGemmBlock);
    return packed_floats(n, block) + floats(kBlockRows * padded(block));
  }

  static void pack(const GemmArgs& g, int64_t first, int64_t last, float* packed) noexcept {
    for (int64_t at = first * kColumns; at < least(last * kColumns, g.n); at += kColumns)
      Engine::pack_columns(g.b + at * g.b_n, g.b_k, g.b_n, g.k, least(kColumns, g.n - at),
                           reinterpret_cast<Value*>(packed) + at * padded(g.k));
  }

  // At the edge of C: through a full tile beside it.
  static void edge(const Value* a, const Value* b, int64_t k, float* c, int64_t c_row, bool resume,
                   int64_t rows, int64_t columns) {
    alignas(64) float full[kRows * kColumns] = {};
    for (int64_t i = 0; resume && i < rows; i++)
      for (int64_t j = 0; j < columns; j++) full[i * kColumns + j] = c[i * c_row + j];
    const int64_t lanes = (columns + Engine::kLanes - 1) / Engine::kLanes * Engine::kLanes;
    Engine::tile(a, b, k, full, kColumns, resume, lanes);
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < columns; j++) c[i * c_row + j] = full[i * kColumns + j];
  }

  // Rows [row, row + rows) of C, packed A at `a`.
  static void sweep(const GemmArgs& g, int64_t row, int64_t rows, const Value* a, const Value* b) {
    const int64_t k = padded(g.k);
    for (int64_t j = 0; j < g.n; j += kColumns)
      for (int64_t i = 0; i < rows; i += kRows) {
        float* c = g.c + (row + i) * g.c_row + j;
        const int64_t here = least(kRows, rows - i), wide = least(kColumns, g.n - j);
        if (here == kRows && wide % Engine::kLanes == 0)
          Engine::tile(a + i * k, b + j * k, k, c, g.c_row, g.accumulate, wide);
        else
          edge(a + i * k, b + j * k, k, c, g.c_row, g.accumulate, here, wide);
      }
  }

  static void multiply_packed(const GemmArgs& g, const float* packed, float* scratch) noexcept {
    auto* a = reinterpret_cast<Value*>(scratch);
    for (int64_t row = 0; row < g.m; row += kBlockRows) {
      const int64_t rows = least(kBlockRows, g.m - row);
      for (int64_t i = 0; i < rows; i += kRows)
        Engine::pack_rows(g.a + (row + i) * g.a_m, g.a_k, g.a_m, g.k, least(kRows, rows - i),
                          a + i * padded(g.k));
      sweep(g, row, rows, a, reinterpret_cast<const Value*>(packed));
    }
  }

  static void multiply(const GemmArgs& g, float* scratch) noexcept {
    for (int64_t k0 = 0; k0 < g.k || k0 == 0; k0 += kGemmBlock) {
      GemmArgs part = g;
      part.k = least(kGemmBlock, g.k - k0);
      part.a += k0 * g.a_k;
      part.b += k0 * g.b_k;
      part.accumulate = g.accumulate || k0 > 0;
      pack(part, 0, (g.n + kColumns - 1) / kColumns, scratch);
      multiply_packed(part, scratch, scratch + packed_floats(g.n, part.k));
    }
  }

  static constexpr GemmKernel table(const char* name) {
    return {name,           Engine::kRows, Engine::kColumns, &scratch_floats, &multiply,
            &packed_floats, &pack,         &multiply_packed};
  }
};

}  // namespace
}  // namespace liuli::kernels
