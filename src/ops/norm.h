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

/// Where a norm's parameters gather their gradients; null where there is none (or it is frozen).
struct NormGradient {
  float* gamma = nullptr;
  float* beta = nullptr;
};
/// dx += the gradient of norm's input, from x and dy. With x̂ = (x − μ) / σ and u = γ ⊙ dy:
///   layer: dx = (u − mean(u) − x̂ · mean(u ⊙ x̂)) / σ        rms: dx = (u − x̂ · mean(u ⊙ x̂)) / σ
///   dγ += Σ dy ⊙ x̂, dβ += Σ dy over the rows.
/// dx may not be dy; it is added to where `accumulate`, else overwritten.
void norm_backward(OpContext& c, const Norm& norm, NormGradient gradient, Rows x, Rows dy, Rows dx,
                   bool accumulate);

/// Batch normalisation with fixed statistics (as at inference): column j of every row becomes
/// (x − running_mean[j]) / √(running_var[j] + eps) · γ[j] + β[j].
struct BatchNorm {
  Norm affine;
  const float* running_mean = nullptr;
  const float* running_var = nullptr;
};
void batch_norm_forward(OpContext& c, const BatchNorm& norm, Rows x, Rows y);

/// Training's form: the statistics of the batch itself, x̂ = (x − mean_j) / √(var_j + eps), y = γ x̂ + β; the running
/// statistics move by `momentum` towards it (the variance with n / (n − 1)).
/// Errors: CHECK of at least 2 rows.
void batch_norm_train_forward(OpContext& c, const Norm& affine, Rows x, Rows y, float* running_mean,
                              float* running_var, float momentum = 0.1f);
/// dx = γ r (dy − mean(dy) − x̂ mean(dy ⊙ x̂)) per column, means over the rows; dγ, dβ as for a layer norm.
void batch_norm_backward(OpContext& c, const Norm& affine, NormGradient gradient, Rows x, Rows dy, Rows dx);

/// Mean and (biased) variance of each column over the rows of x: what a batch norm uses while training.
/// Shapes: x [n_rows, width]; mean, var [width].
void column_statistics(Rows x, float* mean, float* var);

}  // namespace liuli
