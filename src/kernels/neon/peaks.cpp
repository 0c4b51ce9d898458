// Peaks of 128-bit registers: f32 FMA and the dot product of bytes. Sixteen sums hide the latency (4 cycles, four per
// cycle at most).
#include <arm_neon.h>

#include "kernels/peaks.h"

namespace liuli::kernels {
namespace {

constexpr int kSums = 16;

void fma_f32(int64_t rounds) noexcept {
  float32x4_t sums[kSums] = {};
  for (float32x4_t& sum : sums) asm volatile("" : "+w"(sum));  // equal sums would become one
  float32x4_t a = vdupq_n_f32(0.5f), b = vdupq_n_f32(1.0f);
  for (int64_t i = 0; i < rounds; i++) {
    asm volatile("" : "+w"(a), "+w"(b));  // so that no round can be computed ahead
    for (float32x4_t& sum : sums) sum = vfmaq_f32(b, sum, a);
  }
  for (float32x4_t& sum : sums) asm volatile("" : : "w"(sum));
}

void dot_int8(int64_t rounds) noexcept {
  int32x4_t sums[kSums] = {};
  for (int32x4_t& sum : sums) asm volatile("" : "+w"(sum));  // equal sums would become one
  int8x16_t codes = vdupq_n_s8(3), values = vdupq_n_s8(-5);
  for (int64_t i = 0; i < rounds; i++) {
    asm volatile("" : "+w"(codes), "+w"(values));
    for (int32x4_t& sum : sums) sum = vdotq_s32(sum, codes, values);
  }
  for (int32x4_t& sum : sums) asm volatile("" : : "w"(sum));
}

constexpr PeakLoop kLoops[] = {{"f32 FMA", 2.0 * 4 * kSums, fma_f32},
                               {"int8 dot products", 2.0 * 16 * kSums, dot_int8}};

}  // namespace

PeakTable peaks_neon() noexcept { return {kLoops, 2}; }

}  // namespace liuli::kernels
