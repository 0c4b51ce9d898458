// The tensors that Llama-like decoders share.
#pragma once
#include "model/families/family.h"

namespace liuli {

/// Embedding, output, q k v o, gate up down, and the norms that the configuration's slots ask for, with their shapes.
std::vector<TensorSpec> decoder_tensors(const ModelConfig& config);

}  // namespace liuli
