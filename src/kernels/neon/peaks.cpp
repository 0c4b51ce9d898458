// Peaks of 128-bit registers: f32 FMA and the dot product of bytes. Sixteen sums hide the latency (4 cycles, four per
// cycle at most).
#include <arm_neon.h>

#include "kernels/peak_rounds.h"
#include "kernels/peaks.h"

namespace liuli::kernels {
namespace {

constexpr int kSums = 16;

struct Neon {
  template <class V>
  static void hide(V& value) {
    asm volatile("" : "+w"(value));
  }
};

void fma_f32(int64_t rounds) noexcept {
  run_rounds<Neon, kSums>(rounds, vdupq_n_f32(0), vdupq_n_f32(0.5f), vdupq_n_f32(1.0f),
                          [](float32x4_t sum, float32x4_t a, float32x4_t b) { return vfmaq_f32(b, sum, a); });
}

void dot_int8(int64_t rounds) noexcept {
  run_rounds<Neon, kSums>(
      rounds, vdupq_n_s32(0), vdupq_n_s8(3), vdupq_n_s8(-5),
      [](int32x4_t sum, int8x16_t codes, int8x16_t values) { return vdotq_s32(sum, codes, values); });
}

constexpr PeakLoop kLoops[] = {{"f32 FMA", 2.0 * 4 * kSums, fma_f32},
                               {"int8 dot products", 2.0 * 16 * kSums, dot_int8}};

}  // namespace

PeakTable peaks_neon() noexcept { return {kLoops, 2}; }

}  // namespace liuli::kernels
