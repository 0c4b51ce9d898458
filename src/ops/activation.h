// The feed-forward's non-linearity, and the residual addition.
#pragma once
#include "liuli/config.h"
#include "ops/context.h"

namespace liuli {

/// y = act(x), element by element; y may be x.
///   silu x · sigmoid(x)   gelu_tanh x/2 · (1 + tanh(√(2/π)(x + 0.044715x³)))   gelu_erf x/2 · (1 +
///   erf(x/√2))   relu max(x, 0)
void activation_forward(OpContext& c, Activation activation, Rows x, Rows y);

/// dx = dy ⊙ act′(x); dx may be dy or x.
void activation_backward(OpContext& c, Activation activation, Rows x, Rows dy, Rows dx);

/// x ⊙= a: the gate of SwiGLU and GeGLU.
void multiply_in_place(OpContext& c, Rows x, Rows a);

/// x = residual_scale · x + a: the residual stream takes a branch's output. 1 is the usual fast lane.
void add_in_place(OpContext& c, Rows x, Rows a, float residual_scale);

}  // namespace liuli
