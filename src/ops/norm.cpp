#include "ops/norm.h"

#include <cmath>

#include "core/check.h"
#include "core/lane_sum.h"
#include "ops/columns.h"

namespace liuli {

void norm_forward(OpContext& c, const Norm& norm, Rows x, Rows y, NormStats stats) {
  LIULI_CHECK(norm.kind == NormKind::layer || norm.kind == NormKind::rms);
  LIULI_CHECK(x.width == y.width && x.n == y.n);
  for_each_row(c, x.n, [&](int64_t i) {
    float mean = 0, sigma = 0;
    if (norm.kind == NormKind::rms)
      sigma = c.rows.rms_norm(x.row(i), norm.gamma, norm.eps, x.width, y.row(i));
    else
      sigma = c.rows.layer_norm(x.row(i), norm.gamma, norm.beta, norm.eps, x.width, y.row(i), &mean);
    if (stats.mean != nullptr) stats.mean[i] = mean;
    if (stats.sigma != nullptr) stats.sigma[i] = sigma;
  });
}

void batch_norm_forward(OpContext& c, const BatchNorm& norm, Rows x, Rows y) {
  LIULI_CHECK(norm.affine.kind == NormKind::batch && x.width == y.width && x.n == y.n);
  for_each_row(c, x.n, [&](int64_t i) {
    for (int64_t j = 0; j < x.width; j++) {
      const float sigma = std::sqrt(norm.running_var[j] + norm.affine.eps);
      const float gamma = norm.affine.gamma != nullptr ? norm.affine.gamma[j] : 1.0f;
      const float beta = norm.affine.beta != nullptr ? norm.affine.beta[j] : 0.0f;
      y.row(i)[j] = (x.row(i)[j] - norm.running_mean[j]) / sigma * gamma + beta;
    }
  });
}

void column_statistics(Rows x, float* mean, float* var) {
  LIULI_CHECK(x.n > 0);
  for (int64_t j = 0; j < x.width; j++) {
    double sum = 0, square = 0;
    for (int64_t i = 0; i < x.n; i++) sum += static_cast<double>(x.row(i)[j]);
    const double mu = sum / static_cast<double>(x.n);
    for (int64_t i = 0; i < x.n; i++) {
      const double d = static_cast<double>(x.row(i)[j]) - mu;
      square += d * d;
    }
    mean[j] = static_cast<float>(mu);
    var[j] = static_cast<float>(square / static_cast<double>(x.n));
  }
}

namespace {

// One row: x̂ into `normal`, dx from it. Sums in double, as in the forward kernels.
void norm_row_backward(const Norm& norm, const float* x, const float* dy, int64_t n, float* normal, float* dx,
                       bool accumulate) {
  const auto width = static_cast<double>(n);
  const double mean = norm.kind == NormKind::layer ? lane_sum(n, [&](int64_t j) { return x[j]; }) / width : 0;
  const double square = lane_sum(n, [&](int64_t j) {
    const double d = static_cast<double>(x[j]) - mean;
    return d * d;
  });
  const double inverse = 1 / std::sqrt(square / width + static_cast<double>(norm.eps));
  for (int64_t j = 0; j < n; j++)
    normal[j] = static_cast<float>((static_cast<double>(x[j]) - mean) * inverse);
  const float* gamma = norm.gamma;
  const auto u_at = [&](int64_t j) {
    return static_cast<double>(dy[j]) * (gamma != nullptr ? static_cast<double>(gamma[j]) : 1.0);
  };
  const double sum_u = norm.kind == NormKind::layer ? lane_sum(n, u_at) : 0;
  const double sum_ux = lane_sum(n, [&](int64_t j) { return u_at(j) * static_cast<double>(normal[j]); });
  const auto mean_u = static_cast<float>(sum_u / width);
  const auto mean_ux = static_cast<float>(sum_ux / width), r = static_cast<float>(inverse);
  for (int64_t j = 0; j < n; j++) {
    const float u = dy[j] * (gamma != nullptr ? gamma[j] : 1.0f);
    const float d = r * (u - mean_u - normal[j] * mean_ux);
    dx[j] = accumulate ? dx[j] + d : d;
  }
}

}  // namespace

void norm_backward(OpContext& c, const Norm& norm, NormGradient gradient, Rows x, Rows dy, Rows dx,
                   bool accumulate) {
  LIULI_CHECK(norm.kind == NormKind::layer || norm.kind == NormKind::rms);
  LIULI_CHECK(x.width == dy.width && x.n == dy.n && dx.width == x.width && dx.data != dy.data);
  const Arena::Scope scope(c.scratch);
  Rows normal = make_rows(c.scratch, x.n, x.width);
  for_each_row(c, x.n, [&](int64_t i) {
    norm_row_backward(norm, x.row(i), dy.row(i), x.width, normal.row(i), dx.row(i), accumulate);
  });
  if (gradient.gamma != nullptr)
    add_column_sums(c, x.n, x.width, gradient.gamma,
                    [&](int64_t i, int64_t j) { return dy.row(i)[j] * normal.row(i)[j]; });
  if (gradient.beta != nullptr) add_column_sums(c, dy, gradient.beta);
}

namespace {
struct BatchStatistics {
  float *mean, *var;
};
BatchStatistics batch_statistics(OpContext& c, Rows x) {
  BatchStatistics s{c.scratch.floats(x.width), c.scratch.floats(x.width)};
  column_statistics(x, s.mean, s.var);
  return s;
}
}  // namespace

void batch_norm_train_forward(OpContext& c, const Norm& affine, Rows x, Rows y, float* running_mean,
                              float* running_var, float momentum) {
  LIULI_CHECK(x.n > 1 && x.width == y.width);
  const Arena::Scope scope(c.scratch);
  const BatchStatistics s = batch_statistics(c, x);
  batch_norm_forward(c, {affine, s.mean, s.var}, x, y);
  const float unbiased = static_cast<float>(x.n) / static_cast<float>(x.n - 1);
  for (int64_t j = 0; j < x.width; j++) {
    running_mean[j] += momentum * (s.mean[j] - running_mean[j]);
    running_var[j] += momentum * (s.var[j] * unbiased - running_var[j]);
  }
}

void batch_norm_backward(OpContext& c, const Norm& affine, NormGradient gradient, Rows x, Rows dy, Rows dx) {
  LIULI_CHECK(x.n > 1 && x.width == dy.width && dx.width == x.width);
  const Arena::Scope scope(c.scratch);
  const BatchStatistics s = batch_statistics(c, x);
  auto normal = [&](int64_t i, int64_t j) {
    return (x.row(i)[j] - s.mean[j]) / std::sqrt(s.var[j] + affine.eps);
  };
  float *sum = c.scratch.floats(x.width), *product = c.scratch.floats(x.width);
  std::fill_n(sum, x.width, 0.0f);
  std::fill_n(product, x.width, 0.0f);
  add_column_sums(c, dy, sum);
  add_column_sums(c, x.n, x.width, product,
                  [&](int64_t i, int64_t j) { return dy.row(i)[j] * normal(i, j); });
  const float n = static_cast<float>(x.n);
  for_each_row(c, x.n, [&](int64_t i) {
    for (int64_t j = 0; j < x.width; j++) {
      const float gamma = affine.gamma != nullptr ? affine.gamma[j] : 1.0f;
      const float r = 1 / std::sqrt(s.var[j] + affine.eps);
      dx.row(i)[j] = gamma * r * (dy.row(i)[j] - sum[j] / n - normal(i, j) * product[j] / n);
    }
  });
  for (int64_t j = 0; j < x.width; j++) {
    if (gradient.gamma != nullptr) gradient.gamma[j] += product[j];
    if (gradient.beta != nullptr) gradient.beta[j] += sum[j];
  }
}

}  // namespace liuli
