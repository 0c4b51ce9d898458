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

/// Layers where a rule holds, of L: the ends of the tower are more sensitive than its middle.
enum class MixWhen : uint8_t {
  always,
  first_two,
  first_four,
  first_eighth,     ///< l < L/8
  first_sixteenth,  ///< l < L/16
  more_bits,        ///< the first and last eighth, and every third layer between
  middle,           ///< L/8 ≤ l < 7L/8
  shared_heads,     ///< four or more query heads read one v: it is small, and its error spreads
  shared_or_experts,
  eight_experts,      ///< Mixtral: attention is a small part of the file
  expert_stack,       ///< a 3-D tensor
  eighth_unweighted,  ///< first_eighth, when the encoder has no importance matrix
  unweighted,
};

/// The first rule that fits a tensor decides.
struct MixRule {
  TensorUse use;
  MixWhen when;
  DType type;
};

/// A mix by name.
struct TypeMix {
  const char* name;    ///< "q4_k_m"; a plain type's name ("q8_0", "f16") is a mix too
  uint32_t file_type;  ///< GGUF's general.file_type
  DType base;          ///< of everything that no rule names
  std::vector<MixRule> rules;

  /// The stored type of one tensor. Shapes are in our order; rows that do not hold whole blocks get fitting_type().
  DType type_of(std::string_view tensor, const std::vector<int64_t>& shape, const MixModel& model) const;
};

/// The type itself where a row of `row` values is a whole number of its blocks; else one with a smaller block steps in
/// (Q4_K → Q5_0, Q5_K → Q5_1, Q6_K → Q8_0, Q2_K, Q3_K → Q4_0, IQ → IQ4_NL), at last F16.
DType fitting_type(DType type, int64_t row);

/// The mix of a name in any case ("Q4_K_M"), or null.
const TypeMix* find_type_mix(std::string_view name);
const std::vector<TypeMix>& type_mixes();
/// The mix of a name, or for a stored type without one ("q4_k", "nvfp4") every matrix in that type.
/// Errors: not_found, with the names that there are.
TypeMix require_type_mix(std::string_view name);

}  // namespace liuli
