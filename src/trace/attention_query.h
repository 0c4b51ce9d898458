// One query against its keys as the attention kernel of a run saw them.
#pragma once
#include "trace/number_attention.h"

namespace liuli::numbers {

/// One head's query at one token. In latent attention's absorbed form the vectors are those that are multiplied there:
/// q = [k_upᵀ q_nope | q_rope], k = [c | k_rope], v = c.
class AttentionQuery {
 public:
  /// The query of head `head` at `token`. Asks the run for everything it needs.
  AttentionQuery(Calculation& c, int64_t head, int64_t token);

  struct Range {
    int64_t begin, end;
  };
  Range visible() const { return visible_; }
  bool sees(int64_t key) const { return key >= visible_.begin && key < visible_.end; }

  // ---- one score ----
  int64_t width() const { return static_cast<int64_t>(q_.size()); }
  NumberOperand query_operand(int64_t d) const;             ///< used: scale · q as the product rounds it
  NumberOperand key_operand(int64_t key, int64_t d) const;  ///< used: as stored
  /// scale · q · key_offset: what every key of the cache lacks; 0 where nothing is taken off.
  double offset_score() const;
  double offset_magnitude() const;
  double scale() const { return scale_; }
  double soft_cap() const { return soft_cap_; }
  bool rounds_query(int64_t key) const { return sees(key) && (kernels_.bf16_query || multiplies_codes()); }
  double used_query(int64_t d, bool rounded) const;
  std::vector<double> used_key(int64_t key) const;

  // ---- all scores together ----
  struct KernelResult {
    std::vector<float> scores;  ///< up to the last visible key
    std::vector<float> z;       ///< Σ pattern · v
    float max = 0;
  };
  /// The kernel on this one query: its rows do not depend on one another, so these are the run's own bits.
  KernelResult run_kernel() const;
  /// Per visible key exp(score − max) / Σ, and the same with the exponential rounded as it is before it meets v.
  struct Weights {
    std::vector<double> pattern, used;
  };
  Weights weights() const;
  NumberOperand value_operand(int64_t key, int64_t d) const;  ///< used: as stored

  bool is_absorbed() const { return absorbed_; }

 private:
  /// Over a cache of codes: generated tokens multiply the codes, prompts their bf16 roundings.
  bool multiplies_codes() const;
  bool rounds_codes() const;
  struct Pages {
    std::vector<AlignedBuffer> memory;
    std::vector<const uint8_t*> list;
  };
  Pages fill_pages() const;

  void load_plain(const Attention& a);
  void load_expanded(const LatentAttention& a);
  void load_absorbed(const LatentAttention& a);
  std::vector<float> slice(const Place& place, int64_t token, int64_t first, int64_t n) const;

  Calculation& c_;
  const kernels::AttentionKernels& kernels_;
  int64_t head_, token_;
  Range visible_{};
  bool absorbed_ = false, causal_ = true;
  int window_ = 0;
  float scale_ = 0, soft_cap_ = 0;
  std::vector<float> q_;
  const float* offset_ = nullptr;
  Place q_place_{}, k_place_{}, v_place_{};
  int64_t kv_head_ = 0, value_dim_ = 0, nope_ = 0, rank_ = 0;

  std::vector<float> key(int64_t at) const;  // as formed, the offset taken off
  std::vector<float> rotated_as_stored(int64_t at) const;
  std::vector<float> values(int64_t at) const;
  StoredPair stored_pair(int64_t at) const;
  kernels::PageShape page_shape() const {
    return {static_cast<int>(width()), static_cast<int>(value_dim_), absorbed_};
  }
};

}  // namespace liuli::numbers
