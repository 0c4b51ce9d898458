// C = A · B in f32 for operands of any stride, over Highway vectors: what training multiplies with, and prompts of the
// f32 class. Forward, input gradients and weight gradients differ only in which stride is 1.
//
// Registers hold a tile of C (6 rows × 4 vectors on AVX-512, 6 × 2 on AVX2), A and B are packed so that a step of k is
// one run of each. An output is one accumulator over ascending k: between two blocks of k it rests in C, which is exact.
// Its bits depend neither on m, n, nor on who computes which part.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm.cpp"
#include "hwy/foreach_target.h"
// (foreach_target.h comes first: it includes this file again for the other targets)
#include <algorithm>

#include "hwy/highway.h"
#include "kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace liuli::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr int kTileRows = 6, kVectors = HWY_MAX_BYTES >= 64 ? 4 : 2;
constexpr int64_t kLanes = HWY_LANES(float), kTileColumns = kVectors * kLanes;
// A block of A is 96 · 512 · 4 B = 192 KiB (L2), a strip of B 64 · 512 · 4 B = 128 KiB at most (L2 → L1 in turn).
constexpr int64_t kBlockK = 512, kBlockRows = 96;

/// c[i][j] (+)= Σ_k a[k][i] · b[k][j]; a and b as packed. resume: go on from what c holds.
void tile(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, int64_t k, float* HWY_RESTRICT c,
          int64_t c_row, bool resume) {
  const D d;
  V sum[kTileRows][kVectors];
  for (int i = 0; i < kTileRows; i++)
    for (int j = 0; j < kVectors; j++)
      sum[i][j] = resume ? hn::LoadU(d, c + i * c_row + j * kLanes) : hn::Zero(d);
  for (int64_t at = 0; at < k; at++, a += kTileRows, b += kTileColumns) {
    V column[kVectors];
    for (int j = 0; j < kVectors; j++) column[j] = hn::Load(d, b + j * kLanes);
    for (int i = 0; i < kTileRows; i++) {
      const V row = hn::Set(d, a[i]);
      for (int j = 0; j < kVectors; j++) sum[i][j] = hn::MulAdd(row, column[j], sum[i][j]);
    }
  }
  for (int i = 0; i < kTileRows; i++)
    for (int j = 0; j < kVectors; j++) hn::StoreU(sum[i][j], d, c + i * c_row + j * kLanes);
}

/// A tile at the edge of C: through a full one beside it.
void edge_tile(const float* a, const float* b, int64_t k, float* c, int64_t c_row, bool resume, int64_t rows,
               int64_t columns) {
  HWY_ALIGN float full[kTileRows * kTileColumns] = {};
  if (resume)
    for (int64_t i = 0; i < rows; i++) std::copy_n(c + i * c_row, columns, full + i * kTileColumns);
  tile(a, b, k, full, kTileColumns, resume);
  for (int64_t i = 0; i < rows; i++) std::copy_n(full + i * kTileColumns, columns, c + i * c_row);
}

/// Strips of `width` rows (of A) or columns (of B), k by k; missing ones are zero. along: stride of k, across: between
/// the strip's members.
void pack(const float* x, int64_t along, int64_t across, int64_t k, int64_t n, int64_t width, float* out) {
  for (int64_t first = 0; first < n; first += width, out += width * k) {
    const int64_t present = std::min(width, n - first);
    const float* from = x + first * across;
    if (across == 1 && present == width) {
      for (int64_t at = 0; at < k; at++) std::copy_n(from + at * along, width, out + at * width);
      continue;
    }
    // Turning over: 16 steps of k at a time, so that reads are whole lines and the writes stay in L1.
    for (int64_t at = 0; at < k; at += 16) {
      const int64_t steps = std::min<int64_t>(16, k - at);
      for (int64_t i = 0; i < width; i++)
        for (int64_t j = 0; j < steps; j++)
          out[(at + j) * width + i] = i < present ? from[(at + j) * along + i * across] : 0.0f;
    }
  }
}

size_t scratch_floats(int64_t, int64_t n, int64_t) noexcept {
  const int64_t strips = (n + kTileColumns - 1) / kTileColumns;
  return static_cast<size_t>((strips * kTileColumns + kBlockRows) * kBlockK);
}

void multiply(const GemmArgs& g, float* scratch) noexcept {
  float* packed_b = scratch;
  const int64_t strips = (g.n + kTileColumns - 1) / kTileColumns;
  float* packed_a = scratch + strips * kTileColumns * kBlockK;
  for (int64_t k0 = 0; k0 < g.k || k0 == 0; k0 += kBlockK) {
    const int64_t k = std::min(kBlockK, g.k - k0);
    const bool resume = k0 > 0 || g.accumulate;
    pack(g.b + k0 * g.b_k, g.b_k, g.b_n, k, g.n, kTileColumns, packed_b);
    for (int64_t i0 = 0; i0 < g.m; i0 += kBlockRows) {
      const int64_t rows = std::min(kBlockRows, g.m - i0);
      pack(g.a + i0 * g.a_m + k0 * g.a_k, g.a_k, g.a_m, k, rows, kTileRows, packed_a);
      for (int64_t j = 0; j < g.n; j += kTileColumns)
        for (int64_t i = 0; i < rows; i += kTileRows) {
          float* c = g.c + (i0 + i) * g.c_row + j;
          const float *a = packed_a + i * k, *b = packed_b + j * k;
          const int64_t here = std::min<int64_t>(kTileRows, rows - i), wide = std::min(kTileColumns, g.n - j);
          if (here == kTileRows && wide == kTileColumns)
            tile(a, b, k, c, g.c_row, resume);
          else
            edge_tile(a, b, k, c, g.c_row, resume, here, wide);
        }
    }
  }
}

constexpr GemmKernel kTable = {scratch_floats, multiply};

}  // namespace

const GemmKernel* gemm_table() noexcept { return &kTable; }

}  // namespace liuli::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
