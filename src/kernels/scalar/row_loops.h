// The row kernels as plain loops, written once for two precisions of the element-wise work: float (the
// reference and fallback of the levels) and double (the second opinion of --exact). Reductions are double in
// both: a float sum in order loses three digits over 4,096 values, and the reference must not be the worst of
// the tables.
#pragma once
#include <cmath>
#include <limits>

#include "kernels/kernels.h"

namespace liuli::kernels {

template <class Real>
struct RowLoops {
  /// max over the row, −inf for an empty one; a NaN makes no difference here (the exponentials carry it on).
  static float row_max(const float* x, int64_t n) {
    float max = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    return max;
  }

  static double exp_sum(const float* x, float max, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += std::exp(static_cast<Real>(x[i]) - static_cast<Real>(max));
    return sum;
  }

  static float rms_norm(const float* x, const float* gamma, float eps, int64_t n, float* y) noexcept {
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += static_cast<double>(x[i]) * x[i];
    const double sigma = std::sqrt((n > 0 ? squares / static_cast<double>(n) : 0) + eps);
    scale_and_shift(x, 0, sigma, gamma, nullptr, n, y);
    return static_cast<float>(sigma);
  }

  static float layer_norm(const float* x, const float* gamma, const float* beta, float eps, int64_t n,
                          float* y, float* mean) noexcept {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    const double mu = n > 0 ? sum / static_cast<double>(n) : 0;
    for (int64_t i = 0; i < n; i++) squares += (x[i] - mu) * (x[i] - mu);
    const double sigma = std::sqrt((n > 0 ? squares / static_cast<double>(n) : 0) + eps);
    scale_and_shift(x, mu, sigma, gamma, beta, n, y);
    *mean = static_cast<float>(mu);
    return static_cast<float>(sigma);
  }

  /// y = (x − μ) / σ · γ + β
  static void scale_and_shift(const float* x, double mu, double sigma, const float* gamma, const float* beta,
                              int64_t n, float* y) {
    for (int64_t i = 0; i < n; i++) {
      Real value = (static_cast<Real>(x[i]) - static_cast<Real>(mu)) / static_cast<Real>(sigma);
      if (gamma != nullptr) value *= gamma[i];
      if (beta != nullptr) value += beta[i];
      y[i] = static_cast<float>(value);
    }
  }

  static void add(float* x, const float* a, int64_t n) noexcept {
    for (int64_t i = 0; i < n; i++) x[i] += a[i];
  }
  static void scale_add(float* x, float factor, const float* a, int64_t n) noexcept {
    for (int64_t i = 0; i < n; i++) x[i] = static_cast<float>(static_cast<Real>(factor) * x[i] + a[i]);
  }
  static void scale(float* x, float factor, int64_t n) noexcept {
    for (int64_t i = 0; i < n; i++) x[i] *= factor;
  }
  static void multiply(float* x, const float* a, int64_t n) noexcept {
    for (int64_t i = 0; i < n; i++) x[i] *= a[i];
  }

