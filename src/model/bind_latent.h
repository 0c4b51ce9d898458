// Latent attention's weights, from either way that files keep them.
#pragma once
#include "model/binder.h"

namespace liuli {

/// Errors: corrupt_file when the file has neither attn_kv_b nor its two halves.
LatentAttention bind_latent_attention(const Binder& binder, const ModelConfig& config, const LayerPlan& plan,
                                      Binder::Where at);

}  // namespace liuli
