// Attention over plain f32 pages ([64][head_dim] keys, then [64][value_dim] values unless they are shared): once in f32 for the f32
// class, once in double as the second opinion. Both walk blocks of 256 positions with a running maximum, as
// the bf16 kernels do; dot products run in 16 lanes folded 8, 4, 2, 1 apart, so that the compiler can use
// vectors without changing the order.
#include <algorithm>
#include <cmath>

#include "kernels/isa_tables.h"

namespace liuli::kernels {
namespace {

constexpr int kBlock = 256;

size_t page_bytes(PageShape shape) noexcept {
  const int width = shape.head_dim + (shape.shared_values ? 0 : shape.value_dim);
  return sizeof(float) * kPagePositions * static_cast<size_t>(width);
}

// Of a position's value, in floats from the page's begin.
ptrdiff_t value_at(PageShape shape, int slot) {
  if (shape.shared_values) return ptrdiff_t{slot} * shape.head_dim;
  return ptrdiff_t{kPagePositions} * shape.head_dim + ptrdiff_t{slot} * shape.value_dim;
}

void append(uint8_t* page, int slot, const float* k, const float* v, PageShape shape) noexcept {
  auto* floats = reinterpret_cast<float*>(page);
  std::copy_n(k, shape.head_dim, floats + slot * shape.head_dim);
  if (!shape.shared_values) std::copy_n(v, shape.value_dim, floats + value_at(shape, slot));
}

void read(const uint8_t* page, int slot, float* k, float* v, PageShape shape) noexcept {
  const auto* floats = reinterpret_cast<const float*>(page);
  std::copy_n(floats + slot * shape.head_dim, shape.head_dim, k);
  std::copy_n(floats + value_at(shape, slot), shape.value_dim, v);
}

template <class Real>
struct PlainAttention {
  struct Unit {  // one position and head
    int row, head;
    int begin, end;  // visible keys
    Real m = -1e30, l = 0;
    Real* z;
    Real* s;
  };

  static size_t scratch_bytes(PageShape shape, int) noexcept {
    return sizeof(Real) * (shape.value_dim + kBlock);
  }

  static Unit make_unit(const AttentionArgs& args, int row, int head, void* scratch) {
    const int position = args.first_position + row;
    auto* z = static_cast<Real*>(scratch);
    Unit u{row,   head, 0, args.causal || args.window > 0 ? position + 1 : args.n_keys,
           -1e30, 0,    z, z + args.value_dim};
    if (args.window > 0) u.begin = std::max(0, position - args.window + 1);
    if (!args.causal) u.end = std::min(u.end, args.n_keys);
    std::fill_n(u.z, args.value_dim, Real(0));
    return u;
  }

  static Real dot(const float* q, const float* k, int n) {
    Real lanes[16] = {};
    int i = 0;
    for (; i + 16 <= n; i += 16) {
      for (int j = 0; j < 16; j++) lanes[j] += Real(q[i + j]) * Real(k[i + j]);
    }
    for (int j = 0; i + j < n; j++) lanes[j] += Real(q[i + j]) * Real(k[i + j]);
    for (int half = 8; half > 0; half /= 2) {
      for (int j = 0; j < half; j++) lanes[j] += lanes[j + half];
    }
    return lanes[0];
  }

  static const float* key(const AttentionArgs& args, int at) {
    const auto* page = reinterpret_cast<const float*>(args.pages[at / kPagePositions]);
    return page + at % kPagePositions * args.head_dim;
  }
  static const float* value(const AttentionArgs& args, int at) {
    const auto* page = reinterpret_cast<const float*>(args.pages[at / kPagePositions]);
    return page + value_at(args.page_shape(), at % kPagePositions);
  }

  // Scores of keys [begin, end) into s; returns their maximum.
  static Real score_block(const AttentionArgs& args, const Unit& u, int begin, int end) {
    const float* q = args.q + u.row * args.q_row + u.head * args.q_head;
    float* out =
        args.scores ? args.scores + (ptrdiff_t(u.head) * args.n_rows + u.row) * args.n_keys : nullptr;
    Real top = -1e30;
    for (int at = begin; at < end; at++) {
      Real s = dot(q, key(args, at), args.head_dim) * Real(args.scale);
      if (args.soft_cap != 0.0f) s = args.soft_cap * std::tanh(s / args.soft_cap);
      if (out && at < args.n_keys) out[at] = static_cast<float>(s);
      u.s[at - begin] = s;
      top = std::max(top, s);
    }
    return top;
  }

  static void attend_block(const AttentionArgs& args, Unit& u, int begin, int end) {
    const Real top = score_block(args, u, begin, end);
    if (top > u.m) {
      const Real factor = std::exp(u.m - top);
      u.l *= factor;
      for (int d = 0; d < args.value_dim; d++) u.z[d] *= factor;
      u.m = top;
    }
    for (int at = begin; at < end; at++) {
      const Real p = std::exp(u.s[at - begin] - u.m);
      const float* v = value(args, at);
      u.l += p;
      for (int d = 0; d < args.value_dim; d++) u.z[d] += p * Real(v[d]);
    }
  }

  static void attend_unit(const AttentionArgs& args, Unit u) {
    for (int at = u.begin; at < u.end;) {
      const int next = std::min(u.end, (at / kBlock + 1) * kBlock);
      attend_block(args, u, at, next);
      at = next;
    }
    float* z = args.z + u.row * args.z_row + u.head * args.z_head;
    for (int d = 0; d < args.value_dim; d++) z[d] = u.l > 0 ? static_cast<float>(u.z[d] / u.l) : 0.0f;
    const ptrdiff_t at = ptrdiff_t(u.head) * args.n_rows + u.row;
    if (args.row_max) args.row_max[at] = static_cast<float>(u.m);
    if (args.row_sum) args.row_sum[at] = static_cast<float>(u.l);
  }

  static void attend(const AttentionArgs& args, void* scratch) noexcept {
    for (int row = 0; row < args.n_rows; row++) {
      for (int head = 0; head < args.group; head++) attend_unit(args, make_unit(args, row, head, scratch));
    }
  }

  static void pattern(const float* scores, float max, float sum, int n, float* out) noexcept {
    for (int i = 0; i < n; i++)
      out[i] = static_cast<float>(std::exp(Real(scores[i]) - Real(max)) / Real(sum));
  }

  static constexpr AttentionKernels table(const char* name) {
    return {name, &page_bytes, &scratch_bytes, &append, &read, &attend, &pattern};
  }
};

}  // namespace

const AttentionKernels* attention_f32_scalar() noexcept {
  static constexpr AttentionKernels kernels = PlainAttention<float>::table("f32 pages, f32");
  return &kernels;
}

const AttentionKernels& exact_attention() {
  static constexpr AttentionKernels kernels = PlainAttention<double>::table("f32 pages, double");
  return kernels;
}

}  // namespace liuli::kernels
