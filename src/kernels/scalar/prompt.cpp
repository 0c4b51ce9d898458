// The prompt product in plain loops: f32 FMA over weights rounded to bf16, k ascending.
#include <cmath>

#include "kernels/isa_tables.h"
#include "kernels/prompt_blocked.h"

namespace liuli::kernels {
namespace {

struct ScalarEngine {
  using Value = float;
  static constexpr int kUnit = 1, kRows = 16, kPanels = 1, kGroup = 1, kChunk = 256;

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

}  // namespace

const PromptKernels* prompt_scalar() noexcept {
  static constexpr PromptKernels kernels =
      BlockedPrompt<ScalarEngine>::table("f32 fused multiply-add, scalar");
  return &kernels;
}

}  // namespace liuli::kernels
