// C = A · B in f32 for operands of plain arrays, over Highway vectors: what training multiplies with, and prompts of the
// f32 class. Forward, input gradients and weight gradients differ only in which stride is 1.
//
// The same with operands rounded to bf16 (kept as f32) is what levels without a bf16 instruction multiply with; it gives
// the scalar level's bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm.cpp"
#include "hwy/foreach_target.h"
// (foreach_target.h comes first: it includes this file again for the other targets)
#include <cstring>

#include "core/half.h"
#include "hwy/highway.h"
#include "kernels/gemm_blocked.h"

HWY_BEFORE_NAMESPACE();
namespace liuli::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr int kVectorLanes = HWY_LANES(float), kTileVectors = 3;
// Accumulators, a row of B and a value of A: 8 · 3 + 3 + 1 of 32 registers, 4 · 3 + 3 + 1 of AVX2's 16.
constexpr int kTileRows = HWY_TARGET == HWY_AVX2 ? 4 : 8, kTileColumns = kTileVectors * kVectorLanes;

/// c[i][j] (+)= Σ_k a[k][i] · b[k][j]; a and b as packed, the first kVectors of b's.
template <int kVectors>
void tile(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, int64_t k, float* HWY_RESTRICT c,
          int64_t c_row, bool resume) {
  const D d;
  V sum[kTileRows][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kTileRows; i++)
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; j++)
      sum[i][j] = resume ? hn::LoadU(d, c + i * c_row + j * kVectorLanes) : hn::Zero(d);
  for (int64_t at = 0; at < k; at++, a += kTileRows, b += kTileColumns) {
    V column[kVectors];
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; j++) column[j] = hn::Load(d, b + j * kVectorLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kTileRows; i++) {
      const V row = hn::Set(d, a[i]);
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; j++) sum[i][j] = hn::MulAdd(row, column[j], sum[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kTileRows; i++)
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; j++) hn::StoreU(sum[i][j], d, c + i * c_row + j * kVectorLanes);
}

/// Four members with k side by side, turned: out[k · width + member]. Four by four values in each 128-bit block.
void turn_four(const float* x, int64_t across, int64_t n, int64_t k, int64_t width, float* out) {
  const D d;
  alignas(64) float turned[4][kVectorLanes];
  for (int64_t at = 0; at < k; at += kVectorLanes) {
    const int64_t steps = k - at < kVectorLanes ? k - at : kVectorLanes;
    const auto present = hn::FirstN(d, static_cast<size_t>(steps));
    V row[4];
    for (int r = 0; r < 4; r++)
      row[r] = r < n ? hn::MaskedLoad(present, d, x + r * across + at) : hn::Zero(d);
    const hn::Repartition<double, D> wide;
    const auto low01 = hn::BitCast(wide, hn::InterleaveLower(d, row[0], row[1])),
               low23 = hn::BitCast(wide, hn::InterleaveLower(d, row[2], row[3])),
               high01 = hn::BitCast(wide, hn::InterleaveUpper(d, row[0], row[1])),
               high23 = hn::BitCast(wide, hn::InterleaveUpper(d, row[2], row[3]));
    hn::Store(hn::BitCast(d, hn::InterleaveLower(wide, low01, low23)), d, turned[0]);
    hn::Store(hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23)), d, turned[1]);
    hn::Store(hn::BitCast(d, hn::InterleaveLower(wide, high01, high23)), d, turned[2]);
    hn::Store(hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23)), d, turned[3]);
    for (int64_t step = 0; step < steps; step++)
      std::memcpy(out + (at + step) * width, turned[step % 4] + step / 4 * 4, 4 * sizeof(float));
  }
}

/// A strip of `width` members, k by k.
template <int width>
void pack_strip(const float* x, int64_t along, int64_t across, int64_t k, int64_t n, float* out) {
  if (across != 1) {
    for (int64_t i = 0; i < width; i += 4) turn_four(x + i * across, across, n - i, k, width, out + i);
  } else if (n == width) {
    for (int64_t at = 0; at < k; at++) std::memcpy(out + at * width, x + at * along, width * sizeof(float));
  } else {
    for (int64_t at = 0; at < k; at++)
      for (int64_t i = 0; i < width; i++) out[at * width + i] = i < n ? x[at * along + i] : 0.0f;
  }
}

void round_to_bf16(float* x, int64_t n) {
  for (int64_t i = 0; i < n; i++) x[i] = bf16_to_f32(f32_to_bf16(x[i]));
}

template <bool bf16>
struct Engine {
  using Value = float;
  static constexpr int kUnit = 1, kRows = kTileRows, kColumns = kTileColumns, kLanes = kVectorLanes;

  static void pack_rows(const float* x, int64_t along, int64_t across, int64_t k, int64_t n, float* out) {
    pack_strip<kRows>(x, along, across, k, n, out);
    if (bf16) round_to_bf16(out, k * kRows);
  }
  static void pack_columns(const float* x, int64_t along, int64_t across, int64_t k, int64_t n, float* out) {
    pack_strip<kColumns>(x, along, across, k, n, out);
    if (bf16) round_to_bf16(out, k * kColumns);
  }
  static void tile(const float* a, const float* b, int64_t k, float* c, int64_t c_row, bool resume,
                   int64_t columns) {
    static_assert(kTileVectors == 3);
    if (columns == kTileColumns) return HWY_NAMESPACE::tile<3>(a, b, k, c, c_row, resume);
    if (columns == 2 * kVectorLanes) return HWY_NAMESPACE::tile<2>(a, b, k, c, c_row, resume);
    HWY_NAMESPACE::tile<1>(a, b, k, c, c_row, resume);
  }
};

}  // namespace

const GemmKernel* gemm_table() noexcept {
  static constexpr GemmKernel kernel = BlockedGemm<Engine<false>>::table("f32 FMA");
  return &kernel;
}

const GemmKernel* gemm_bf16_table() noexcept {
  static constexpr GemmKernel kernel = BlockedGemm<Engine<true>>::table("f32 FMA over bf16");
  return &kernel;
}

}  // namespace liuli::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
