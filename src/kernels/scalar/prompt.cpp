// The prompt products in plain loops. bf16: f32 FMA over weights rounded to bf16, k ascending. Fixed point: integer sums
// of a block, y = fma(Σ, w_scale · x_scale, y), blocks ascending.
#include <cmath>

#include "kernels/isa_tables.h"
#include "kernels/prompt_blocked.h"
#include "kernels/scalar/fixed16.h"

namespace liuli::kernels {
namespace {

struct ScalarEngine : PlainColumns<float, 1> {
  static constexpr int kRows = 16, kPanels = 1, kGroup = 1, kChunk = 256;

  static void expand(const WeightKernels& weight, const uint8_t* panel, int64_t k, int64_t k0, int64_t k1,
                     float* b) {
    uint16_t tile[kTileK * kPanelRows];
    for (int64_t column = k0; column < k1; column += kTileK) {
      weight.expand_bf16(panel, k, column, column + kTileK, tile);
      for (int i = 0; i < kTileK; i++, b += kPanelRows) {
        for (int lane = 0; lane < kPanelRows; lane++)
          b[lane] = bf16_to_f32(tile[i / 2 * 32 + lane * 2 + i % 2]);
      }
    }
  }

  static void pack(const float* x, ptrdiff_t ldx, int rows, int64_t k, float* out) {
    const int64_t end = BlockedPrompt<ScalarEngine>::padded_k(k);
    for (int64_t i = 0; i < end; i++, out += kStrip) {
      for (int r = 0; r < kStrip; r++) out[r] = r < rows && i < k ? x[r * ldx + i] : 0.0f;
    }
  }

  template <int R, int P>
  static void tile(const RegisterTile<float>& t) {
    for (int r = 0; r < R; r++) {
      float sums[kPanelRows] = {};
      if (t.c_in) {
        for (int lane = 0; lane < kPanelRows; lane++) sums[lane] = t.c_in[r * t.ldc_in + lane];
      }
      for (int i = 0; i < t.units; i++) {
        const float a = t.a[i * kStrip + r];
        for (int lane = 0; lane < kPanelRows; lane++)
          sums[lane] = std::fma(a, t.b[i * kPanelRows + lane], sums[lane]);
      }
      for (int lane = 0; lane < kPanelRows; lane++) t.c_out[r * t.ldc_out + lane] = sums[lane];
    }
  }
};

float scale_at(const int16_t* scales, int row) {
  float scale;
  __builtin_memcpy(&scale, scales + 2 * row, sizeof scale);
  return scale;
}

struct ScalarFixed16 : FixedColumns {
  static constexpr int kRows = 16, kPanels = 1, kGroup = 1, kChunk = 256;

  static void pack(const float* x, ptrdiff_t ldx, int rows, int64_t k, int16_t* out) {
    for (int64_t i = 0; i < k; i += kFixedBlock, out += kFixedLines * kFixedLine) {
      const int columns = static_cast<int>(k - i < kFixedBlock ? k - i : kFixedBlock);
      for (int r = 0; r < kStrip; r++)
        fixed16_store(x + (r < rows ? r * ldx + i : 0), r < rows ? columns : 0, r, out);
    }
  }

  template <int R, int P>
  static void tile(const RegisterTile<int16_t>& t) {
    for (int r = 0; r < R; r++) {
      float sums[kPanelRows] = {};
      if (t.c_in) __builtin_memcpy(sums, t.c_in + r * t.ldc_in, sizeof sums);
      const int16_t *a = t.a, *b = t.b;
      for (int left = t.units; left > 0; left -= kFixedBlock / 2) {
        add_block(a, b, r, sums);
        a += kFixedLines * kFixedLine;
        b += kFixedLines * kFixedLine;
      }
      __builtin_memcpy(t.c_out + r * t.ldc_out, sums, sizeof sums);
    }
  }

  static void add_block(const int16_t* a, const int16_t* b, int r, float* sums) {
    int32_t products[kPanelRows] = {};
    for (int i = 0; i < kFixedBlock / 2; i++) {
      const int first = a[i * kFixedLine + 2 * r], second = a[i * kFixedLine + 2 * r + 1];
      for (int lane = 0; lane < kPanelRows; lane++)
        products[lane] += b[i * kFixedLine + 2 * lane] * first + b[i * kFixedLine + 2 * lane + 1] * second;
    }
    const float row_scale = scale_at(a + kFixedScales, r);
    for (int lane = 0; lane < kPanelRows; lane++)
      sums[lane] = std::fma(static_cast<float>(products[lane]), scale_at(b + kFixedScales, lane) * row_scale,
                            sums[lane]);
  }
};

}  // namespace

const PromptKernels* prompt_fixed16_scalar() noexcept {
  static constexpr PromptKernels kernels = BlockedPrompt<ScalarFixed16>::table("16-bit fixed point, scalar");
  return &kernels;
}

const PromptKernels* prompt_scalar() noexcept {
  static constexpr PromptKernels kernels =
      BlockedPrompt<ScalarEngine>::table("f32 fused multiply-add, scalar");
  return &kernels;
}

}  // namespace liuli::kernels
