// The tensors of a known model, under their GGUF names: what a file of it holds, and what its parameters are made of.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "convert/known_models.h"
#include "convert/type_mix.h"

namespace liuli {

enum class ModelPart : uint8_t {
  embedding,
  positions,  ///< learned positions and segments
  attn_q,
  attn_k,
  attn_v,
  attn_qkv,
  q_down,   ///< latent attention: to the queries' latent …
  q_up,     ///< … and from it to every head
  kv_down,  ///< to the latent that is cached, and the shared rotated key
  k_up,     ///< from there to every head's key …
  v_up,     ///< … and value
  kv_up,    ///< both in one matrix, as older files have it
  attn_output,
  cross_attention,
  ffn,
  router,
  experts,
  shared_experts,
  norms,
  pooler,
  output,
};
const char* part_name(ModelPart part);

/// What the values of a made-up model look like.
enum class Filling : uint8_t {
  weights,   ///< N(0, 1/d_in): a vector of RMS 1 stays one
  gain,      ///< a norm's factor: near 1
  shift,     ///< biases: near 0
  divisors,  ///< of the RoPE frequencies, by formula
};

struct ModelTensor {
  std::string name;
  std::vector<int64_t> shape;  ///< last index contiguous: [d_out, d_in], [n_experts, d_out, d_in]
  ModelPart part;
  Filling filling = Filling::weights;
  double active = 1;  ///< share of it that one token uses: n_experts_active / n_experts for experts

  int64_t elements() const;
  /// Whether a token's vector is multiplied with it: matrices, but not tables of which rows are read. (An embedding
  /// that is also the output matrix counts once, as a factor.)
  bool multiplies(const KnownModel& model) const;
};

std::vector<ModelTensor> tensor_list(const KnownModel& model);

/// What a choice of stored types depends on.
MixModel mix_model_of(const KnownModel& model);

}  // namespace liuli
