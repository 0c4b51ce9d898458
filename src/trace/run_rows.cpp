#include "trace/run_rows.h"

#include <algorithm>

#include "core/check.h"
#include "trace/number_place.h"

namespace liuli {
namespace {

int64_t row_width(const ModelConfig& config, const Place& place, TokenCounts counts) {
  const std::vector<int64_t> shape = place_shape(config, place, counts);
  if (is_score_like(place.point)) return shape[2];
  int64_t width = 1;
  for (size_t i = 1; i < shape.size(); i++) width *= shape[i];
  return width;
}

bool is_behind_blocks(const Place& place) {
  return place.point == Point::logits || place.point == Point::pooler ||
         place.point >= norm_point(NormSite::ln_final, NormStage::mean);
}

}  // namespace

RunRows::Row& RunRows::find(const Place& place, int64_t token, int64_t head) {
  const RowKey at{key(place), token, head};
  Row& row = rows_[at];
  if (row.values.empty()) row.values.resize(static_cast<size_t>(row_width(config_, place, counts_)));
  if (!row.recorded) {
    missing_.insert(at);
    missing_places_.emplace(at.place, place);
  }
  return row;
}

std::span<const float> RunRows::row(const Place& place, int64_t token, int64_t head) {
  return find(place, token, head).values;
}

float RunRows::value(const Place& place, const std::vector<int64_t>& index) {
  if (is_score_like(place.point)) return row(place, index[1], index[0])[static_cast<size_t>(index[2])];
  const std::vector<int64_t> shape = place_shape(config_, place, counts_);
  int64_t at = 0;
  for (size_t i = 1; i < index.size(); i++) at = at * shape[i] + index[i];
  return row(place, index[0])[static_cast<size_t>(at)];
}

bool RunRows::passed(const Place& place, int64_t token) { return find(place, token, 0).passed; }

void RunRows::close_run() {
  for (const RowKey& at : missing_) {
    Row& row = rows_[at];
    row.passed = row.recorded;
    row.recorded = true;
  }
  missing_.clear();
  missing_places_.clear();
}

bool RunRows::needs_one_pass() const {
  return std::any_of(missing_places_.begin(), missing_places_.end(),
                     [](const auto& entry) { return is_score_like(entry.second.point); });
}

bool RunRows::needs_every_logit() const {
  return std::any_of(missing_places_.begin(), missing_places_.end(),
                     [](const auto& entry) { return is_behind_blocks(entry.second); });
}

int RunRows::last_layer() const {
  int last = 0;
  for (const auto& [unused, place] : missing_places_) {
    if (is_behind_blocks(place)) return static_cast<int>(config_.n_layers);
    if (place.stack != Stack::encoder) last = std::max(last, place.layer);
  }
  return last;
}

void RunRows::see(const ProbedValue& value) {
  const PlaceKey place = key(value.place);
  const bool scores = value.head_stride > 0;
  for (int64_t i = 0; i < value.rows.n; i++) {
    const int64_t token = value.first_position + (value.row_tokens != nullptr ? value.row_tokens[i] : i);
    for (int64_t head = 0; head < (scores ? value.heads : 1); head++) {
      const auto found = rows_.find({place, token, head});
      if (found == rows_.end() || found->second.recorded) continue;
      LIULI_CHECK(static_cast<int64_t>(found->second.values.size()) == value.rows.width);
      std::copy_n(value.rows.row(i) + head * value.head_stride, value.rows.width,
                  found->second.values.begin());
      found->second.recorded = true;
    }
  }
}

}  // namespace liuli
