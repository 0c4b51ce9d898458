#include "report/point_diff.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

namespace liuli {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// |a − b|; 0 where both hold the same infinity (a masked score) or both are no number.
double difference(float a, float b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double d = std::fabs(static_cast<double>(a) - static_cast<double>(b));
  return std::isnan(d) ? kInfinity : d;
}

double relative(double difference_squares, double reference_squares) {
  if (difference_squares == 0) return 0;
  return reference_squares == 0 ? kInfinity : std::sqrt(difference_squares / reference_squares);
}

// Where element `at` of a token's row lies, in the order of the place's shape; scores come head by head and have
// the token second.
std::vector<int64_t> coordinate_of(const ModelConfig& config, const Place& place, int64_t position,
                                   const PositionSums& sums) {
  if (point_info(place.point).shape.front() != Axis::token) return {sums.head, position, sums.at};
  std::vector<int64_t> coordinate = place_shape(config, place, {1, 1});
  int64_t at = sums.at;
  for (size_t axis = coordinate.size() - 1; axis > 0; axis--) {
    const int64_t length = coordinate[axis];
    coordinate[axis] = at % length;
    at /= length;
  }
  coordinate[0] = position;
  return coordinate;
}

int token_of(const ProbedValue& value, int64_t row) {
  return value.row_tokens != nullptr ? value.row_tokens[row] : static_cast<int>(row);
}

}  // namespace

void PositionSums::add(const float* row_a, const float* row_b, int64_t n, int64_t in_head) {
  for (int64_t i = 0; i < n; i++) {
    const double d = difference(row_a[i], row_b[i]);
    const auto reference = static_cast<double>(row_b[i]);
    difference_squares += d * d;
    if (std::isfinite(reference)) reference_squares += reference * reference;
    if (d > largest) largest = d, head = in_head, at = i, a = row_a[i], b = row_b[i];
  }
}

void PlaceValues::see(const ProbedValue& value) {
  const Rows& rows = value.rows;
  Value kept{rows.n, rows.width, value.heads, {}, {}};
  kept.values.reserve(static_cast<size_t>(rows.n * rows.width * value.heads));
  for (int64_t head = 0; head < value.heads; head++)
    for (int64_t i = 0; i < rows.n; i++) {
      const float* row = rows.row(i) + head * value.head_stride;
      kept.values.insert(kept.values.end(), row, row + rows.width);
    }
  for (int64_t i = 0; i < rows.n; i++) kept.tokens.push_back(token_of(value, i));
  seen_.at(key_of(value.place)).push_back(std::move(kept));
}

void PlaceValues::clear() {
  for (auto& [place, values] : seen_) values.clear();
}

const PlaceValues::Value* PlaceValues::find(const Place& place, size_t index) const {
  const std::vector<Value>& values = seen_.at(key_of(place));
  return index < values.size() ? &values[index] : nullptr;
}

PointComparison::PointComparison(const ModelConfig& config, const ModelConfig& reference)
    : config_(&reference) {
  std::set<PlaceKey> others;
  for (const Place& place : all_places(config)) others.insert(key_of(place));
  for (const Place& place : all_places(reference)) {
    const bool shared = others.count(key_of(place)) != 0 &&
                        place_shape(config, place, {1, 1}) == place_shape(reference, place, {1, 1});
    if (!shared) continue;
    places_.push_back(place);
    other_.add_place(place);
    PointTotals& totals = totals_[key_of(place)];
    totals.place = place;
    totals.diff.name = place.name();
    totals.diff.formula = point_info(place.point).formula;
    totals.diff.layer = place.layer;
  }
}

void PointComparison::next_chunk() {
  other_.clear();
  for (auto& [place, totals] : totals_) totals.next = 0;
}

void PointComparison::see(const ProbedValue& value) {
  PointTotals& totals = totals_.at(key_of(value.place));
  const PlaceValues::Value* other = other_.find(value.place, totals.next++);
  const Rows& rows = value.rows;
  if (other == nullptr || other->width != rows.width || other->heads != value.heads) return;
  for (int64_t i = 0; i < rows.n; i++) {
    // An expert that only one run chose for this token has nothing to be compared with; the choice itself is a
    // point too and has shown the difference.
    const int token = token_of(value, i);
    const auto same = std::find(other->tokens.begin(), other->tokens.end(), token);
    if (same == other->tokens.end()) continue;
    PositionSums sums;
    for (int64_t head = 0; head < value.heads; head++)
      sums.add(other->row(head, same - other->tokens.begin()), rows.row(i) + head * value.head_stride,
               rows.width, head);
    add_position(totals, value.first_position + token, sums);
  }
}

void PointComparison::add_position(PointTotals& totals, int64_t position, const PositionSums& sums) const {
  totals.difference_squares += sums.difference_squares;
  totals.reference_squares += sums.reference_squares;
  const double error = relative(sums.difference_squares, sums.reference_squares);
  if (error > totals.diff.position_error) {
    totals.diff.position_error = error;
    totals.diff.worst_position = position;
  }
  if (sums.largest <= totals.largest) return;
  totals.largest = sums.largest;
  totals.diff.coordinate = coordinate_of(*config_, totals.place, position, sums);
  totals.diff.value = static_cast<double>(sums.a);
  totals.diff.reference = static_cast<double>(sums.b);
}

std::vector<PointDiff> PointComparison::take() {
  std::vector<PointDiff> diffs;
  for (const Place& place : places_) {
    PointTotals& totals = totals_.at(key_of(place));
    totals.diff.error = relative(totals.difference_squares, totals.reference_squares);
    diffs.push_back(std::move(totals.diff));
  }
  return diffs;
}

std::string shape_difference(const ModelConfig& config, const ModelConfig& reference) {
  const auto differ = [](const char* what, int64_t a, int64_t b) {
    return fmt::format("the models differ in {}: {} and {}", what, a, b);
  };
  if (config.n_layers != reference.n_layers) return differ("n_layers", config.n_layers, reference.n_layers);
  if (config.d_model != reference.d_model) return differ("d_model", config.d_model, reference.d_model);
  return "";
}

bool may_diverge(Point point) {
  const int offset = static_cast<int>(point) - static_cast<int>(Point::norm_first);
  return offset < 0 || offset % kNormStages != static_cast<int>(NormStage::mean);
}

}  // namespace liuli
