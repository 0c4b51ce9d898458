#include "train/lab/stack.h"

#include <algorithm>
#include <cmath>

#include "core/rng.h"
#include "model/load.h"

namespace liuli::lab {
namespace {

constexpr double kUsualEps = 1e-5;

NormSlots slots_of(const StackShape& s) {
  NormSlots slots;
  const bool post = s.placement == Placement::post || s.placement == Placement::deepnorm;
  if (post) slots.after_add = s.norm;
  if (s.placement == Placement::pre || s.placement == Placement::sandwich) slots.before = s.norm;
  if (s.placement == Placement::sandwich) slots.on_output = s.norm;
  return slots;
}

// What DeepNorm makes smaller at the start.
bool is_scaled(Role role) {
  return role == Role::attn_v || role == Role::attn_o || role == Role::ffn_gate || role == Role::ffn_up ||
         role == Role::ffn_down;
}

double standard_deviation(const Parameter& p, const StackShape& s) {
  const auto d_out = static_cast<double>(p.shape[0]), d_in = static_cast<double>(p.shape[1]);
  if (p.spec.role == Role::token_embedding) return s.tied ? 1 / std::sqrt(d_in) : 1;
  if (p.spec.role == Role::output_matrix) return 1 / std::sqrt(d_in);
  const double gain =
      s.placement == Placement::deepnorm && is_scaled(p.spec.role) ? deepnorm_beta(s.depth) : 1;
  return gain * std::sqrt(2 / (d_in + d_out));
}

void draw(Parameters& parameters, const StackShape& shape, uint64_t seed) {
  uint64_t stream = 0;
  for (Parameter& p : parameters.all()) {
    stream++;
    if (!p.is_matrix()) {
      std::fill_n(p.value, p.size, p.name.ends_with("bias") ? 0.0f : 1.0f);
      continue;
    }
    Rng rng(seed, stream);
    const double std = standard_deviation(p, shape);
    for (int64_t i = 0; i < p.size; i++) p.value[i] = static_cast<float>(std * rng.normal());
  }
}

}  // namespace

const char* to_string(Placement placement) {
  constexpr const char* kNames[] = {"no norm", "pre-norm", "post-norm", "sandwich", "DeepNorm"};
  return kNames[static_cast<size_t>(placement)];
}

double deepnorm_alpha(int64_t depth) { return std::pow(2.0 * static_cast<double>(depth), 0.25); }
double deepnorm_beta(int64_t depth) { return std::pow(8.0 * static_cast<double>(depth), -0.25); }

ModelConfig stack_config(const StackShape& s) {
  ModelConfig c;
  c.family = "liuli_stack";
  c.vocab_size = s.vocab_size;
  c.d_model = s.d_model;
  c.n_layers = s.depth;
  c.d_ff = s.d_ff;
  c.n_heads = c.n_kv_heads = s.n_heads;
  c.head_dim = s.d_model / s.n_heads;
  c.max_seq_len = 4096;
  c.norm_eps = kUsualEps;
  c.activation = s.gated ? Activation::silu : Activation::relu;
  c.gated_ffn = s.gated;
  c.tied_embeddings = s.tied;
  c.attention_scale = 1 / std::sqrt(static_cast<double>(c.head_dim));
  c.causal = s.causal;
  if (s.tied) c.embedding_scale = std::sqrt(static_cast<double>(s.d_model));
  c.residual_scale = !s.fast_lane ? 0 : s.placement == Placement::deepnorm ? deepnorm_alpha(s.depth) : 1;
  const NormSlots slots = slots_of(s);
  c.final_norm = slots.before;  // a post-norm stack ends with one
  c.ropes = {RopeConfig{}};
  LayerPlan layer;
  layer.attn_norm = layer.ffn_norm = slots;
  c.layers.assign(static_cast<size_t>(s.depth), layer);
  return c;
}

RandomStack::RandomStack(const StackShape& stack_shape, uint64_t seed)
    : shape(stack_shape), config(stack_config(shape)), parameters(config) {
  draw(parameters, shape, seed);
  model = bind_trained_model(config, parameters.source());
}

double gradient_size(const Parameter& p) {
  double sum = 0;
  for (int64_t i = 0; i < p.size; i++)
    sum += static_cast<double>(p.gradient[i]) * static_cast<double>(p.gradient[i]);
  return std::sqrt(sum);
}

double frobenius(Rows rows) {
  double sum = 0;
  for (int64_t i = 0; i < rows.n; i++)
    for (int64_t j = 0; j < rows.width; j++)
      sum += static_cast<double>(rows.row(i)[j]) * static_cast<double>(rows.row(i)[j]);
  return std::sqrt(sum);
}

double root_mean_square(Rows rows) {
  return frobenius(rows) / std::sqrt(static_cast<double>(rows.n * rows.width));
}

}  // namespace liuli::lab
