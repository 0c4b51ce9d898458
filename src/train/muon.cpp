#include "train/muon.h"

#include <cmath>

#include "ops/gemm.h"

namespace liuli {
namespace {

constexpr float kA = 3.4445f, kB = -4.7750f, kC = 2.0315f;
constexpr int kIterations = 5;

double norm_of(const float* x, int64_t n) {
  double squares = 0;
  for (int64_t i = 0; i < n; i++) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return std::sqrt(squares);
}

// One step, by the shorter side: with n < m columns it is X ← aX + X (bA + cA²), A = Xᵀ X.
void iterate(OpContext& c, float* x, int64_t rows, int64_t columns, float* a, float* b, float* y) {
  const bool tall = rows > columns;
  const int64_t n = tall ? columns : rows, k = tall ? rows : columns;
  const int64_t along = tall ? 1 : columns, across = tall ? columns : 1;  // strides of X as [n, k]
  gemm(c, {n, n, k, x, along, across, x, across, along, a, n});
  gemm(c, {n, n, n, a, n, 1, a, n, 1, b, n});
  for (int64_t i = 0; i < n * n; i++) b[i] = kB * a[i] + kC * b[i];
  if (tall)
    gemm(c, {rows, n, n, x, n, 1, b, n, 1, y, n});
  else
    gemm(c, {n, columns, n, b, n, 1, x, columns, 1, y, columns});
  for (int64_t i = 0; i < rows * columns; i++) x[i] = kA * x[i] + y[i];
}

}  // namespace

void orthogonalise(OpContext& c, float* g, int64_t rows, int64_t columns) {
  const double norm = norm_of(g, rows * columns);
  if (!(norm > 0)) return;
  const auto factor = static_cast<float>(1 / (norm * 1.01));  // strictly below 1 after rounding
  for (int64_t i = 0; i < rows * columns; i++) g[i] *= factor;
  const Arena::Scope scope(c.scratch);
  const int64_t n = std::min(rows, columns);
  float *a = c.scratch.floats(n * n), *b = c.scratch.floats(n * n), *y = c.scratch.floats(rows * columns);
  for (int i = 0; i < kIterations; i++) iterate(c, g, rows, columns, a, b, y);
}

}  // namespace liuli
