// The transformer block.
#pragma once
#include "model/step.h"
#include "model/weights.h"

namespace liuli {

/// One block over all rows of a step; x [n_tokens, d_model] is the residual stream, updated in place.
void block_forward(const Block& b, int layer, Rows x, Step& s);

/// z·W_o: what attention gives for normed rows h, before it is added. Appends keys and values to the caches.
Rows attention_forward(const Attention& a, int layer, Rows h, Step& s);

/// W_down(act(W_gate h) ⊙ W_up h), or W_down(act(W_up h)) without a gate.
Rows feed_forward(const FeedForward& f, int layer, Rows h, Step& s);

/// norm(x) as new rows, its stages shown to the listener; x itself when the family has no norm here.
Rows normalized(const Norm& norm, NormSite site, int layer, Rows x, Step& s);
/// x = norm(x); nothing when the family has no norm here.
void norm_in_place(const Norm& norm, NormSite site, int layer, Rows x, Step& s);

}  // namespace liuli
