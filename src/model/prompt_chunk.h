// How many tokens of a prompt pass through a model together.
#pragma once
#include "model/weights.h"

namespace liuli {

/// What a dense model takes: as many as a product takes at once, so that more would only need more memory.
constexpr int kDenseChunk = 512;

/// Tokens per pass. More than kDenseChunk where they part among experts: every expert's weights are expanded once per
/// pass, however few rows it gets. A pass never holds more than a tenth of the weights' memory for that.
int prompt_chunk(const Model& model);

/// What a pass of n prompt tokens holds at most besides weights and cache, in bytes.
int64_t pass_bytes(const ModelConfig& config, int64_t n);

}  // namespace liuli