  static void silu(const float* x, int64_t n, float* y) noexcept {
    for (int64_t i = 0; i < n; i++) {
      const Real v = x[i];
      y[i] = static_cast<float>(v / (1 + std::exp(-v)));
    }
  }
  /// ½ x (1 + tanh(√(2/π) (x + 0.044715 x³)))
  static void gelu_tanh(const float* x, int64_t n, float* y) noexcept {
    for (int64_t i = 0; i < n; i++) {
      const Real v = x[i];
      const Real u = Real(0.79788456080286535588) * (v + Real(0.044715) * v * v * v);
      y[i] = static_cast<float>(Real(0.5) * v * (1 + std::tanh(u)));
    }
  }
  /// x Φ(x), with Φ(x) = ½ erfc(−x / √2): erfc keeps the digits of the left tail that 1 + erf would cancel.
  static void gelu_erf(const float* x, int64_t n, float* y) noexcept {
    for (int64_t i = 0; i < n; i++) {
      const Real v = x[i];
      y[i] = static_cast<float>(Real(0.5) * v * std::erfc(v * Real(-0.70710678118654752440)));
    }
  }
  /// A NaN stays a NaN.
  // dx = dy · f′(x)
  template <class F>
  static void backward(const float* x, const float* dy, int64_t n, float* dx, F derivative) {
    for (int64_t i = 0; i < n; i++) dx[i] = static_cast<float>(dy[i] * derivative(Real(x[i])));
  }
  static void silu_backward(const float* x, const float* dy, int64_t n, float* dx) noexcept {
    backward(x, dy, n, dx, [](Real v) {
      const Real s = 1 / (1 + std::exp(-v));
      return s * (1 + v * (1 - s));
    });
  }
  // gelu_tanh(x) = x · σ(2u), u = √(2/π)(x + 0.044715 x³)
  static void gelu_tanh_backward(const float* x, const float* dy, int64_t n, float* dx) noexcept {
    backward(x, dy, n, dx, [](Real v) {
      const Real k = Real(1.5957691216057308), s = 1 / (1 + std::exp(-k * (v + Real(0.044715) * v * v * v)));
      return s + v * s * (1 - s) * k * (1 + Real(0.134145) * v * v);
    });
  }
  static void gelu_erf_backward(const float* x, const float* dy, int64_t n, float* dx) noexcept {
    backward(x, dy, n, dx, [](Real v) {
      const Real density = Real(0.3989422804014327) * std::exp(-v * v / 2);
      return Real(0.5) * std::erfc(-v * Real(0.7071067811865476)) + v * density;
    });
  }
  static void relu_backward(const float* x, const float* dy, int64_t n, float* dx) noexcept {
    backward(x, dy, n, dx, [](Real v) { return Real(v > 0); });
  }
  static void relu(const float* x, int64_t n, float* y) noexcept {
    for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i];
  }

  static void rope(float* x, const float* cos, const float* sin, int64_t half) noexcept {
    for (int64_t i = 0; i < half; i++) {
      const Real a = x[i], b = x[i + half];
      x[i] = static_cast<float>(a * cos[i] - b * sin[i]);
      x[i + half] = static_cast<float>(b * cos[i] + a * sin[i]);
    }
  }
  static void soft_cap(float* x, float cap, int64_t n) noexcept {
    for (int64_t i = 0; i < n; i++) x[i] = static_cast<float>(cap * std::tanh(x[i] / static_cast<Real>(cap)));
  }

  static void softmax(const float* x, int64_t n, float* y) noexcept {
    const float max = row_max(x, n);
    const double sum = exp_sum(x, max, n);
    for (int64_t i = 0; i < n; i++) {
      const Real e = std::exp(static_cast<Real>(x[i]) - static_cast<Real>(max));
      y[i] = static_cast<float>(e / static_cast<Real>(sum));
    }
  }
  static float log_sum_exp(const float* x, int64_t n) noexcept {
    const float max = row_max(x, n);
    return n > 0 ? static_cast<float>(max + std::log(exp_sum(x, max, n))) : max;
  }
  static int64_t argmax(const float* x, int64_t n) noexcept {
    int64_t best = n > 0 ? 0 : -1;
    float max = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < n; i++) {
      // The first number wins over NaNs before it, even where it is −inf.
      if (x[i] > max || (x[i] == max && std::isnan(x[best]))) best = i, max = x[i];
    }
    return best;
  }

  static constexpr RowKernels kTable = {.rms_norm = rms_norm,
                                        .layer_norm = layer_norm,
                                        .add = add,
                                        .scale_add = scale_add,
                                        .scale = scale,
                                        .silu = silu,
                                        .gelu_tanh = gelu_tanh,
                                        .gelu_erf = gelu_erf,
                                        .relu = relu,
                                        .silu_backward = silu_backward,
                                        .gelu_tanh_backward = gelu_tanh_backward,
                                        .gelu_erf_backward = gelu_erf_backward,
                                        .relu_backward = relu_backward,
                                        .multiply = multiply,
                                        .rope = rope,
                                        .soft_cap = soft_cap,
                                        .softmax = softmax,
                                        .log_sum_exp = log_sum_exp,
                                        .argmax = argmax};
};

}  // namespace liuli::kernels
