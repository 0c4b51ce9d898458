// A Hugging Face folder (or a safetensors file in one) as what a quantiser reads.
#pragma once
#include "convert/quantize_source.h"

namespace liuli {

/// Tensors, keys and tokenizer in GGUF's terms. What GGUF cannot say is refused: the keys are read back, and the model
/// that they describe must compute the same.
///
/// tokenizer: false leaves it out.
/// Errors: unsupported (a family without a GGUF architecture; a configuration, tensor or tokenizer that GGUF cannot
/// express, by name), corrupt_file.
QuantizeSource folder_source(const std::shared_ptr<const WeightSource>& weights, bool tokenizer);

}  // namespace liuli
