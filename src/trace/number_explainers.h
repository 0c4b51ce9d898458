// What each kind of point is made of; explain_number.cpp says which explainer a point has.
#pragma once
#include "trace/calculation.h"

namespace liuli::numbers {

// number_stream.cpp: embeddings, sums along the residual stream, values that are another value, logits, pooler
void explain_embed(Calculation& c);
void explain_pos_embed(Calculation& c);
void explain_type_embed(Calculation& c);
void explain_embed_sum(Calculation& c);
void explain_resid_pre(Calculation& c);
void explain_attn_out(Calculation& c);
void explain_resid_mid(Calculation& c);
void explain_normalized(Calculation& c);
void explain_cross_attn_out(Calculation& c);
void explain_resid_cross(Calculation& c);
void explain_mlp_out(Calculation& c);
void explain_resid_post(Calculation& c);
void explain_logits(Calculation& c);
void explain_pooler(Calculation& c);

// number_norm.cpp
void explain_norm_stage(Calculation& c, NormSite site, NormStage stage);

// number_attention.cpp: projections, q/k norm, RoPE, W_o; for latent attention too
void explain_projection(Calculation& c);
void explain_normed_head(Calculation& c);
void explain_rope_angle(Calculation& c);  ///< the angle, its cosine and sine
void explain_rotated(Calculation& c);
void explain_latent(Calculation& c);
void explain_out_proj(Calculation& c);

// number_scores.cpp: from rot_q and rot_k to z
void explain_scores_raw(Calculation& c);
void explain_scores(Calculation& c);
void explain_attn_scores(Calculation& c);
void explain_pattern(Calculation& c);
void explain_z(Calculation& c);

// number_feed_forward.cpp: dense layers, the router, experts
void explain_hidden(Calculation& c);  ///< pre and pre_linear, of experts too
void explain_post(Calculation& c);
void explain_router_logits(Calculation& c);
void explain_router_scores(Calculation& c);
void explain_router_biased(Calculation& c);
void explain_group_scores(Calculation& c);
void explain_groups_kept(Calculation& c);
void explain_expert_ids(Calculation& c);
void explain_expert_weights(Calculation& c);
void explain_expert_out(Calculation& c);
void explain_routed_out(Calculation& c);
void explain_shared_out(Calculation& c);
void explain_mlp_out_raw(Calculation& c);

}  // namespace liuli::numbers
