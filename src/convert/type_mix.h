// Which tensor of a GGUF file gets which stored type: the mixes that llama.cpp's quantiser made customary ("q4_k_m").
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"

namespace liuli {

/// What a tensor is for, as far as its precision is concerned; read off its GGUF name.
enum class TensorUse : uint8_t {
  kept,  ///< stays F32: vectors, norms, routers, biases, position and segment tables
  embedding,
  output,
  attn_q,
  attn_k,
  attn_v,  ///< also a fused q, k, v matrix, and MLA's joint k and v matrix: as sensitive as v alone
  attn_output,
  ffn_gate,
  ffn_up,
  ffn_down,
  other,
};
TensorUse tensor_use(std::string_view name, const std::vector<int64_t>& shape);

/// What the choice depends on besides the tensor.
struct MixModel {
  int64_t n_layers = 0;
  int64_t heads_per_kv_head = 1;
  int64_t n_experts = 0;
  bool tied_embeddings = false;  ///< the embedding is the output matrix too, and gets its type
  bool importance = false;       ///< the encoder knows which columns matter (an importance matrix)
};

struct MixRule;

/// A mix by name.
struct TypeMix {
  const char* name;    ///< "q4_k_m"; a plain type's name ("q8_0", "f16") is a mix too
  uint32_t file_type;  ///< GGUF's general.file_type
  DType base;          ///< of everything that no rule names
  std::vector<MixRule> rules;

  /// The stored type of one tensor. Shapes are in our order; where a row is no whole number of blocks, a type with a
  /// smaller block steps in (Q4_K → Q5_0, Q5_K → Q5_1, Q6_K → Q8_0, Q2_K, Q3_K → Q4_0, IQ → IQ4_NL), at last F16.
  DType type_of(std::string_view tensor, const std::vector<int64_t>& shape, const MixModel& model) const;
};

/// The mix of a name in any case ("Q4_K_M"), or null.
const TypeMix* find_type_mix(std::string_view name);
const std::vector<TypeMix>& type_mixes();

}  // namespace liuli
