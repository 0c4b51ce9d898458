// The row kernels once, over Highway vectors: compiled for each target that a level uses (see
// CMakeLists.txt).
//
// Sums are kept in four f64 accumulators, added pairwise at the end: a norm is under 1 % of a step, and 4,096
// squares summed in f32 would already cost 1e-6. Element-wise work is f32. Loads are unaligned, tails go
// through a padded vector, so that nothing depends on alignment and nothing beyond n is read.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rowwise.cpp"
#include "hwy/foreach_target.h"
// (foreach_target.h comes first: it includes this file again for the other targets)
#include <cmath>
#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace liuli::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using Wide = hn::ScalableTag<double>;  // half as many lanes: what sums are kept in
using WideV = hn::Vec<Wide>;
using Narrow = hn::Rebind<float, Wide>;
using NarrowV = hn::Vec<Narrow>;

V set(float value) { return hn::Set(D(), value); }

// ---- loops ----------------------------------------------------------------------------------------------

/// The first `count` lanes from memory, the others `fill`.
template <class Tag>
hn::Vec<Tag> load_tail(Tag d, const float* x, int64_t count, float fill) {
  HWY_ALIGN float lanes[HWY_LANES(float)];
  for (float& lane : lanes) lane = fill;
  for (int64_t i = 0; i < count; i++) lanes[i] = x[i];
  return hn::Load(d, lanes);
}

void store_tail(V value, float* y, int64_t count) {
  HWY_ALIGN float lanes[HWY_LANES(float)];
  hn::Store(value, D(), lanes);
  for (int64_t i = 0; i < count; i++) y[i] = lanes[i];
}

/// y = f(x) vector by vector; y may be x.
template <class F>
void map(const float* x, int64_t n, float* y, F f) {
  constexpr int64_t width = HWY_LANES(float);
  int64_t i = 0;
  for (; i + width <= n; i += width) hn::StoreU(f(hn::LoadU(D(), x + i)), D(), y + i);
  if (i < n) store_tail(f(load_tail(D(), x + i, n - i, 0.0f)), y + i, n - i);
}

/// y = f(x, a) vector by vector; y may be x.
template <class F>
void map(const float* x, const float* a, int64_t n, float* y, F f) {
  constexpr int64_t width = HWY_LANES(float);
  int64_t i = 0;
  for (; i + width <= n; i += width) hn::StoreU(f(hn::LoadU(D(), x + i), hn::LoadU(D(), a + i)), D(), y + i);
  if (i == n) return;
  store_tail(f(load_tail(D(), x + i, n - i, 0.0f), load_tail(D(), a + i, n - i, 0.0f)), y + i, n - i);
}

