#include "model/attention_scores.h"

#include <algorithm>
#include <cmath>

namespace liuli {

VisibleKeys visible_keys(const Attention& a, int position, int n_keys) {
  const int end = a.causal ? std::min(position + 1, n_keys) : n_keys;
  return {a.sliding_window > 0 ? std::max(0, position - a.sliding_window + 1) : 0, end};
}

double query_dot(const Attention& a, const float* query, const float* k) {
  double dot = 0;
  for (int64_t d = 0; d < a.head_dim; d++) dot += double{query[d]} * double{k[d]};
  return dot;
}

float soft_capped(const Attention& a, float scaled) {
  return a.soft_cap > 0 ? a.soft_cap * std::tanh(scaled / a.soft_cap) : scaled;
}

void take_scale_off(const Attention& a, const float* scores, int64_t n, float* raw) {
  if (a.soft_cap > 0)
    for (int64_t key = 0; key < n; key++)
      raw[key] = a.soft_cap * std::atanh(scores[key] / a.soft_cap) / a.scale;
  else
    for (int64_t key = 0; key < n; key++) raw[key] = scores[key] / a.scale;
}

float score_of_offset(const Attention& a, const float* offset, int64_t head, const float* query) {
  const int64_t kv_head = head / (a.n_heads / a.n_kv_heads);
  return static_cast<float>(query_dot(a, query, offset + kv_head * a.head_dim) * double{a.scale});
}

}  // namespace liuli
