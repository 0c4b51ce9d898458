// The plainest products: one fused multiply-add per term, as the vector code has it.
#include <cmath>

#include "core/half.h"
#include "kernels/gemm_blocked.h"
#include "kernels/isa_tables.h"

namespace liuli::kernels {
namespace {

float plain(float x) { return x; }
float rounded(float x) { return bf16_to_f32(f32_to_bf16(x)); }

template <float (*operand)(float)>
struct ScalarEngine {
  using Value = float;
  static constexpr int kUnit = 1, kRows = 4, kColumns = 16, kLanes = 1;

  template <int width>
  static void pack_strip(const float* x, int64_t along, int64_t across, int64_t k, int64_t n, float* out) {
    for (int64_t at = 0; at < k; at++)
      for (int64_t i = 0; i < width; i++)
        out[at * width + i] = i < n ? operand(x[at * along + i * across]) : 0.0f;
  }
  static void pack_rows(const float* x, int64_t along, int64_t across, int64_t k, int64_t n, float* out) {
    pack_strip<kRows>(x, along, across, k, n, out);
  }
  static void pack_columns(const float* x, int64_t along, int64_t across, int64_t k, int64_t n, float* out) {
    pack_strip<kColumns>(x, along, across, k, n, out);
  }
  static void tile(const float* a, const float* b, int64_t k, float* c, int64_t c_row, bool resume,
                   int64_t columns) {
    for (int64_t i = 0; i < kRows; i++)
      for (int64_t j = 0; j < columns; j++) {
        float sum = resume ? c[i * c_row + j] : 0.0f;
        for (int64_t at = 0; at < k; at++) sum = std::fma(a[at * kRows + i], b[at * kColumns + j], sum);
        c[i * c_row + j] = sum;
      }
  }
};

}  // namespace

const GemmKernel* gemm_scalar() noexcept {
  static constexpr GemmKernel kernel = BlockedGemm<ScalarEngine<plain>>::table("f32, scalar");
  return &kernel;
}

const GemmKernel* gemm_bf16_scalar() noexcept {
  static constexpr GemmKernel kernel = BlockedGemm<ScalarEngine<rounded>>::table("bf16, scalar");
  return &kernel;
}

}  // namespace liuli::kernels
