// Where the residual stream stands between the parts of a model: which value is the input of which.
#pragma once
#include "model/point.h"

namespace liuli {

/// The stream entering a block: its resid_pre.
Place block_input(const Place& in_block);
/// The stream leaving block `layer`, after a post-norm if there is one.
Place block_output(const ModelConfig& config, Stack stack, int layer);
/// The stream before the second half of a block: after attention, its post-norm, and cross-attention.
Place after_attention(const ModelConfig& config, const Place& in_block);
Place after_cross_attention(const ModelConfig& config, const Place& in_block);
/// What attention, cross-attention's queries and feed-forward multiply: the normed stream where there is a pre-norm.
Place attention_input(const ModelConfig& config, const Place& in_block);
Place cross_input(const ModelConfig& config, const Place& in_block);
Place feed_forward_input(const ModelConfig& config, const Place& in_block);
/// The last block's output, and what the output matrix multiplies.
Place stream_end(const ModelConfig& config);
Place output_input(const ModelConfig& config);
/// What a norm normalises.
Place norm_input(const ModelConfig& config, const Place& norm_value, NormSite site);

const LayerPlan& plan_of(const ModelConfig& config, const Place& in_block);
/// The tower that the decoder's second attention stands in.
constexpr Stack tower(Stack stack) { return stack == Stack::cross ? Stack::decoder : stack; }

}  // namespace liuli
