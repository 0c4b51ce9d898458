// The tensors that Llama-like decoders share.
#pragma once
#include "model/families/family.h"

namespace liuli {

/// Embedding, output, q k v o, feed-forward or experts, and the norms that the configuration's slots ask for, with
/// their shapes.
std::vector<TensorSpec> decoder_tensors(const ModelConfig& config, Naming naming);

/// A layer's dense feed-forward, and a layer's router, experts and shared expert.
void add_feed_forward(const ModelConfig& config, int layer, std::vector<TensorSpec>& tensors);
void add_expert_tensors(const ModelConfig& config, int layer, Naming naming,
                        std::vector<TensorSpec>& tensors);

/// Biases of q, k and v that a family has; biases of every matrix that a file may have or not (Llama's attention_bias
/// and mlp_bias).
void add_qkv_biases(const ModelConfig& config, std::vector<TensorSpec>& tensors);
void add_optional_biases(const ModelConfig& config, std::vector<TensorSpec>& tensors);
/// Llama's GGUF converters interleave the two halves of every q and k head, and of their biases; RowOrder undoes it.
void undo_interleaving(const ModelConfig& config, Naming naming, std::vector<TensorSpec>& tensors);

/// What older Llama-like folders store beside the weights: the frequencies of RoPE.
bool is_rope_buffer(const ModelConfig& config, const std::string& name);

}  // namespace liuli