/// Σ f(x) in f64; f takes a narrow f32 vector to a wide one and must give 0 for `fill`, which pads the last
/// vector.
template <class F>
double sum(const float* x, int64_t n, float fill, F f) {
  constexpr int64_t width = HWY_LANES(double);
  const WideV zero = hn::Zero(Wide());
  WideV s0 = zero, s1 = zero, s2 = zero, s3 = zero;
  int64_t i = 0;
  for (; i + 4 * width <= n; i += 4 * width) {
    s0 = hn::Add(s0, f(hn::LoadU(Narrow(), x + i)));
    s1 = hn::Add(s1, f(hn::LoadU(Narrow(), x + i + width)));
    s2 = hn::Add(s2, f(hn::LoadU(Narrow(), x + i + 2 * width)));
    s3 = hn::Add(s3, f(hn::LoadU(Narrow(), x + i + 3 * width)));
  }
  for (; i + width <= n; i += width) s0 = hn::Add(s0, f(hn::LoadU(Narrow(), x + i)));
  if (i < n) s1 = hn::Add(s1, f(load_tail(Narrow(), x + i, n - i, fill)));
  return hn::GetLane(hn::SumOfLanes(Wide(), hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

/// The largest number of the row, −inf for an empty one. NaN compares false and is passed over.
float row_max(const float* x, int64_t n) {
  constexpr int64_t width = HWY_LANES(float);
  constexpr float least = -std::numeric_limits<float>::infinity();
  V best = set(least);
  const auto take = [&](V value) HWY_ATTR { best = hn::IfThenElse(hn::Gt(value, best), value, best); };
  int64_t i = 0;
  for (; i + width <= n; i += width) take(hn::LoadU(D(), x + i));
  if (i < n) take(load_tail(D(), x + i, n - i, least));
  return hn::GetLane(hn::MaxOfLanes(D(), best));
}

// ---- functions of one vector ----------------------------------------------------------------------------

/// e^x for x ≤ 88 (1 ulp; 0 below −104), NaN for NaN: Highway's own gives 0 there and would hide it.
template <class Tag, class Vec>
Vec exp(Tag d, Vec x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
}

/// 1 + e^−x, with −x held below 88.7, where e^x leaves f32: the quotient x / (1 + e^−x) is below 1e-36 there
/// anyway.
V one_plus_exp_minus(V x) {
  const V held = hn::Min(hn::Neg(x), set(88.0f));
  return hn::Add(set(1.0f), hn::Exp(D(), held));
}

V silu_of(V x) { return hn::Div(x, one_plus_exp_minus(x)); }

/// ½ x (1 + tanh u) = x / (1 + e^−2u), u = √(2/π) (x + 0.044715 x³): one exponential, and no cancellation on
/// the left.
V gelu_tanh_of(V x) {
  const V cubic = hn::MulAdd(hn::Mul(hn::Mul(x, x), set(0.044715f)), x, x);
  return hn::Div(x, one_plus_exp_minus(hn::Mul(cubic, set(1.5957691216057308f))));
}

/// Φ(x). The tail Φ(−|x|) = ½ erfc(z), z = |x| / √2, by Abramowitz & Stegun 7.1.26: erfc(z) =
/// t·P(t)·e^(−z²), t = 1 / (1 + 0.3275911 z), absolute error of erfc ≤ 1.5e-7, hence of Φ ≤ 7.5e-8 and of
/// gelu ≤ 7.5e-8 |x| + rounding.
V normal_below(V x) {
  const V z = hn::Mul(hn::Abs(x), set(0.70710678f));
  const V t = hn::Div(set(1.0f), hn::MulAdd(z, set(0.3275911f), set(1.0f)));
  V p = set(1.061405429f);
  p = hn::MulAdd(p, t, set(-1.453152027f));
  p = hn::MulAdd(p, t, set(1.421413741f));
  p = hn::MulAdd(p, t, set(-0.284496736f));
  p = hn::MulAdd(p, t, set(0.254829592f));
  const V tail = hn::Mul(hn::Mul(hn::Mul(set(0.5f), p), t), hn::Exp(D(), hn::Neg(hn::Mul(z, z))));
  return hn::IfThenElse(hn::Lt(x, set(0.0f)), tail, hn::Sub(set(1.0f), tail));
}
V gelu_erf_of(V x) { return hn::Mul(x, normal_below(x)); }

// Derivatives. With s = σ(x): silu′ = s (1 + x (1 − s)); gelu_tanh′ = s + x s (1 − s) · 2u′ at s = σ(2u);
// gelu_erf′ = Φ(x) + x φ(x).
V silu_slope(V x) {
  const V s = hn::Div(set(1.0f), one_plus_exp_minus(x));
  return hn::Mul(s, hn::MulAdd(x, hn::Sub(set(1.0f), s), set(1.0f)));
}
V gelu_tanh_slope(V x) {
  const V square = hn::Mul(x, x), k = set(1.5957691216057308f);
  const V u2 = hn::Mul(k, hn::MulAdd(hn::Mul(square, set(0.044715f)), x, x));
  const V s = hn::Div(set(1.0f), one_plus_exp_minus(u2));
  const V slope = hn::Mul(k, hn::MulAdd(square, set(0.134145f), set(1.0f)));
  return hn::MulAdd(hn::Mul(x, slope), hn::Mul(s, hn::Sub(set(1.0f), s)), s);
}
V gelu_erf_slope(V x) {
  const V density = hn::Mul(set(0.39894228f), hn::Exp(D(), hn::Mul(hn::Mul(x, x), set(-0.5f))));
  return hn::MulAdd(x, density, normal_below(x));
}
V relu_slope(V x) { return hn::IfThenElse(hn::Gt(x, set(0.0f)), set(1.0f), set(0.0f)); }

WideV widen(NarrowV x) { return hn::PromoteTo(Wide(), x); }

// ---- kernels --------------------------------------------------------------------------------------------

double mean_of(double total, int64_t n) { return n > 0 ? total / static_cast<double>(n) : 0; }

float rms_norm(const float* x, const float* gamma, float eps, int64_t n, float* y) noexcept {
  const double squares = sum(x, n, 0.0f, [](NarrowV v) HWY_ATTR { return hn::Mul(widen(v), widen(v)); });
  const double sigma = std::sqrt(mean_of(squares, n) + eps);
  const V inverse = set(static_cast<float>(1 / sigma));
  if (gamma == nullptr) {
    map(x, n, y, [=](V v) HWY_ATTR { return hn::Mul(v, inverse); });
  } else {
    map(x, gamma, n, y, [=](V v, V g) HWY_ATTR { return hn::Mul(hn::Mul(v, inverse), g); });
  }
  return static_cast<float>(sigma);
}

/// Σ (x − μ)² with μ in f64. A padding lane would count as μ², so the last few values go one by one.
double centered_squares(const float* x, int64_t n, double mu) {
  const WideV center = hn::Set(Wide(), mu);
  const auto square = [=](NarrowV v) HWY_ATTR {
    const WideV centered = hn::Sub(widen(v), center);
    return hn::Mul(centered, centered);
  };
  const int64_t whole = n - n % static_cast<int64_t>(HWY_LANES(double));
  double total = sum(x, whole, 0.0f, square);
  for (int64_t i = whole; i < n; i++) total += (x[i] - mu) * (x[i] - mu);
  return total;
}

float layer_norm(const float* x, const float* gamma, const float* beta, float eps, int64_t n, float* y,
                 float* mean) noexcept {
  const double mu = mean_of(sum(x, n, 0.0f, widen), n);
  const double sigma = std::sqrt(mean_of(centered_squares(x, n, mu), n) + eps);
  const V center = set(static_cast<float>(mu)), inverse = set(static_cast<float>(1 / sigma));
  map(x, n, y, [=](V v) HWY_ATTR { return hn::Mul(hn::Sub(v, center), inverse); });
  if (gamma != nullptr) map(y, gamma, n, y, [](V v, V g) HWY_ATTR { return hn::Mul(v, g); });
  if (beta != nullptr) map(y, beta, n, y, [](V v, V b) HWY_ATTR { return hn::Add(v, b); });
  *mean = static_cast<float>(mu);
  return static_cast<float>(sigma);
}

void add(float* x, const float* a, int64_t n) noexcept {
  map(x, a, n, x, [](V v, V w) HWY_ATTR { return hn::Add(v, w); });
}
void scale_add(float* x, float factor, const float* a, int64_t n) noexcept {
  const V f = set(factor);
  map(x, a, n, x, [=](V v, V w) HWY_ATTR { return hn::Add(hn::Mul(f, v), w); });  // two roundings, as scalar
}
void scale(float* x, float factor, int64_t n) noexcept {
  const V f = set(factor);
  map(x, n, x, [=](V v) HWY_ATTR { return hn::Mul(v, f); });
}
void multiply(float* x, const float* a, int64_t n) noexcept {
  map(x, a, n, x, [](V v, V w) HWY_ATTR { return hn::Mul(v, w); });
}
void silu(const float* x, int64_t n, float* y) noexcept { map(x, n, y, silu_of); }
void gelu_tanh(const float* x, int64_t n, float* y) noexcept { map(x, n, y, gelu_tanh_of); }
void gelu_erf(const float* x, int64_t n, float* y) noexcept { map(x, n, y, gelu_erf_of); }
void silu_backward(const float* x, const float* dy, int64_t n, float* dx) noexcept {
  map(x, dy, n, dx, [](V v, V d) HWY_ATTR { return hn::Mul(d, silu_slope(v)); });
}
void gelu_tanh_backward(const float* x, const float* dy, int64_t n, float* dx) noexcept {
  map(x, dy, n, dx, [](V v, V d) HWY_ATTR { return hn::Mul(d, gelu_tanh_slope(v)); });
}
void gelu_erf_backward(const float* x, const float* dy, int64_t n, float* dx) noexcept {
  map(x, dy, n, dx, [](V v, V d) HWY_ATTR { return hn::Mul(d, gelu_erf_slope(v)); });
}
void relu_backward(const float* x, const float* dy, int64_t n, float* dx) noexcept {
  map(x, dy, n, dx, [](V v, V d) HWY_ATTR { return hn::Mul(d, relu_slope(v)); });
}
void relu(const float* x, int64_t n, float* y) noexcept {
  map(x, n, y, [](V v) HWY_ATTR { return hn::IfThenZeroElse(hn::Lt(v, set(0.0f)), v); });
}

void rope(float* x, const float* cos, const float* sin, int64_t half) noexcept {
  constexpr int64_t width = HWY_LANES(float);
  float* y = x + half;
  const auto rotate = [](V a, V b, V c, V s, V& turned_a, V& turned_b) HWY_ATTR {
    turned_a = hn::Sub(hn::Mul(a, c), hn::Mul(b, s));
    turned_b = hn::Add(hn::Mul(b, c), hn::Mul(a, s));
  };
  V a, b;
  int64_t i = 0;
  for (; i + width <= half; i += width) {
    rotate(hn::LoadU(D(), x + i), hn::LoadU(D(), y + i), hn::LoadU(D(), cos + i), hn::LoadU(D(), sin + i), a,
           b);
    hn::StoreU(a, D(), x + i);
    hn::StoreU(b, D(), y + i);
  }
  const int64_t left = half - i;
  if (left == 0) return;
  rotate(load_tail(D(), x + i, left, 0), load_tail(D(), y + i, left, 0), load_tail(D(), cos + i, left, 0),
         load_tail(D(), sin + i, left, 0), a, b);
  store_tail(a, x + i, left);
  store_tail(b, y + i, left);
}

void soft_cap(float* x, float cap, int64_t n) noexcept {
  const V c = set(cap);
  map(x, n, x, [=](V v) HWY_ATTR { return hn::Mul(c, hn::Tanh(D(), hn::Div(v, c))); });
}

void softmax(const float* x, int64_t n, float* y) noexcept {
  const V max = set(row_max(x, n));
  map(x, n, y, [=](V v) HWY_ATTR { return exp(D(), hn::Sub(v, max)); });
  const V inverse = set(static_cast<float>(1 / sum(y, n, 0.0f, widen)));
  map(y, n, y, [=](V v) HWY_ATTR { return hn::Mul(v, inverse); });
}

float log_sum_exp(const float* x, int64_t n) noexcept {
  const float max = row_max(x, n);
  if (n == 0) return max;
  const NarrowV top = hn::Set(Narrow(), max);
  constexpr float least = -std::numeric_limits<float>::infinity();  // e^−inf = 0 pads the tail
  const double total =
      sum(x, n, least, [=](NarrowV v) HWY_ATTR { return widen(exp(Narrow(), hn::Sub(v, top))); });
  return static_cast<float>(max + std::log(total));
}

/// Two passes: the maximum, then where it first stands. The second stops early and needs no index vectors.
int64_t argmax(const float* x, int64_t n) noexcept {
  constexpr int64_t width = HWY_LANES(float);
  if (n == 0) return -1;
  const float max = row_max(x, n);
  int64_t i = 0;
  for (; i + width <= n; i += width) {
    const auto first = hn::FindFirstTrue(D(), hn::Eq(hn::LoadU(D(), x + i), set(max)));
    if (first >= 0) return i + first;
  }
  for (; i < n; i++)
    if (x[i] == max) return i;
  return 0;  // no number at all
}

constexpr RowKernels kTable = {.rms_norm = rms_norm,
                               .layer_norm = layer_norm,
                               .add = add,
                               .scale_add = scale_add,
                               .scale = scale,
                               .silu = silu,
                               .gelu_tanh = gelu_tanh,
                               .gelu_erf = gelu_erf,
                               .relu = relu,
                               .silu_backward = silu_backward,
                               .gelu_tanh_backward = gelu_tanh_backward,
                               .gelu_erf_backward = gelu_erf_backward,
                               .relu_backward = relu_backward,
                               .multiply = multiply,
                               .rope = rope,
                               .soft_cap = soft_cap,
                               .softmax = softmax,
                               .log_sum_exp = log_sum_exp,
                               .argmax = argmax};

}  // namespace

const RowKernels* row_table() noexcept { return &kTable; }

}  // namespace liuli::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
