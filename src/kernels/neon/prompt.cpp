// The prompt product by NEON f32 FMA over weights rounded to bf16: the scalar level's bits.
#include <arm_neon.h>

#include "kernels/isa_tables.h"
#include "kernels/prompt_blocked.h"

namespace liuli::kernels {
namespace {

struct NeonEngine : PlainColumns<float, 1> {
  static constexpr int kRows = 6, kPanels = 1, kGroup = 4, kChunk = 256;

  static void expand(const WeightKernels& weight, const uint8_t* panel, int64_t k, int64_t k0, int64_t k1,
                     float* b) {
    alignas(64) uint16_t tile[kTileK * kPanelRows];
    for (int64_t column = k0; column < k1; column += kTileK) {
      weight.expand_bf16(panel, k, column, column + kTileK, tile);
      for (int i = 0; i < kTileK; i += 2, b += 2 * kPanelRows)
        for (int lane = 0; lane < kPanelRows; lane += 4) {
          const uint32x4_t pairs = vreinterpretq_u32_u16(vld1q_u16(tile + i * kPanelRows + 2 * lane));
          vst1q_f32(b + lane, vreinterpretq_f32_u32(vshlq_n_u32(pairs, 16)));
          vst1q_f32(b + kPanelRows + lane, vreinterpretq_f32_u32(vandq_u32(pairs, vdupq_n_u32(0xffff0000))));
        }
    }
  }

  // Four by four; the last columns and rows one by one.
  static void pack(const float* x, ptrdiff_t ldx, int rows, int64_t k, float* out) {
    const int64_t end = BlockedPrompt<NeonEngine>::padded_k(k), whole = k / 4 * 4;
    for (int r = 0; r < kStrip; r += 4)
      for (int64_t i = 0; i < end; i += 4) {
        float* to = out + i * kStrip + r;
        if (r + 4 <= rows && i < whole) {
          transpose_4x4(x + r * ldx + i, ldx, to);
          continue;
        }
        for (int j = 0; j < 4; j++)
          for (int s = 0; s < 4; s++)
            to[j * kStrip + s] = r + s < rows && i + j < k ? x[(r + s) * ldx + i + j] : 0.0f;
      }
  }

  // 6 × 16: 24 accumulators, four registers of weights and the rows' values fill the 32 there are.
  template <int R, int P>
  static void tile(const RegisterTile<float>& t) {
    float32x4_t acc[R][4];
#pragma GCC unroll 6
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
      for (int q = 0; q < 4; q++)
        acc[r][q] = t.c_in ? vld1q_f32(t.c_in + r * t.ldc_in + 4 * q) : vdupq_n_f32(0.0f);
    const float *a = t.a, *b = t.b;
    for (int i = 0; i < t.units; i++, a += kStrip, b += kPanelRows) {
      const float32x4_t w[4] = {vld1q_f32(b), vld1q_f32(b + 4), vld1q_f32(b + 8), vld1q_f32(b + 12)};
#pragma GCC unroll 6
      for (int r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int q = 0; q < 4; q++) acc[r][q] = vfmaq_n_f32(acc[r][q], w[q], a[r]);
    }
#pragma GCC unroll 6
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
      for (int q = 0; q < 4; q++) vst1q_f32(t.c_out + r * t.ldc_out + 4 * q, acc[r][q]);
  }

 private:
  static void transpose_4x4(const float* x, ptrdiff_t ldx, float* out) {
    const float32x4_t a = vld1q_f32(x), b = vld1q_f32(x + ldx), c = vld1q_f32(x + 2 * ldx),
                      d = vld1q_f32(x + 3 * ldx);
    const float32x4_t ac0 = vzip1q_f32(a, c), ac1 = vzip2q_f32(a, c), bd0 = vzip1q_f32(b, d),
                      bd1 = vzip2q_f32(b, d);
    vst1q_f32(out, vzip1q_f32(ac0, bd0));
    vst1q_f32(out + kStrip, vzip2q_f32(ac0, bd0));
    vst1q_f32(out + 2 * kStrip, vzip1q_f32(ac1, bd1));
    vst1q_f32(out + 3 * kStrip, vzip2q_f32(ac1, bd1));
  }
};

}  // namespace

const PromptKernels* prompt_neon() noexcept {
  static constexpr PromptKernels kernels = BlockedPrompt<NeonEngine>::table("f32 fused multiply-add, NEON");
  return &kernels;
}

}  // namespace liuli::kernels
