// Attention over plain f32 pages with the products of gemm.cpp: what the f32 class and training use. The page form is
// that of scalar/attention_f32.cpp.
//
// Units (a position and a head) share the walk over blocks of 256 positions, aligned to absolute position:
//   s = scale · q·k (soft-capped), masked keys −1e30;  m' = max(m, max s);  p = exp(s − m'), 0 where masked;
//   l = l · exp(m − m') + Σ p;  z = z · exp(m − m') + Σ p · v;  at the end z / l.
// Products and sums of a unit have an order of their own, whoever shares its batch; a masked key adds an exact 0.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_f32.cpp"
#include "hwy/foreach_target.h"
// (foreach_target.h comes first: it includes this file again for the other targets)
#include <algorithm>
#include <cmath>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/isa_tables.h"

HWY_BEFORE_NAMESPACE();
namespace liuli::kernels::HWY_NAMESPACE {

const GemmKernel* gemm_table() noexcept;

namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

constexpr int kBlock = 256, kBatch = 64;
constexpr float kNoMaximum = -1e30f;

/// Units that walk together: n rows of q (and of z) a fixed stride apart.
struct Batch {
  const float* q;
  float* z;
  ptrdiff_t q_stride, z_stride;
  int units, first_row, first_head;
  bool along_heads;  ///< unit u is head first_head + u of one row, else row first_row + u of one head

  int row(int u) const { return along_heads ? first_row : first_row + u; }
  int head(int u) const { return along_heads ? first_head + u : first_head; }
};

struct Workspace {
  float *scores, *z, *max, *sum, *gemm;  ///< [kBatch][kBlock], [kBatch][value_dim], [kBatch] …

