// A Hugging Face folder's tensors under GGUF's names and in GGUF's arrangement.
#pragma once
#include <memory>
#include <vector>

#include "convert/quantize_source.h"
#include "model/families/family.h"

namespace liuli {

/// Every tensor that a GGUF file of the model has, each with what it is made of:
///
///   the same rows            most; their bytes are handed out as they are
///   rows in another order    q and k of Llama-like families, whose converters interleave the halves of every head
///   rows of many tensors     experts: [n_experts, d_out, d_in] out of a matrix each
///   columns as rows          GPT-2's [d_in, d_out]; the keys' part of MLA's W_kvb, head by head (attn_k_b)
///   values plus one          Gemma's norms
///   computed                 the divisors of Llama 3's RoPE frequencies (rope_freqs.weight)
///
/// config: in GGUF's terms (config_in_gguf). The source's tensors must have been checked (Binder).
/// Errors: unsupported for a tensor that the family keeps in GGUF and cannot be made.
std::vector<SourceTensor> folder_tensors(const std::shared_ptr<const WeightSource>& source,
                                         const Family& family, const ModelConfig& config);

}  // namespace liuli
