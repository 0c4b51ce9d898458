// What the compiler's baseline instructions reach: independent sums, which it lays into its vectors.
#include "kernels/peaks.h"

namespace liuli::kernels {
namespace {

constexpr int kSums = 48;

void multiply_add_f32(int64_t rounds) noexcept {
  float sums[kSums] = {}, factor = 0.5f, addend = 1.0f;
  asm volatile("" : "+m"(factor), "+m"(addend), "+m"(sums));  // values the compiler does not know
  const float a = factor, b = addend;
  for (int64_t i = 0; i < rounds; i++)
    for (float& sum : sums) sum = sum * a + b;
  asm volatile("" : : "m"(sums));
}

constexpr PeakLoop kLoops[] = {{"f32 multiply and add", 2.0 * kSums, multiply_add_f32}};

}  // namespace

PeakTable peaks_scalar() noexcept { return {kLoops, 1}; }

}  // namespace liuli::kernels
