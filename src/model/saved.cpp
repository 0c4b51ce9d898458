#include "model/saved.h"

#include <algorithm>

#include "core/check.h"

namespace liuli {

bool Saved::wants(const Place& place) const {
  switch (place.point) {
    case Point::embed_sum:
    case Point::resid_pre:
    case Point::attn_q:
    case Point::attn_k:
    case Point::attn_v:
    case Point::attn_rot_q:
    case Point::attn_rot_k:
    case Point::attn_z:
    case Point::attn_out_proj:
    case Point::resid_mid:
    case Point::normalized_resid_mid:
    case Point::resid_cross:
    case Point::normalized_resid_cross:
    case Point::mlp_pre:
    case Point::mlp_pre_linear:
    case Point::mlp_post:
    case Point::mlp_router_scores:
    case Point::mlp_expert_ids:
    case Point::mlp_expert_weights:
    case Point::mlp_expert_pre:
    case Point::mlp_expert_pre_linear:
    case Point::mlp_expert_post:
    case Point::mlp_expert_out:
    case Point::mlp_shared_pre:
    case Point::mlp_shared_pre_linear:
    case Point::mlp_shared_post:
    case Point::mlp_shared_out:
    case Point::mlp_out_raw:
    case Point::resid_post:
    case Point::normalized_resid_post:
      return true;
    default:
      return false;
  }
}

void Saved::see(const ProbedValue& value) {
  Rows copy = make_rows(arena_, value.rows.n, value.rows.width);
  const auto copy_rows = [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i++) std::copy_n(value.rows.row(i), copy.width, copy.row(i));
  };
  if (pool_ != nullptr)
    pool_->parallel_for(copy.n, copy_rows);
  else
    copy_rows(0, copy.n, 0);
  int* tokens = nullptr;
  if (value.row_tokens != nullptr) {
    tokens = arena_.array<int>(copy.n);
    std::copy_n(value.row_tokens, copy.n, tokens);
  }
  values_[key(value.place)] = {copy, tokens};
}

uint64_t Saved::key(const Place& place) {
  return (static_cast<uint64_t>(place.expert + 1) << 40) | (static_cast<uint64_t>(place.layer + 1) << 16) |
         (static_cast<uint64_t>(place.stack) << 8) | static_cast<uint64_t>(place.point);
}

bool Saved::has(Point point, int layer, Stack stack, int expert) const {
  return values_.count(key({point, layer, stack, expert})) != 0;
}

Rows Saved::at(Point point, int layer, Stack stack, int expert) const {
  const auto it = values_.find(key({point, layer, stack, expert}));
  LIULI_CHECK(it != values_.end());
  return it->second.rows;
}

std::span<const int> Saved::expert_tokens(int layer, int expert, Stack stack) const {
  const auto it = values_.find(key({Point::mlp_expert_post, layer, stack, expert}));
  if (it == values_.end()) return {};
  LIULI_CHECK(it->second.tokens != nullptr);
  return {it->second.tokens, static_cast<size_t>(it->second.rows.n)};
}

void Saved::clear() {
  values_.clear();
  arena_.release({});
}

}  // namespace liuli
