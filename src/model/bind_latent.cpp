#include "model/bind_latent.h"

#include <fmt/format.h>

#include "liuli/error.h"

namespace liuli {
namespace {

constexpr float kLatentEps = 1e-6f;  // whatever the configuration says for the other norms

// Each half of W_kvb in the forms that the two kinds of attention multiply with. Files keep it in one piece, [k_up;
// v_up] head by head, or as k_upᵀ and v_up; what is missing of k_up and k_upᵀ is stored once more.
void bind_heads(const Binder& binder, Binder::Where at, LatentAttention& a) {
  const int64_t nope = a.shape.qk_nope_head_dim, v = a.shape.v_head_dim, rank = a.shape.kv_lora_rank;
  const bool halves = binder.has(Role::attn_k_b, at) && binder.has(Role::attn_v_b, at);
  if (!halves && !binder.has(Role::attn_kv_b, at))
    throw Error(ErrorCode::corrupt_file,
                fmt::format("{}: layer {} has neither the tensor attn_kv_b nor both attn_k_b and attn_v_b",
                            binder.path(), at.layer));
  for (int64_t head = 0; head < a.n_heads; head++) {
    if (halves) {
      a.k_up.push_back(binder.transposed_rows(Role::attn_k_b, at, head * rank, rank));
      a.k_up_t.push_back(binder.matrix_rows(Role::attn_k_b, at, head * rank, rank));
      a.v_up.push_back(binder.matrix_rows(Role::attn_v_b, at, head * v, v));
    } else {
      const int64_t first = head * (nope + v);
      a.k_up.push_back(binder.matrix_rows(Role::attn_kv_b, at, first, nope));
      a.k_up_t.push_back(binder.transposed_rows(Role::attn_kv_b, at, first, nope));
      a.v_up.push_back(binder.matrix_rows(Role::attn_kv_b, at, first + nope, v));
    }
  }
}

}  // namespace

LatentAttention bind_latent_attention(const Binder& binder, const ModelConfig& c, const LayerPlan& plan,
                                      Binder::Where at) {
  LatentAttention a;
  a.shape = c.latent;
  a.n_heads = c.n_heads;
  a.rope = plan.rope;
  a.scale = static_cast<float>(c.attention_scale);
  if (c.latent.q_lora_rank > 0) {
    a.q_a.weight = binder.matrix(Role::attn_q_a, at);
    a.q_norm = binder.norm(NormKind::rms, Role::attn_q_a_norm, at);
    a.q_b.weight = binder.matrix(Role::attn_q_b, at);
  } else {
    a.q_b.weight = binder.matrix(Role::attn_q, at);
  }
  a.kv_a.weight = binder.matrix(Role::attn_kv_a, at);
  a.kv_norm = binder.norm(NormKind::rms, Role::attn_kv_a_norm, at);
  a.q_norm.eps = a.kv_norm.eps = kLatentEps;
  bind_heads(binder, at, a);
  a.o.weight = binder.matrix(Role::attn_o, at);
  return a;
}

}  // namespace liuli