  Workspace(void* memory, int value_dim) {
    scores = static_cast<float*>(memory);
    z = scores + kBatch * kBlock;
    max = z + kBatch * ((value_dim + 15) / 16 * 16);
    sum = max + kBatch;
    gemm = sum + kBatch;
  }
};

size_t scratch_bytes(PageShape shape, int) noexcept {
  const int64_t wide = std::max<int64_t>(kPagePositions, shape.value_dim),
                deep = std::max<int64_t>(kPagePositions, shape.head_dim);
  const size_t own = kBatch * (kBlock + (static_cast<size_t>(shape.value_dim) + 15) / 16 * 16 + 2);
  return sizeof(float) * (own + gemm_table()->scratch_floats(kBatch, wide, deep)) + 64;
}

struct Visible {
  int begin, end;
};
Visible visible(const AttentionArgs& args, int row) {
  const int position = args.first_position + row;
  int end = args.causal || args.window > 0 ? position + 1 : args.n_keys;
  end = std::min(end, args.n_keys);
  return {args.window > 0 ? std::max(0, position - args.window + 1) : 0, end};
}

const float* keys_of(const AttentionArgs& args, int page) {
  return reinterpret_cast<const float*>(args.pages[page]);
}
/// Values and the distance of two: shared ones are the keys' first dims.
struct PageValues {
  const float* at;
  int64_t row;
};
PageValues values_of(const AttentionArgs& args, int page) {
  const float* keys = keys_of(args, page);
  if (args.shared_values) return {keys, args.head_dim};
  return {keys + kPagePositions * args.head_dim, args.value_dim};
}

/// p = exp(s − max) over a block; returns Σ p, lane by lane in a fixed order.
float exp_below(float* s, float max) {
  const D d;
  const auto top = hn::Set(d, max);
  auto sum = hn::Zero(d);
  for (int i = 0; i < kBlock; i += static_cast<int>(hn::Lanes(d))) {
    const auto p = hn::Exp(d, hn::Sub(hn::LoadU(d, s + i), top));
    hn::StoreU(p, d, s + i);
    sum = hn::Add(sum, p);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

/// The unit's scores of one block, finished and masked, its running maximum and sum moved on.
void finish_unit(const AttentionArgs& args, const Batch& b, int u, int block, const Workspace& w) {
  float* s = w.scores + u * kBlock;
  const Visible seen = visible(args, b.row(u));
  float* out = args.scores == nullptr
                   ? nullptr
                   : args.scores + (ptrdiff_t{b.head(u)} * args.n_rows + b.row(u)) * args.n_keys;
  float top = kNoMaximum;
  for (int i = 0; i < kBlock; i++) {
    const int at = block + i;
    if (at < seen.begin || at >= seen.end) {
      s[i] = -INFINITY;
      continue;
    }
    s[i] *= args.scale;
    if (args.soft_cap != 0.0f) s[i] = args.soft_cap * std::tanh(s[i] / args.soft_cap);
    if (out != nullptr) out[at] = s[i];
    top = std::max(top, s[i]);
  }
  if (top > w.max[u]) {
    const float factor = std::exp(w.max[u] - top);
    w.sum[u] *= factor;
    float* z = w.z + u * args.value_dim;
    for (int i = 0; i < args.value_dim; i++) z[i] *= factor;
    w.max[u] = top;
  }
  w.sum[u] += exp_below(s, w.max[u]);
}

void attend_block(const AttentionArgs& args, const Batch& b, int block, Visible all, const Workspace& w) {
  const GemmKernel& gemm = *gemm_table();
  const int first_page = std::max(block, all.begin) / kPagePositions;
  const int last_page = (std::min(block + kBlock, all.end) - 1) / kPagePositions;
  for (int page = first_page; page <= last_page; page++)
    gemm.multiply({b.units, kPagePositions, args.head_dim, b.q, b.q_stride, 1, keys_of(args, page), 1,
                   args.head_dim, w.scores + page * kPagePositions - block, kBlock},
                  w.gemm);
  for (int u = 0; u < b.units; u++) finish_unit(args, b, u, block, w);
  for (int page = first_page; page <= last_page; page++) {
    const PageValues values = values_of(args, page);
    gemm.multiply({b.units, args.value_dim, kPagePositions, w.scores + page * kPagePositions - block, kBlock,
                   1, values.at, values.row, 1, w.z, args.value_dim, true},
                  w.gemm);
  }
}

void attend_batch(const AttentionArgs& args, const Batch& b, void* memory) {
  const Workspace w(memory, args.value_dim);
  std::fill_n(w.z, b.units * args.value_dim, 0.0f);
  std::fill_n(w.max, b.units, kNoMaximum);
  std::fill_n(w.sum, b.units, 0.0f);
  const Visible all{visible(args, b.row(0)).begin, visible(args, b.row(b.units - 1)).end};
  for (int block = all.begin / kBlock * kBlock; block < all.end; block += kBlock)
    attend_block(args, b, block, all, w);
  for (int u = 0; u < b.units; u++) {
    float* z = b.z + u * b.z_stride;
    for (int i = 0; i < args.value_dim; i++)
      z[i] = w.sum[u] > 0 ? w.z[u * args.value_dim + i] / w.sum[u] : 0.0f;
    const ptrdiff_t at = ptrdiff_t{b.head(u)} * args.n_rows + b.row(u);
    if (args.row_max != nullptr) args.row_max[at] = w.max[u];
    if (args.row_sum != nullptr) args.row_sum[at] = w.sum[u];
  }
}

void attend(const AttentionArgs& args, void* scratch) noexcept {
  auto* memory = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(scratch) + 63) / 64 * 64);
  if (args.n_rows == 1) {
    for (int head = 0; head < args.group; head += kBatch)
      attend_batch(args,
                   {args.q + head * args.q_head, args.z + head * args.z_head, args.q_head, args.z_head,
                    std::min(kBatch, args.group - head), 0, head, true},
                   memory);
    return;
  }
  for (int head = 0; head < args.group; head++)
    for (int row = 0; row < args.n_rows; row += kBatch)
      attend_batch(
          args,
          {args.q + head * args.q_head + row * args.q_row, args.z + head * args.z_head + row * args.z_row,
           args.q_row, args.z_row, std::min(kBatch, args.n_rows - row), row, head, false},
          memory);
}

void pattern(const float* scores, float max, float sum, int n, float* out) noexcept {
  const D d;
  const auto top = hn::Set(d, max), total = hn::Set(d, sum);
  for (int i = 0; i < n; i += static_cast<int>(hn::Lanes(d))) {
    HWY_ALIGN float lanes[HWY_LANES(float)] = {};
    const int present = std::min(n - i, static_cast<int>(hn::Lanes(d)));
    std::copy_n(scores + i, present, lanes);
    hn::Store(hn::Div(hn::Exp(d, hn::Sub(hn::Load(d, lanes), top)), total), d, lanes);
    std::copy_n(lanes, present, out + i);
  }
}

}  // namespace

const AttentionKernels* attention_f32_table() noexcept {
  static const AttentionKernels table = [] {
    AttentionKernels kernels = *attention_f32_scalar();  // the pages are the same
    kernels.name = "f32 pages, f32 products";
    kernels.scratch_bytes = scratch_bytes;
    kernels.attend = attend;
    kernels.pattern = pattern;
    return kernels;
  }();
  return &table;
}

}  // namespace liuli::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
