#include "trace/attention_query.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/half.h"
#include "model/attention_capture.h"
#include "ops/linear.h"

namespace liuli::numbers {
namespace {

constexpr int64_t kBlock = 256;  // positions between two looks at the running maximum

double to_bf16(float x) { return static_cast<double>(bf16_to_f32(f32_to_bf16(x))); }

// W x in the run's class: what latent attention multiplies on without showing it.
std::vector<float> product(OpContext& ops, const Matrix& m, std::span<const float> x) {
  const Arena::Scope scratch(ops.scratch);
  Rows in = make_rows(ops.scratch, 1, m.d_in()), out = make_rows(ops.scratch, 1, m.d_out());
  std::copy(x.begin(), x.end(), in.row(0));
  linear_forward(ops, in, {LinearJob{&m, nullptr, out}});
  return {out.row(0), out.row(0) + m.d_out()};
}

// The pages that the query looks at: the cache's, or those of a latent's expanded keys and values.
const kernels::AttentionKernels& pages_of(Calculation& c) {
  OpContext& ops = c.run().ops;
  const bool expanded = latent_attention(c) != nullptr && ops.product_class != ProductClass::decode;
  return expanded ? expanded_attention(ops) : ops.attention;
}

}  // namespace

AttentionQuery::AttentionQuery(Calculation& c, int64_t head, int64_t token)
    : c_(c), kernels_(pages_of(c)), head_(head), token_(token) {
  const bool cross = c.place().stack == Stack::cross;
  q_place_ = c.beside(cross ? Point::attn_q : Point::attn_rot_q);
  k_place_ = c.beside(cross ? Point::attn_k : Point::attn_rot_k);
  v_place_ = c.beside(Point::attn_v);
  if (const Attention* a = plain_attention(c))
    load_plain(*a);
  else if (c.run().ops.product_class == ProductClass::decode)
    load_absorbed(*latent_attention(c));
  else
    load_expanded(*latent_attention(c));
  const std::vector<int64_t> shape =
      place_shape(c.config(), c.beside(Point::attn_pattern), c.run().rows.counts());
  visible_.end = causal_ ? std::min(token + 1, shape[2]) : shape[2];
  visible_.begin = window_ > 0 ? std::max<int64_t>(0, token - window_ + 1) : 0;
}

std::vector<float> AttentionQuery::slice(const Place& place, int64_t token, int64_t first, int64_t n) const {
  const auto row = c_.run().rows.row(place, token);
  return {row.begin() + first, row.begin() + first + n};
}

void AttentionQuery::load_plain(const Attention& a) {
  kv_head_ = head_ / (a.n_heads / a.n_kv_heads);
  value_dim_ = a.value_dim;
  scale_ = a.scale;
  soft_cap_ = a.soft_cap;
  causal_ = a.causal;
  window_ = a.sliding_window;
  q_ = slice(q_place_, token_, head_ * a.head_dim, a.head_dim);
  const ProductClass product_class = c_.run().ops.product_class;
  const bool rounded = product_class == ProductClass::prompt || product_class == ProductClass::decode;
  if (rounded && a.key_offset != nullptr) offset_ = a.key_offset + kv_head_ * a.head_dim;
}

void AttentionQuery::load_expanded(const LatentAttention& a) {
  kv_head_ = head_;
  value_dim_ = a.shape.v_head_dim;
  nope_ = a.shape.qk_nope_head_dim;
  rank_ = a.shape.kv_lora_rank;
  scale_ = a.scale;
  const int64_t width = nope_ + a.shape.qk_rope_head_dim;
  q_ = slice(q_place_, token_, head_ * width, width);
}

void AttentionQuery::load_absorbed(const LatentAttention& a) {
  absorbed_ = true;
  nope_ = a.shape.qk_nope_head_dim;
  rank_ = value_dim_ = a.shape.kv_lora_rank;
  scale_ = a.scale;
  v_place_ = c_.beside(Point::attn_kv_latent);
  const int64_t rope = a.shape.qk_rope_head_dim, width = nope_ + rope;
  q_ = product(c_.run().ops, a.k_up_t[static_cast<size_t>(head_)],
               slice(q_place_, token_, head_ * width, nope_));
  const std::vector<float> turned = slice(q_place_, token_, head_ * width + nope_, rope);
  q_.insert(q_.end(), turned.begin(), turned.end());
}

std::vector<float> AttentionQuery::values(int64_t at) const {
  return slice(v_place_, at, absorbed_ ? 0 : kv_head_ * value_dim_, value_dim_);
}

std::vector<float> AttentionQuery::key(int64_t at) const {
  if (absorbed_) {
    std::vector<float> k = values(at);
    const std::vector<float> turned = slice(k_place_, at, nope_, width() - rank_);
    k.insert(k.end(), turned.begin(), turned.end());
    return k;
  }
  std::vector<float> k = slice(k_place_, at, kv_head_ * width(), width());
  if (rank_ > 0) std::ranges::copy(rotated_as_stored(at), k.begin() + nope_);
  for (int64_t d = 0; offset_ != nullptr && d < width(); d++) k[static_cast<size_t>(d)] -= offset_[d];
  return k;
}

// An expanded key is formed of c as the cache gives it back, and ends with the rotated part that was stored behind c.
std::vector<float> AttentionQuery::rotated_as_stored(int64_t at) const {
  std::vector<float> k = slice(c_.beside(Point::attn_kv_latent), at, 0, rank_);
  const std::vector<float> turned = slice(k_place_, at, nope_, width() - nope_);
  k.insert(k.end(), turned.begin(), turned.end());
  const std::vector<float> stored = as_stored_shared(c_.run().ops.attention, k, rank_).k;
  return {stored.begin() + rank_, stored.end()};
}

StoredPair AttentionQuery::stored_pair(int64_t at) const {
  return absorbed_ ? as_stored_shared(kernels_, key(at), value_dim_)
                   : as_stored(kernels_, key(at), values(at));
}

bool AttentionQuery::multiplies_codes() const {
  return kernels_.attend_generated != nullptr && c_.run().ops.product_class == ProductClass::decode;
}

bool AttentionQuery::rounds_codes() const {
  return kernels_.attend_generated != nullptr && !multiplies_codes();
}

double AttentionQuery::used_query(int64_t d, bool rounded) const {
  const float q = q_[static_cast<size_t>(d)];
  if (!rounded) return static_cast<double>(q) * static_cast<double>(scale_);
  if (!multiplies_codes()) return to_bf16(q * scale_);
  float largest = 0;  // as CodeDots::load_query makes integers of it
  for (const float other : q_) largest = std::max(largest, std::fabs(other * scale_));
  if (largest == 0) return 0;
  constexpr float kLargestInt = 32512.0f;
  const float whole = std::nearbyint(q * scale_ * (kLargestInt / largest));
  return static_cast<double>(whole) * static_cast<double>(largest / kLargestInt);
}

std::vector<double> AttentionQuery::used_key(int64_t at) const {
  const std::vector<float> stored = stored_pair(at).k;
  std::vector<double> used(stored.begin(), stored.end());
  if (rounds_codes() && sees(at))
    for (double& k : used) k = to_bf16(static_cast<float>(k));
  return used;
}

NumberOperand AttentionQuery::query_operand(int64_t d) const {
  if (!absorbed_) return c_.operand(q_place_, {token_, head_, d});
  if (d >= rank_) return c_.operand(q_place_, {token_, head_, nope_ + d - rank_});
  return Calculation::named(fmt::format("(K_upᵀ · {})[{},{},{}]", q_place_.name(), token_, head_, d),
                            static_cast<double>(q_[static_cast<size_t>(d)]));
}

NumberOperand AttentionQuery::key_operand(int64_t at, int64_t d) const {
  if (!absorbed_) return c_.operand(k_place_, {at, kv_head_, d});
  if (d >= rank_) return c_.operand(k_place_, {at, 0, nope_ + d - rank_});
  return c_.operand(v_place_, {at, d});
}

NumberOperand AttentionQuery::value_operand(int64_t at, int64_t d) const {
  NumberOperand v = c_.operand(v_place_, {at, kv_head_, d});
  const float stored = stored_pair(at).v[static_cast<size_t>(d)];
  v.used = rounds_codes() ? to_bf16(stored) : static_cast<double>(stored);
  return v;
}

double AttentionQuery::offset_score() const {
  double dot = 0;
  for (int64_t d = 0; offset_ != nullptr && d < width(); d++)
    dot += static_cast<double>(q_[static_cast<size_t>(d)]) * static_cast<double>(offset_[d]);
  return dot * static_cast<double>(scale_);
}

double AttentionQuery::offset_magnitude() const {
  double sum = 0;
  for (int64_t d = 0; offset_ != nullptr && d < width(); d++)
    sum += std::fabs(static_cast<double>(q_[static_cast<size_t>(d)]) * static_cast<double>(offset_[d]));
  return sum * static_cast<double>(scale_);
}

AttentionQuery::Pages AttentionQuery::fill_pages() const {
  const kernels::PageShape shape = page_shape();
  Pages pages;
  for (int64_t at = 0; at < visible_.end; at++) {
    const auto slot = static_cast<int>(at % kernels::kPagePositions);
    if (slot == 0) {
      pages.memory.emplace_back(kernels_.page_bytes(shape));
      pages.list.push_back(pages.memory.back().data());
    }
    kernels_.append(pages.memory.back().data(), slot, key(at).data(), values(at).data(), shape);
  }
  return pages;
}

AttentionQuery::KernelResult AttentionQuery::run_kernel() const {
  const Pages pages = fill_pages();
  KernelResult result;
  result.scores.resize(static_cast<size_t>(visible_.end));
  result.z.resize(static_cast<size_t>(value_dim_));
  kernels::AttentionArgs args{};
  args.q = q_.data();
  args.z = result.z.data();
  args.q_row = args.q_head = width();
  args.z_row = args.z_head = value_dim_;
  args.pages = pages.list.data();
  args.first_position = static_cast<int>(token_);
  args.n_rows = args.group = 1;
  args.head_dim = static_cast<int>(width());
  args.value_dim = static_cast<int>(value_dim_);
  args.shared_values = absorbed_;
  args.n_keys = static_cast<int>(visible_.end);
  args.causal = causal_;
  args.window = window_;
  args.scale = scale_;
  args.soft_cap = soft_cap_;
  float sum = 0;
  args.scores = result.scores.data();
  args.row_max = &result.max;
  args.row_sum = &sum;
  AlignedBuffer scratch(kernels_.scratch_bytes(args.page_shape(), 1) + 64);
  attend_in(c_.run().ops.product_class, kernels_)(args, scratch.data());
  return result;
}

AttentionQuery::Weights AttentionQuery::weights() const {
  const KernelResult kernel = run_kernel();
  Weights weights;
  double total = 0;
  float running = -1e30f;
  for (int64_t at = visible_.begin; at < visible_.end;) {
    const int64_t end = std::min(visible_.end, (at / kBlock + 1) * kBlock);
    for (int64_t i = at; i < end; i++) running = std::max(running, kernel.scores[static_cast<size_t>(i)]);
    std::vector<float> p(static_cast<size_t>(end - at));
    kernels_.pattern(kernel.scores.data() + at, running, 1.0f, static_cast<int>(end - at), p.data());
    const double rescale = std::exp(static_cast<double>(running) - static_cast<double>(kernel.max));
    for (const float weight : p) {
      weights.pattern.push_back(static_cast<double>(weight) * rescale);
      weights.used.push_back(
          (kernels_.bf16_weights && !multiplies_codes() ? to_bf16(weight) : static_cast<double>(weight)) *
          rescale);
      total += weights.pattern.back();
    }
    at = end;
  }
  for (double& w : weights.pattern) w /= total;
  for (double& w : weights.used) w /= total;
  return weights;
}

}  // namespace liuli::numbers
