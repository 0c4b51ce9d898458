#include "trace/explain_arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

namespace liuli::worked {

void Sum::add(double term) {
  const double next = sum_ + term;
  // The part of the smaller operand that did not fit into the sum.
  lost_ += std::fabs(sum_) >= std::fabs(term) ? (sum_ - next) + term : (term - next) + sum_;
  sum_ = next;
}

double sum_of(std::span<const double> terms) {
  Sum sum;
  for (double term : terms) sum.add(term);
  return sum.value();
}

double dot(std::span<const double> a, std::span<const double> b) {
  Sum sum;
  for (size_t i = 0; i < a.size(); ++i) sum.add(a[i] * b[i]);
  return sum.value();
}

double l2_norm(std::span<const double> a) { return std::sqrt(dot(a, a)); }

double round_decimals(double x, int decimals) {
  // Printing rounds the exact binary value correctly; multiplying by 1000 and rounding would round twice.
  return std::strtod(fmt::format("{:.{}f}", x, decimals).c_str(), nullptr);
}

double round_bits(double x, int bits) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, bits)), exponent - bits);
}

double gamma_at(const NormInputs& inputs, size_t i) {
  if (inputs.gamma.empty()) return 1;
  return inputs.gamma[inputs.kind == NormKind::batch ? 0 : i];
}

double beta_at(const NormInputs& inputs, size_t i) {
  if (inputs.beta.empty()) return 0;
  return inputs.beta[inputs.kind == NormKind::batch ? 0 : i];
}

NormValues norm_values(const NormInputs& in) {
  const auto keep = [&](double x) { return in.round_steps ? round_decimals(x, *in.round_steps) : x; };
  const double n = static_cast<double>(in.row.size());
  NormValues v;
  v.sum = sum_of(in.row);
  if (in.kind != NormKind::rms) {
    v.raw_mean = in.mean ? *in.mean : v.sum / n;
    v.mean = keep(v.raw_mean);
  }
  Sum squares;
  for (double x : in.row) squares.add((x - v.mean) * (x - v.mean));
  v.square_sum = squares.value();
  v.raw_var = in.variance ? *in.variance : v.square_sum / n;
  v.var = keep(v.raw_var);
  v.raw_sigma = std::sqrt(v.var + in.eps);
  v.sigma = keep(v.raw_sigma);
  for (size_t i = 0; i < in.row.size(); ++i) {
    v.raw_normalized.push_back((in.row[i] - v.mean) / v.sigma);
    v.normalized.push_back(keep(v.raw_normalized[i]));
    v.raw_out.push_back(gamma_at(in, i) * v.normalized[i] + beta_at(in, i));
    v.out.push_back(keep(v.raw_out[i]));
  }
  return v;
}

Moments moments(std::span<const double> row) {
  const double n = static_cast<double>(row.size());
  Moments m;
  m.mean = sum_of(row) / n;
  Sum squares;
  for (double x : row) squares.add((x - m.mean) * (x - m.mean));
  m.var = squares.value() / n;
  return m;
}

namespace {

bool is_visible(const ScoreInputs& in, size_t key) {
  if (!in.visible.empty()) return in.visible[key];
  if (!in.query_position) return true;
  const int64_t distance = *in.query_position - static_cast<int64_t>(key);
  return distance >= 0 && (in.window == 0 || distance < in.window);
}

}  // namespace

ScoreValues score_values(const ScoreInputs& in) {
  constexpr double kMasked = -std::numeric_limits<double>::infinity();
  ScoreValues v;
  v.scale = in.scale ? *in.scale : 1 / std::sqrt(static_cast<double>(in.q.size()));
  for (size_t j = 0; j < in.keys.size(); ++j) {
    v.raw.push_back(dot(in.q, in.keys[j]));
    const double scaled = v.raw[j] * v.scale;
    v.scores.push_back(in.soft_cap > 0 ? in.soft_cap * std::tanh(scaled / in.soft_cap) : scaled);
    v.visible.push_back(is_visible(in, j));
    v.masked.push_back(v.visible[j] ? v.scores[j] : kMasked);
  }
  v.max = *std::max_element(v.masked.begin(), v.masked.end());
  for (double s : v.masked) v.exp.push_back(std::exp(s - v.max));
  v.sum = sum_of(v.exp);
  for (double e : v.exp) v.pattern.push_back(e / v.sum);
  return v;
}

std::vector<size_t> largest(std::span<const double> values, size_t n) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return std::fabs(values[a]) > std::fabs(values[b]); });
  order.resize(std::min(n, order.size()));
  return order;
}

}  // namespace liuli::worked
