// The tensors that Llama-like decoders share.
#pragma once
#include "model/families/family.h"

namespace liuli {

/// Embedding, output, norms before attention and feed-forward, q k v o, gate up down, with their shapes.
std::vector<TensorSpec> decoder_tensors(const ModelConfig& config);

}  // namespace liuli
