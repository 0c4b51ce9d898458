// What a GGUF file can say about a model that was described elsewhere.
#pragma once
#include <string>

#include "liuli/config.h"

namespace liuli {

/// The configuration in GGUF's terms: no pooler (the format has no tensors for it), and Llama 3's scaling of the RoPE
/// frequencies as one divisor per pair.
ModelConfig config_in_gguf(ModelConfig config);

/// The first thing that would be computed differently, as "head_dim is 24 here, 16 there"; "" if nothing would.
/// Numbers that files keep as f32 may differ by their rounding.
std::string first_difference(const ModelConfig& here, const ModelConfig& there);

}  // namespace liuli
