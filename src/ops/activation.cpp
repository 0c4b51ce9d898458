#include "ops/activation.h"

#include "core/check.h"

namespace liuli {

void activation_forward(OpContext& c, Activation activation, Rows x, Rows y) {
  LIULI_CHECK(x.n == y.n && x.width == y.width);
  auto kernel = c.rows.silu;
  switch (activation) {
    case Activation::silu:
      kernel = c.rows.silu;
      break;
    case Activation::gelu_tanh:
      kernel = c.rows.gelu_tanh;
      break;
    case Activation::gelu_erf:
      kernel = c.rows.gelu_erf;
      break;
    case Activation::relu:
      kernel = c.rows.relu;
      break;
  }
  for_each_row(c, x.n, [&](int64_t i) { kernel(x.row(i), x.width, y.row(i)); });
}

void activation_backward(OpContext& c, Activation activation, Rows x, Rows dy, Rows dx) {
  LIULI_CHECK(x.n == dy.n && x.width == dy.width && dx.width == x.width);
  auto kernel = c.rows.silu_backward;
  switch (activation) {
    case Activation::silu:
      break;
    case Activation::gelu_tanh:
      kernel = c.rows.gelu_tanh_backward;
      break;
    case Activation::gelu_erf:
      kernel = c.rows.gelu_erf_backward;
      break;
    case Activation::relu:
      kernel = c.rows.relu_backward;
      break;
  }
  for_each_row(c, x.n, [&](int64_t i) { kernel(x.row(i), dy.row(i), x.width, dx.row(i)); });
}

void multiply_in_place(OpContext& c, Rows x, Rows a) {
  LIULI_CHECK(x.n == a.n && x.width == a.width);
  for_each_row(c, x.n, [&](int64_t i) { c.rows.multiply(x.row(i), a.row(i), x.width); });
}

void add_in_place(OpContext& c, Rows x, Rows a, float residual_scale) {
  LIULI_CHECK(x.n == a.n && x.width == a.width);
  for_each_row(c, x.n, [&](int64_t i) {
    if (residual_scale == 1.0f)
      c.rows.add(x.row(i), a.row(i), x.width);
    else
      c.rows.scale_add(x.row(i), residual_scale, a.row(i), x.width);
  });
}

}  // namespace liuli
