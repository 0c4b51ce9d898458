// What the explainers of attention share.
#pragma once
#include "trace/calculation.h"

namespace liuli::numbers {

/// The attention that a place belongs to: one of the two is null.
const Attention* plain_attention(Calculation& c);
const LatentAttention* latent_attention(Calculation& c);

/// A key and a value as the cache gives them back.
struct StoredPair {
  std::vector<float> k, v;
};
StoredPair as_stored(const kernels::AttentionKernels& kernels, std::span<const float> k,
                     std::span<const float> v);
/// The same of a key that begins with its value.
StoredPair as_stored_shared(const kernels::AttentionKernels& kernels, std::span<const float> k,
                            int64_t value_dim);

}  // namespace liuli::numbers
