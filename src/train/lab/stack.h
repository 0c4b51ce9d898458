// Stacks of random blocks, with their norms wherever an experiment wants them.
#pragma once
#include <string>

#include "model/weights.h"
#include "train/parameters.h"

namespace liuli::lab {

/// Where a block is normalised. deepnorm: post-norm with residual_scale α and smaller initial weights.
enum class Placement { none, pre, post, sandwich, deepnorm };
const char* to_string(Placement placement);

struct StackShape {
  Placement placement = Placement::pre;
  NormKind norm = NormKind::layer;
  int64_t depth = 6, d_model = 64, d_ff = 64, n_heads = 4, vocab_size = 64;
  bool gated = false;  ///< SwiGLU, otherwise relu
  bool causal = true;
  bool fast_lane = true;  ///< false: x = branch, without + x
  bool tied = false;
};

/// DeepNorm's constants for one tower of N blocks: α = (2N)^¼ on the lane, β = (8N)^(−¼) as gain of v, o and the
/// feed-forward. Source: arXiv:2203.00555, table 1.
double deepnorm_alpha(int64_t depth);
double deepnorm_beta(int64_t depth);

ModelConfig stack_config(const StackShape& shape);

/// A stack ready to run and to learn. Matrices are Xavier normal, N(0, 2 / (d_in + d_out)), times β in DeepNorm;
/// embeddings N(0, 1), so that the stream begins with unit variance; the head N(0, 1 / d_model); γ = 1, β = 0.
struct RandomStack {
  RandomStack(const StackShape& stack_shape, uint64_t seed);
  RandomStack(const RandomStack&) = delete;
  RandomStack& operator=(const RandomStack&) = delete;

  StackShape shape;
  ModelConfig config;
  Parameters parameters;
  Model model;
};

/// √(Σ g²) of a parameter's gradient.
double gradient_size(const Parameter& parameter);
/// √(Σ x² / count) of rows; infinite or NaN where a value is.
double root_mean_square(Rows rows);
/// √(Σ x²).
double frobenius(Rows rows);

}  // namespace liuli::lab
