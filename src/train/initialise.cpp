#include "train/initialise.h"

#include <algorithm>
#include <cmath>

#include "core/rng.h"

namespace liuli {
namespace {

constexpr int64_t kPiece = 4096;  // values drawn from one stream of random numbers

InitialScheme usual_scheme(const ModelConfig& c) {
  if (c.is_encoder_decoder()) return InitialScheme::xavier;
  if (!c.causal) return InitialScheme::truncated_normal;
  return c.final_norm == NormKind::layer ? InitialScheme::gpt2 : InitialScheme::normal;
}

bool is_embedding(Role role) {
  return role == Role::token_embedding || role == Role::position_embedding || role == Role::token_types;
}

bool writes_residual(Role role) {
  return role == Role::attn_o || role == Role::cross_o || role == Role::ffn_down ||
         role == Role::expert_down || role == Role::shared_down;
}

// How one matrix is drawn: N(0, std²), cut at 2 std or not, or uniform in ± bound.
struct Draw {
  double std = 0, bound = 0;
  bool cut = false;

  double operator()(Rng& rng) const {
    if (bound > 0) return (2 * rng.uniform() - 1) * bound;
    double z = rng.normal();
    while (cut && std::fabs(z) > 2) z = rng.normal();
    return z * std;
  }
};

Draw draw_of(const Parameter& p, const ModelConfig& c, InitialScheme scheme, double std) {
  const double blocks = static_cast<double>(c.layers.size() + c.encoder_layers.size());
  if (scheme == InitialScheme::xavier) {
    if (is_embedding(p.spec.role)) return {1 / std::sqrt(static_cast<double>(c.d_model))};
    return {0, std::sqrt(6 / static_cast<double>(p.shape[0] + p.shape[1]))};
  }
  if (scheme == InitialScheme::gpt2 && writes_residual(p.spec.role)) return {std / std::sqrt(2 * blocks)};
  return {std, 0, scheme == InitialScheme::truncated_normal};
}

}  // namespace

void initialise(Parameters& parameters, const ModelConfig& config, const InitialValues& values,
                ThreadPool& pool) {
  const InitialScheme scheme =
      values.scheme == InitialScheme::automatic ? usual_scheme(config) : values.scheme;
  uint64_t index = 0;
  for (Parameter& p : parameters.all()) {
    index++;
    if (!p.is_matrix()) {
      std::fill_n(p.value, p.size, p.name.ends_with("bias") ? 0.0f : 1.0f);
      continue;
    }
    const Draw draw = draw_of(p, config, scheme, values.standard_deviation);
    pool.parallel_for((p.size + kPiece - 1) / kPiece, [&](int64_t begin, int64_t end, int) {
      for (int64_t piece = begin; piece < end; piece++) {
        Rng rng(values.seed, (index << 32) + static_cast<uint64_t>(piece));
        for (int64_t i = piece * kPiece; i < std::min((piece + 1) * kPiece, p.size); i++)
          p.value[i] = static_cast<float>(draw(rng));
      }
    });
  }
}

}  // namespace liuli
