#include "trace/calculation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace liuli {
namespace {

constexpr size_t kTermsWithBits = 64;  // terms whose stored bits are looked up

// Index j of a flattened row as the indices after the token's.
std::vector<int64_t> unflatten(const std::vector<int64_t>& shape, int64_t token, int64_t j) {
  std::vector<int64_t> index(shape.size());
  index[0] = token;
  for (size_t i = shape.size() - 1; i > 0; i--) {
    index[i] = j % shape[i];
    j /= shape[i];
  }
  return index;
}

StoredBits stored_bits(const Matrix& m, int64_t row, int64_t column) {
  const StoredWeight w = stored_weight(m, row, column);
  StoredBits bits{m.name(), std::string(dtype_info(m.type()).name), w.file_row, w.block, w.at, w.bytes};
  if (w.code) {
    bits.has_code = true;
    bits.code = w.code->code;
    bits.offset = w.code->offset;
    bits.scale = w.code->scale;
    bits.minimum = w.code->minimum;
  }
  return bits;
}

std::vector<float> decoded_row(const Matrix& m, int64_t row) {
  std::vector<float> values(static_cast<size_t>(m.d_in()));
  std::vector<uint8_t> stored;
  m.decode_row(row, values.data(), stored);
  return values;
}

// Rounding to float32 cannot do better than this near zero.
constexpr double kSmallest = 1e-37;

}  // namespace

const Block& ExplainedRun::block(const Place& place) const {
  const auto& blocks = place.stack == Stack::encoder ? model.encoder : model.blocks;
  return blocks[static_cast<size_t>(place.layer)];
}

const LayerPlan& ExplainedRun::plan(const Place& place) const {
  const auto& layers = place.stack == Stack::encoder ? model.config.encoder_layers : model.config.layers;
  return layers[static_cast<size_t>(place.layer)];
}

std::string block_prefix(const Place& place) {
  const char* tower = place.stack == Stack::blocks    ? ""
                      : place.stack == Stack::encoder ? "encoder."
                                                      : "decoder.";
  return fmt::format("{}blocks.{}.", tower, place.layer);
}

Calculation::Calculation(ExplainedRun& run, const NumberPlace& at, size_t max_terms)
    : run_(run), at_(at), max_terms_(max_terms) {
  result_.name = number_name(at.place, at.index);
  result_.point = at.place.name();
  result_.index = at.index;
  result_.shape = place_shape(run.config(), at.place, run.rows.counts());
  result_.formula = point_info(at.place.point).formula;
  result_.product_class = to_string(run.ops.product_class);
  result_.isa = run.ops.kernels.name;
  result_.value = value(at.place, at.index);
}

NumberOperand Calculation::operand(const Place& place, const std::vector<int64_t>& index) {
  const double x = value(place, index);
  return {number_name(place, index), x, x, true, {}};
}

ProductInput Calculation::input(const Place& place, int64_t token) {
  const auto row = run_.rows.row(place, token);
  const std::vector<int64_t> shape = place_shape(config(), place, run_.rows.counts());
  return {{row.begin(), row.end()}, [place, shape, token, row](int64_t j) {
            const auto x = static_cast<double>(row[static_cast<size_t>(j)]);
            return NumberOperand{number_name(place, unflatten(shape, token, j)), x, x, true, {}};
          }};
}

void Calculation::add_term(std::vector<NumberOperand> operands, double value) {
  result_.terms.push_back({std::move(operands), value});
  weights_.emplace_back();
}

void Calculation::add_weight_term(std::vector<NumberOperand> operands, const WeightOf& w, double value) {
  NumberOperand weight = named(fmt::format("{}.weight[{},{}]", w.matrix.name, w.row, w.column), w.decoded);
  weight.used = w.used;
  operands.push_back(std::move(weight));
  add_term(std::move(operands), value);
  weights_.back() = {w.matrix.weight, w.row, w.column};
}

void Calculation::add_products(const OpContext& ops, const NamedMatrix& m, int64_t row, const ProductInput& x,
                               double factor) {
  const ProductOperands used = product_operands(ops, *m.weight, row, x.values);
  const std::vector<float> decoded = decoded_row(*m.weight, row);
  result_.activation_rounding = used.x_form;
  result_.weight_rounding = used.w_form;
  for (size_t i = 0; i < used.x.size(); i++) {
    const auto column = static_cast<int64_t>(i);
    NumberOperand activation = x.operand(column);
    activation.used = used.x[i];
    add_weight_term({std::move(activation)}, {m, row, column, static_cast<double>(decoded[i]), used.w[i]},
                    used.x[i] * used.w[i] * factor);
  }
}

void Calculation::linear(const OpContext& ops, const NamedMatrix& m, int64_t row, const ProductInput& x) {
  set_kind("dot product");
  add_products(ops, m, row, x);
  double result = sum(), magnitude = absolute_sum();
  if (m.bias != nullptr) {
    const auto bias = static_cast<double>(m.bias[row]);
    result += bias;
    magnitude += std::fabs(bias);
    step(fmt::format("+ {}.bias[{}] ({})", m.name, row, bias), result);
  }
  finish(result, magnitude);
}

double Calculation::sum() const {
  return std::accumulate(result_.terms.begin(), result_.terms.end(), 0.0,
                         [](double s, const NumberTerm& term) { return s + term.value; });
}

double Calculation::absolute_sum() const {
  return std::accumulate(result_.terms.begin(), result_.terms.end(), 0.0,
                         [](double s, const NumberTerm& term) { return s + std::fabs(term.value); });
}

void Calculation::finish(double recomputed, double magnitude) {
  result_.sum = sum();
  result_.recomputed = recomputed;
  result_.magnitude = magnitude;
  const bool same = result_.value == recomputed;  // also two infinities
  result_.difference = same ? 0 : std::fabs(result_.value - recomputed);
  result_.agrees = result_.difference <= kNumberTolerance * magnitude + kSmallest;
}

NumberExplanation Calculation::take() {
  std::vector<size_t> order(result_.terms.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (result_.kind != "choice")
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::fabs(result_.terms[a].value) > std::fabs(result_.terms[b].value);
    });
  std::vector<NumberTerm> sorted;
  result_.n_terms = order.size();
  const size_t kept = max_terms_ == 0 ? order.size() : std::min(max_terms_, order.size());
  for (size_t i = 0; i < order.size(); i++) {
    NumberTerm& term = result_.terms[order[i]];
    const Stored& w = weights_[order[i]];
    if (i >= kept) {
      result_.rest += term.value;
      continue;
    }
    if (w.matrix != nullptr && i < kTermsWithBits)
      term.operands.back().stored = stored_bits(*w.matrix, w.row, w.column);
    sorted.push_back(std::move(term));
  }
  result_.terms = std::move(sorted);
  return std::move(result_);
}

}  // namespace liuli
