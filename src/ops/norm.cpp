#include "ops/norm.h"

#include <cmath>

#include "core/check.h"

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

}  // namespace liuli
