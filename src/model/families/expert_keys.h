// The keys of mixtures of experts that route by softmax: Qwen's and Mixtral's.
#pragma once
#include "model/families/config_reader.h"

namespace liuli {

/// How many experts, how many of them per token, and how wide they are; without a width of their own they are as wide
/// as the configuration's d_ff.
/// Errors: corrupt_file when more experts are active than there are.
ExpertConfig read_softmax_experts(ConfigReader& reader, const ModelConfig& config);

/// Sets LayerPlan::routed. config.json: every decoder_sparse_step-th layer, without mlp_only_layers. GGUF: the layers
/// that have a router.
void read_routed_layers(ConfigReader& reader, ModelConfig& config);

}  // namespace liuli
