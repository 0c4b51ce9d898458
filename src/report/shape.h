// The arithmetic behind include/liuli/shape.h: what a built-in model and a file have in common.
#pragma once
#include "convert/tensor_list.h"
#include "liuli/shape.h"

namespace liuli {

/// One tensor as far as sums are concerned.
struct CountedTensor {
  ModelPart part;
  int64_t elements = 0;
  bool multiplies = false;  ///< a token's vector is multiplied with it
  double active = 1;        ///< share of it that one token uses

  int64_t active_elements() const { return static_cast<int64_t>(static_cast<double>(elements) * active); }
};

/// What decides about cache and attention.
struct AttentionSizes {
  bool cached = true;  ///< false: an encoder, which keeps nothing
  int64_t n_heads = 0, n_kv_heads = 0;
  int64_t key_width = 0, value_width = 0;          ///< of one head
  int64_t latent_width = 0, latent_key_width = 0;  ///< MLA: the latent, and with the rotated key; 0: none
  std::vector<int64_t> windows;                    ///< per layer; 0: sees everything
};

/// Each fills its part of the shape; add_attention needs the other's sums.
void add_parameters(ModelShape& shape, const std::vector<CountedTensor>& tensors);
void add_attention(ModelShape& shape, const AttentionSizes& sizes);

/// The number of tokens to count for when 0 were asked for. Errors: invalid_argument for a negative number.
int64_t counted_context(int64_t asked, int64_t trained);

ModelShape shape_of(const KnownModel& model, int64_t context, CacheType cache_type = CacheType::automatic);

}  // namespace liuli
