// What the two ways of showing scores share: which keys a row sees, and the formulas between the stages.
#pragma once
#include <vector>

#include "model/step.h"
#include "model/weights.h"

namespace liuli {

/// Keys [begin, end) that a query sees.
struct VisibleKeys {
  int begin, end;
};
VisibleKeys visible_keys(const Attention& a, int position, int n_keys);

/// f(position, k, v): keys and values of one head as they are stored.
template <class F>
void for_each_stored(const Attention& a, int layer, const SequenceRows& sequence, int64_t kv_head, F&& f) {
  std::vector<float> k(static_cast<size_t>(a.head_dim)), v(static_cast<size_t>(a.value_dim));
  for (int key = 0; key < sequence.n_keys; key++) {
    sequence.cache->read(layer, kv_head, key, k.data(), v.data());
    f(key, k.data(), v.data());
  }
}

/// Σ q_d · k_d in double.
double query_dot(const Attention& a, const float* query, const float* k);
/// cap · tanh(s / cap) where there is a cap.
float soft_capped(const Attention& a, float scaled);
/// score = cap · tanh(scale · raw / cap), undone.
void take_scale_off(const Attention& a, const float* scores, int64_t n, float* raw);
/// Scores of keys without their offset lack scale · q·offset, which softmax does not need but a reader expects.
float score_of_offset(const Attention& a, const float* offset, int64_t head, const float* query);

/// attend_and_show_scores() for a listener that changes no score: forms all stages of a few rows at a time where the
/// listener wants them.
void attend_and_record_scores(const Attention& a, int layer, Rows q, Rows z, Step& s);

}  // namespace liuli
