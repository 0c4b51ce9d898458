#include "train/lab/perceptron.h"

#include <algorithm>
#include <cmath>

#include "core/rng.h"
#include "ops/activation.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/norm.h"

namespace liuli::lab {
namespace {

constexpr float kEps = 1e-5f;

std::vector<Parameter> named_parameters(int64_t vocabulary) {
  std::vector<Parameter> all;
  const auto add = [&](const char* name, std::vector<int64_t> shape) {
    Parameter& p = all.emplace_back();
    p.name = name;
    p.shape = std::move(shape);
  };
  add("embed", {vocabulary, Perceptron::kEmbedding});
  add("w1", {Perceptron::kHidden, Perceptron::kContext * Perceptron::kEmbedding});
  add("gamma", {Perceptron::kHidden});
  add("beta", {Perceptron::kHidden});
  add("w2", {vocabulary, Perceptron::kHidden});
  return all;
}

Matrix matrix_of(const Parameter& p) {
  return Matrix(p.name, DType::f32, p.shape[0], p.shape[1], reinterpret_cast<const uint8_t*>(p.value));
}
TrainedLinear trained(const Parameter& p) { return {p.value, p.gradient, nullptr, p.shape[0], p.shape[1]}; }

}  // namespace

Perceptron::Perceptron(NormKind kind, int64_t vocabulary, uint64_t seed)
    : kind_(kind),
      vocabulary_(vocabulary),
      parameters_(named_parameters(vocabulary)),
      embed_(parameters_.find("embed")),
      w1_(parameters_.find("w1")),
      gamma_(parameters_.find("gamma")),
      beta_(parameters_.find("beta")),
      w2_(parameters_.find("w2")),
      running_mean_(kHidden, 0.0f),
      running_var_(kHidden, 1.0f) {
  std::fill_n(gamma_->value, kHidden, 1.0f);
  uint64_t stream = 0;
  for (Parameter* p : {embed_, w1_, w2_}) {
    Rng rng(seed, 100 + stream++);
    const double std = p == embed_ ? 1 : 1 / std::sqrt(static_cast<double>(p->shape[1]));
    for (int64_t i = 0; i < p->size; i++) p->value[i] = static_cast<float>(std * rng.normal());
  }
}

Norm Perceptron::norm() const { return {kind_, gamma_->value, beta_->value, kEps}; }

void Perceptron::normalise(OpContext& c, Statistics statistics, bool learning, const Pass& p) {
  if (kind_ == NormKind::layer) return norm_forward(c, norm(), p.hidden, p.normed);
  if (learning)
    return batch_norm_train_forward(c, norm(), p.hidden, p.normed, running_mean_.data(), running_var_.data());
  if (statistics == Statistics::running)
    return batch_norm_forward(c, {norm(), running_mean_.data(), running_var_.data()}, p.hidden, p.normed);
  std::vector<float> mean(kHidden), var(kHidden);
  column_statistics(p.hidden, mean.data(), var.data());
  batch_norm_forward(c, {norm(), mean.data(), var.data()}, p.hidden, p.normed);
}

Perceptron::Pass Perceptron::forward(OpContext& c, const Batch& batch, Statistics statistics, bool learning) {
  const auto n = static_cast<int64_t>(batch.targets.size());
  Pass p;
  // Three neighbouring rows of kEmbedding numbers are one row of their concatenation.
  const Rows looked_up = make_rows(c.scratch, n * kContext, kEmbedding);
  embedding_forward(c, matrix_of(*embed_), batch.inputs, 1, looked_up);
  p.embedded = make_rows(c.scratch, n, kContext * kEmbedding);
  for (int64_t i = 0; i < n * kContext; i++)
    std::copy_n(looked_up.row(i), kEmbedding, p.embedded.row(i / kContext) + i % kContext * kEmbedding);
  p.hidden = make_rows(c.scratch, n, kHidden);
  p.normed = make_rows(c.scratch, n, kHidden);
  p.active = make_rows(c.scratch, n, kHidden);
  p.logits = make_rows(c.scratch, n, vocabulary_);
  const Matrix w1 = matrix_of(*w1_), w2 = matrix_of(*w2_);
  linear_forward(c, p.embedded, {LinearJob{&w1, nullptr, p.hidden}});
  normalise(c, statistics, learning, p);
  activation_forward(c, Activation::relu, p.normed, p.active);
  linear_forward(c, p.active, {LinearJob{&w2, nullptr, p.logits}});
  return p;
}

void Perceptron::backward(OpContext& c, const Batch& batch, const Pass& p) {
  const int64_t n = p.logits.n;
  cross_entropy_backward(c, p.logits, batch.targets, 1 / static_cast<float>(n));
  const Rows d_active = make_rows(c.scratch, n, kHidden), d_hidden = make_rows(c.scratch, n, kHidden);
  linear_backward(c, trained(*w2_), p.active, p.logits, d_active);
  activation_backward(c, Activation::relu, p.normed, d_active, d_active);
  const NormGradient gradient{gamma_->gradient, beta_->gradient};
  if (kind_ == NormKind::layer)
    norm_backward(c, norm(), gradient, p.hidden, d_active, d_hidden, false);
  else
    batch_norm_backward(c, norm(), gradient, p.hidden, d_active, d_hidden);
  const Rows d_embedded = make_rows(c.scratch, n, kContext * kEmbedding);
  linear_backward(c, trained(*w1_), p.embedded, d_hidden, d_embedded);
  const Rows d_looked_up = make_rows(c.scratch, n * kContext, kEmbedding);
  for (int64_t i = 0; i < n * kContext; i++)
    std::copy_n(d_embedded.row(i / kContext) + i % kContext * kEmbedding, kEmbedding, d_looked_up.row(i));
  embedding_backward(c, embed_->gradient, batch.inputs, 1, d_looked_up);
}

double Perceptron::train_pass(Runner& runner, const Batch& batch) {
  OpContext c = make_context(runner, ProductClass::f32);
  const Arena::Scope scope(c.scratch);
  parameters_.clear_gradients();
  const Pass p = forward(c, batch, Statistics::of_batch, true);
  const double loss = cross_entropy_forward(c, p.logits, batch.targets).sum / static_cast<double>(p.logits.n);
  backward(c, batch, p);
  return loss;
}

double Perceptron::evaluate(Runner& runner, const Batch& batch, Statistics statistics) {
  OpContext c = make_context(runner, ProductClass::f32);
  const Arena::Scope scope(c.scratch);
  const Pass p = forward(c, batch, statistics, false);
  return cross_entropy_forward(c, p.logits, batch.targets).sum / static_cast<double>(p.logits.n);
}

}  // namespace liuli::lab
