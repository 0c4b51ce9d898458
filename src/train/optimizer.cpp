#include "train/optimizer.h"

#include <algorithm>
#include <cmath>

#include "core/lane_sum.h"
#include "model/transformer.h"
#include "train/muon.h"

namespace liuli {
namespace {

// Pieces that threads take; a piece's work is the same whoever does it.
constexpr int64_t kPiece = 16384;

struct Piece {
  size_t parameter;
  int64_t begin, end;
};

std::vector<Piece> pieces_of(const Parameters& parameters) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < parameters.all().size(); i++)
    for (int64_t at = 0; at < parameters.all()[i].size; at += kPiece)
      pieces.push_back({i, at, std::min(at + kPiece, parameters.all()[i].size)});
  return pieces;
}

template <class F>
void for_each_piece(ThreadPool& pool, const std::vector<Piece>& pieces, F&& f) {
  pool.parallel_for(static_cast<int64_t>(pieces.size()), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i++) f(pieces[static_cast<size_t>(i)], static_cast<size_t>(i));
  });
}

struct AdamFactors {
  float beta1, beta2, inverse1, inverse2, eps, lr, decoupled_decay, gradient_decay, clip;
};

void adam_piece(const AdamFactors& f, const float* __restrict g, int64_t n, float* __restrict w,
                float* __restrict m, float* __restrict v) {
  for (int64_t i = 0; i < n; i++) {
    const float gradient = f.clip * g[i] + f.gradient_decay * w[i];
    m[i] = f.beta1 * m[i] + (1 - f.beta1) * gradient;
    v[i] = f.beta2 * v[i] + (1 - f.beta2) * gradient * gradient;
    const float step = m[i] * f.inverse1 / (std::sqrt(v[i] * f.inverse2) + f.eps);
    w[i] -= f.lr * (step + f.decoupled_decay * w[i]);
  }
}

struct SgdFactors {
  float momentum, lr, decay, clip;
  bool first, nesterov;
};

void sgd_piece(const SgdFactors& f, const float* g, int64_t n, float* w, float* b) {
  for (int64_t i = 0; i < n; i++) {
    const float gradient = f.clip * g[i] + f.decay * w[i];
    b[i] = f.first ? gradient : f.momentum * b[i] + gradient;
    w[i] -= f.lr * (f.nesterov ? gradient + f.momentum * b[i] : b[i]);
  }
}

}  // namespace

Optimizer::Optimizer(Parameters& parameters, const OptimizerSettings& settings)
    : parameters_(parameters), settings_(settings) {
  for (const Parameter& p : parameters_.all()) {
    first_.emplace_back(static_cast<size_t>(p.size));
    const bool one = settings.kind == OptimizerKind::sgd || takes_muon(p);
    second_.emplace_back(one ? size_t{0} : static_cast<size_t>(p.size));
  }
}

bool Optimizer::takes_muon(const Parameter& p) const {
  return settings_.kind == OptimizerKind::muon && p.shape.size() == 2 && p.spec.layer >= 0;
}

void Optimizer::muon_steps(ThreadPool& pool, float learning_rate, float clip) {
  const auto& best = kernels::best_kernels();
  OpContext c{best, best.rows, attention_kernels(ProductClass::f32), pool, scratch_, ProductClass::f32};
  const auto momentum = static_cast<float>(settings_.momentum),
             decay = static_cast<float>(settings_.weight_decay);
  for (size_t i = 0; i < parameters_.all().size(); i++) {
    Parameter& p = parameters_.all()[i];
    if (!takes_muon(p)) continue;
    const Arena::Scope scope(scratch_);
    float *update = scratch_.floats(p.size), *b = first_[i].data();
    for (int64_t j = 0; j < p.size; j++) {
      const float gradient = clip * p.gradient[j];
      b[j] = momentum * b[j] + gradient;
      update[j] = gradient + momentum * b[j];
    }
    orthogonalise(c, update, p.shape[0], p.shape[1]);
    const auto scale = 0.2f * std::sqrt(static_cast<float>(std::max(p.shape[0], p.shape[1])));
    for (int64_t j = 0; j < p.size; j++)
      p.value[j] -= learning_rate * (scale * update[j] + decay * p.value[j]);
  }
}

void Optimizer::step(ThreadPool& pool, double learning_rate, float clip) {
  steps_++;
  const OptimizerSettings& o = settings_;
  const auto t = static_cast<double>(steps_);
  const auto inverse1 = static_cast<float>(1 / (1 - std::pow(o.beta1, t)));
  const auto inverse2 = static_cast<float>(1 / (1 - std::pow(o.beta2, t)));
  const auto lr = static_cast<float>(learning_rate);
  if (o.kind == OptimizerKind::muon) muon_steps(pool, lr, clip);
  for_each_piece(pool, pieces_of(parameters_), [&](const Piece& piece, size_t) {
    Parameter& p = parameters_.all()[piece.parameter];
    if (takes_muon(p)) return;
    const float decay = p.is_matrix() || o.decay_vectors ? static_cast<float>(o.weight_decay) : 0.0f;
    float* first = first_[piece.parameter].data() + piece.begin;
    const int64_t n = piece.end - piece.begin;
    if (o.kind == OptimizerKind::sgd)
      return sgd_piece({static_cast<float>(o.momentum), lr, decay, clip, steps_ == 1, o.nesterov},
                       p.gradient + piece.begin, n, p.value + piece.begin, first);
    const bool decoupled = o.kind != OptimizerKind::adam;
    adam_piece({static_cast<float>(o.beta1), static_cast<float>(o.beta2), inverse1, inverse2,
                static_cast<float>(o.eps), lr, decoupled ? decay : 0.0f, decoupled ? 0.0f : decay, clip},
               p.gradient + piece.begin, n, p.value + piece.begin, first,
               second_[piece.parameter].data() + piece.begin);
  });
}

double gradient_norm(ThreadPool& pool, const Parameters& parameters) {
  const std::vector<Piece> pieces = pieces_of(parameters);
  std::vector<double> squares(pieces.size());
  for_each_piece(pool, pieces, [&](const Piece& piece, size_t i) {
    const float* g = parameters.all()[piece.parameter].gradient;
    squares[i] = lane_sum(piece.end - piece.begin, [&](int64_t j) {
      const auto value = static_cast<double>(g[piece.begin + j]);
      return value * value;
    });
  });
  double sum = 0;
  for (const double s : squares) sum += s;
  return std::sqrt(sum);
}

float clip_factor(double norm, double limit) {
  return static_cast<float>(std::min(1.0, limit / (norm + 1e-6)));
}

void clip_gradients(ThreadPool& pool, Parameters& parameters, double norm, double limit) {
  const float factor = clip_factor(norm, limit);
  if (factor >= 1) return;
  for_each_piece(pool, pieces_of(parameters), [&](const Piece& piece, size_t) {
    float* g = parameters.all()[piece.parameter].gradient;
    for (int64_t j = piece.begin; j < piece.end; j++) g[j] *= factor;
  });
}

}  // namespace liuli
