// One feed-forward taken back: the block's own, or an expert of a mixture.
#pragma once
#include "model/backward.h"

namespace liuli {

/// What the forward pass left of one feed-forward: its input, and the values inside (pre_linear only with a gate).
struct FeedForwardValues {
  Rows h, pre, pre_linear, post;
};

/// dh = (or, accumulating, +=) the gradient of the input.
void feed_forward_backward(const FeedForward& f, const FeedForwardValues& values, Rows d_out, Rows dh,
                           bool accumulate, Backward& s);

/// Router, experts and shared expert taken back; the choice of experts has no gradient. dh is overwritten.
void moe_backward(const MixtureOfExperts& m, int layer, Rows h, Rows d_out, Rows dh, Backward& s);

}  // namespace liuli
