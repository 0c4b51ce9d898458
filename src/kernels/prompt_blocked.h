// The blocked prompt product, shared by the levels without a matrix unit. Private: each ISA file includes it
// once, and everything lives in an anonymous namespace, so that no copy compiled with wider instructions
// leaks to other files.
//
//   for a group of panels
//     for a chunk of K: expand the group's weights once into scratch (B, stays in L2)
//       for a few rows (A, stays in L1): register tiles of rows × panels, one f32 accumulator per output, k
//       ascending
//
// A wider group reads A less often from where it does not fit (4 MiB for 512 rows of 4096), and needs more of
// L2.
//
// Between chunks the accumulators rest in scratch (C): storing and loading an f32 is exact, so neither the
// chunk, nor the number of rows or panels in a register tile, nor the split between threads changes a bit.
//
// An engine gives:
//   Value                      element of packed activations and of B (float, uint16_t for bf16, int16_t, int8_t)
//   kUnit                      values of k that lie side by side (1; 2 or 4 for a dot product)
//   kPadded, stored(columns)   K is padded to a multiple of kPadded; values that so many columns of a row take
//   kRows, kPanels             register tile
//   kGroup, kChunk             panels and columns that are expanded at once
//   kBf16Activations           for the table
//   expand(weight, panel, k, k0, k1, b)   the panel's columns [k0, k1) in units: [k / kUnit][16 rows][kUnit]
//   pack(x, ldx, rows, k, out)            a strip: [padded k / kUnit][16 rows][kUnit], zeros where nothing is
//   tile<R, P>(tile)                      the register tile
#pragma once
#include "kernels/fixed16.h"
#include "kernels/int8_blocks.h"
#include "kernels/kernels.h"

namespace liuli::kernels {
namespace {

constexpr int kStrip = 16;  // rows that are packed together
constexpr int kTileK = 32;  // columns of an expanded weight tile

/// One register tile: C[R rows][P panels of 16] (+)= A[units][16 rows] · B[panel][units][16].
template <class Value>
struct RegisterTile {
  const Value* a;     // of the first row
  const Value* b;     // of the first panel
  ptrdiff_t b_panel;  // values from one panel of B to the next
  int units;
  const float* c_in;  // null: start from zero
  ptrdiff_t ldc_in;
  float* c_out;
  ptrdiff_t ldc_out;
  const WeightKernels* weight;
};

/// Columns of an engine that multiplies values as they are.
template <class V, int unit>
struct PlainColumns {
  using Value = V;
  static constexpr int kUnit = unit, kPadded = kTileK;
  static constexpr bool kBf16Activations = sizeof(V) == 2;
  static constexpr int64_t stored(int64_t columns) { return columns; }
};

/// Columns in 16-bit fixed point: pairs, and a line of scales after each block.
struct FixedColumns {
  using Value = int16_t;
  static constexpr int kUnit = 2, kPadded = kFixedBlock;
  static constexpr bool kBf16Activations = false;
  static constexpr int64_t stored(int64_t columns) { return columns / kFixedBlock * kFixedLines * kUnit; }
  static void expand(const WeightKernels& weight, const uint8_t* panel, int64_t k, int64_t k0, int64_t k1,
                     int16_t* b) {
    weight.expand_fixed16(panel, k, k0, k1, b);
  }
};

/// Columns in 8 bits: fours, and lines of scales after each block.
struct Int8Columns {
  using Value = int8_t;
  static constexpr int kUnit = 4, kPadded = kInt8Block;
  static constexpr bool kBf16Activations = false;
  static constexpr int64_t stored(int64_t columns) { return columns / kInt8Block * (kInt8Bytes / kStrip); }
  static void expand(const WeightKernels& weight, const uint8_t* panel, int64_t k, int64_t k0, int64_t k1,
                     int8_t* b) {
    weight.expand_codes(panel, k, k0, k1, b);
  }
};

template <class Engine>
struct BlockedPrompt {
  using Value = typename Engine::Value;
  using Tile = RegisterTile<Value>;
  static constexpr int kColumns = Engine::kGroup * kPanelRows;

  static int64_t padded_k(int64_t k) { return (k + Engine::kPadded - 1) / Engine::kPadded * Engine::kPadded; }
  static constexpr int64_t stored(int64_t columns) { return Engine::stored(columns); }
  static int padded_rows(int n_rows) { return (n_rows + kStrip - 1) / kStrip * kStrip; }

  static size_t packed_bytes(int n_rows, int64_t k) noexcept {
    return static_cast<size_t>(padded_rows(n_rows)) * stored(padded_k(k)) * sizeof(Value);
  }
  static constexpr size_t kWeightBytes = sizeof(Value) * stored(Engine::kChunk) * kColumns;
  static size_t scratch_bytes(int n_rows, int64_t k) noexcept {
    const size_t sums = k > Engine::kChunk ? sizeof(float) * padded_rows(n_rows) * kColumns : 0;
    return kWeightBytes + sums;
  }

  static void pack_strip(const float* x, ptrdiff_t ldx, int n_rows, int64_t k, int strip,
                         void* packed) noexcept {
    const int first = strip * kStrip, left = n_rows - first, rows = left < kStrip ? left : kStrip;
    Engine::pack(x + first * ldx, ldx, rows, k, static_cast<Value*>(packed) + first * stored(padded_k(k)));
  }

