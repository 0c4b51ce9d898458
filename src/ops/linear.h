// Matrix products of activations with stored weights, in any class.
#pragma once
#include <initializer_list>
#include <span>

#include "ops/context.h"
#include "ops/matrix.h"

namespace liuli {

/// One weight to multiply the shared input with: y = W x + bias.
struct LinearJob {
  const Matrix* weight;
  const float* bias;  ///< [d_out] or null
  Rows y;             ///< [n_rows, d_out], from make_rows (the kernels write whole panels)
};

/// Whether the prompt class multiplies this matrix in 8-bit blocks (kernels/int8_blocks.h).
bool multiplies_in_int8(const OpContext& c, const Matrix& m);

/// y_j = x W_jᵀ + b_j for every job. Jobs share x, so that it is packed or quantised once (q, k, v; gate and
/// up). Shapes: x [n_rows, d_in], W_j [d_out_j, d_in], y_j [n_rows, d_out_j]. A row of y depends on that row
/// of x, W and the class only: not on n_rows, threads or the other jobs.
void linear_forward(OpContext& c, Rows x, std::span<const LinearJob> jobs);
inline void linear_forward(OpContext& c, Rows x, std::initializer_list<LinearJob> jobs) {
  linear_forward(c, x, std::span(jobs.begin(), jobs.size()));
}

/// One of several products that each have an input of their own (attention's heads, a layer's experts).
struct LinearCall {
  Rows x;
  LinearJob job;
};
/// The same for every call, in one go: the threads share all calls' panels evenly. Neighbours with the same x share its
/// packed form.
void linear_forward_each(OpContext& c, std::span<const LinearCall> calls);

/// A weight being trained and where its gradient is gathered: plain row-major f32.
struct TrainedLinear {
  const float* weight;  ///< [d_out, d_in]
  float* d_weight;      ///< [d_out, d_in] or null (frozen)
  float* d_bias;        ///< [d_out] or null
  int64_t d_out, d_in;
};
/// d_weight += dyᵀ x, d_bias += Σ dy, and dx = dy W (or dx += with `accumulate`); dx may be empty.
/// Shapes: x [n_rows, d_in], dy [n_rows, d_out], dx [n_rows, d_in].
void linear_backward(OpContext& c, const TrainedLinear& w, Rows x, Rows dy, Rows dx, bool accumulate = false);

}  // namespace liuli
