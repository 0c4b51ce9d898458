// Layer, RMS and batch normalisation.
#pragma once
#include "liuli/norm_kind.h"
#include "ops/context.h"

namespace liuli {

/// The learned part of a norm. kind none: the op is the identity.
struct Norm {
  NormKind kind = NormKind::none;
  const float* gamma = nullptr;  ///< [width], or null for all ones
  const float* beta = nullptr;   ///< [width], layer and batch only
  float eps = 0;
};

/// What a row was divided by, for those who watch: y = (x − mean) / sigma · γ + β. rms: mean is 0.
struct NormStats {
  float* mean = nullptr;   ///< [n_rows]
  float* sigma = nullptr;  ///< [n_rows]
};

/// y = norm(x), row by row. y may be x.
///   layer: (x − μ) / √(σ² + eps) · γ + β      rms: x / √(mean(x²) + eps) · γ
void norm_forward(OpContext& c, const Norm& norm, Rows x, Rows y, NormStats stats = {});

/// Batch normalisation with fixed statistics (as at inference): column j of every row becomes
/// (x − running_mean[j]) / √(running_var[j] + eps) · γ[j] + β[j].
struct BatchNorm {
  Norm affine;
  const float* running_mean = nullptr;
  const float* running_var = nullptr;
};
void batch_norm_forward(OpContext& c, const BatchNorm& norm, Rows x, Rows y);

/// Mean and (biased) variance of each column over the rows of x: what a batch norm uses while training.
/// Shapes: x [n_rows, width]; mean, var [width].
void column_statistics(Rows x, float* mean, float* var);

}  // namespace liuli