  // The engine's tile for every number of rows and panels up to its largest, by number.
  using TileFunction = void (*)(const Tile&);
  template <int R, int P>
  static TileFunction find_tile(int rows, int panels) {
    if constexpr (P > 1) {
      if (panels < P) return find_tile<R, P - 1>(rows, panels);
    }
    if constexpr (R > 1) {
      if (rows < R) return find_tile<R - 1, P>(rows, panels);
    }
    return &Engine::template tile<R, P>;
  }

  struct Product {
    const WeightKernels& weight;
    const uint8_t* panels;
    size_t panel_bytes;
    int64_t k;
    const Value* packed;
    int n_rows;
    float* y;
    ptrdiff_t ldy;
    Value* b;
    float* sums;  // C between chunks: [padded rows][columns of the group]
  };

  // Part i of n when `count` things are cut as evenly as possible: where it begins.
  static int part(int count, int i, int n) { return static_cast<int>(static_cast<int64_t>(count) * i / n); }

  // Rows from `row`, as many as fit a register tile, times the panels that B now holds: columns [k0, k1).
  static void multiply_rows(const Product& p, int row, int rows, int panel, int n_panels, int64_t k0,
                            int64_t k1) {
    const bool first = k0 == 0, last = k1 >= p.k;
    const ptrdiff_t columns = static_cast<ptrdiff_t>(n_panels) * kPanelRows,
                    b_panel = stored(k1 - k0) * kPanelRows;
    const int in_strip = row % kStrip, tiles = (n_panels + Engine::kPanels - 1) / Engine::kPanels;
    const Value* a =
        p.packed + (row - in_strip) * stored(padded_k(p.k)) + stored(k0) * kStrip + in_strip * Engine::kUnit;
    for (int i = 0; i < tiles; i++) {
      const int begin = part(n_panels, i, tiles), end = part(n_panels, i + 1, tiles);
      float* sums = p.sums + row * columns + begin * kPanelRows;
      float* out = p.y + row * p.ldy + static_cast<ptrdiff_t>(panel + begin) * kPanelRows;
      const Tile tile{a,
                      p.b + begin * b_panel,
                      b_panel,
                      static_cast<int>(k1 - k0) / Engine::kUnit,
                      first ? nullptr : sums,
                      columns,
                      last ? out : sums,
                      last ? p.ldy : columns,
                      &p.weight};
      find_tile<Engine::kRows, Engine::kPanels>(rows, end - begin)(tile);
    }
  }

  static void sweep_rows(const Product& p, int panel, int n_panels, int64_t k0, int64_t k1) {
    for (int row = 0; row < p.n_rows;) {
      const int in_strip = row % kStrip;
      int rows = kStrip - in_strip < Engine::kRows ? kStrip - in_strip : Engine::kRows;
      if (p.n_rows - row < rows) rows = p.n_rows - row;
      multiply_rows(p, row, rows, panel, n_panels, k0, k1);
      row += rows;
    }
  }

  static void multiply_group(const Product& p, int panel, int n_panels) {
    const int64_t end = padded_k(p.k);
    for (int64_t k0 = 0; k0 < end; k0 += Engine::kChunk) {
      const int64_t k1 = end - k0 < Engine::kChunk ? end : k0 + Engine::kChunk;
      for (int i = 0; i < n_panels; i++) {
        Engine::expand(p.weight, p.panels + (panel + i) * p.panel_bytes, p.k, k0, k1,
                       p.b + i * stored(k1 - k0) * kPanelRows);
      }
      sweep_rows(p, panel, n_panels, k0, k1);
    }
  }

  // Groups and tiles are cut evenly: a lone last panel would leave the FMA units waiting for few
  // accumulators.
  static void multiply(const WeightKernels& weight, const uint8_t* panels, size_t panel_bytes,
                       int panel_begin, int panel_end, int64_t k, const void* packed, int n_rows, float* y,
                       ptrdiff_t ldy, void* scratch) noexcept {
    auto* bytes = static_cast<uint8_t*>(scratch);
    const Product product{weight,
                          panels,
                          panel_bytes,
                          k,
                          static_cast<const Value*>(packed),
                          n_rows,
                          y,
                          ldy,
                          reinterpret_cast<Value*>(bytes),
                          reinterpret_cast<float*>(bytes + kWeightBytes)};
    const int count = panel_end - panel_begin, groups = (count + Engine::kGroup - 1) / Engine::kGroup;
    for (int g = 0; g < groups; g++) {
      const int begin = part(count, g, groups), end = part(count, g + 1, groups);
      multiply_group(product, panel_begin + begin, end - begin);
    }
  }

  static constexpr PromptKernels table(const char* name) {
    return {name, &packed_bytes, &scratch_bytes, &pack_strip, &multiply, Engine::kBf16Activations};
  }
};

// The parts of an engine that are plain loops: f32 activations, and f32 B by way of the bf16 tiles.
inline float bf16_to_f32(uint16_t bits) {
  const uint32_t word = static_cast<uint32_t>(bits) << 16;
  float value;
  __builtin_memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace
}  // namespace liuli::kernels
