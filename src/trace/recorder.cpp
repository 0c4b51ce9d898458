#include "trace/recorder.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "core/check.h"
#include "liuli/error.h"

namespace liuli {
namespace {

int64_t elements(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

// What stands where a later chunk's keys were not there yet: hidden from those rows.
float unseen(Point point) {
  return point == Point::attn_attn_scores ? -std::numeric_limits<float>::infinity() : 0.0f;
}

}  // namespace

int64_t capture_bytes(const ModelConfig& config, const std::vector<Place>& places, TokenCounts counts) {
  int64_t bytes = 0;
  for (const Place& place : places)
    bytes += elements(place_shape(config, place, counts)) * static_cast<int64_t>(sizeof(float));
  return bytes;
}

Recorder::Recorder(const ModelConfig& config, std::vector<Place> places, TokenCounts counts,
                   int64_t max_bytes)
    : places_(std::move(places)) {
  const int64_t bytes = capture_bytes(config, places_, counts);
  if (bytes > max_bytes)
    throw Error(
        ErrorCode::out_of_memory,
        fmt::format("the capture of {} points would take {:.1f} MiB, the limit is {:.1f} MiB", places_.size(),
                    static_cast<double>(bytes) / (1 << 20), static_cast<double>(max_bytes) / (1 << 20)));
  for (const Place& place : places_) {
    slots_[key(place)] = tensors_.size();
    const std::vector<int64_t> shape = place_shape(config, place, counts);
    tensors_.push_back(
        {place.name(), shape, std::vector<float>(static_cast<size_t>(elements(shape)), unseen(place.point))});
  }
}

void Recorder::see(const ProbedValue& value) {
  TracedTensor& tensor = tensors_[slots_.at(key(value.place))];
  if (value.head_stride > 0) {  // [head][token][key]
    const int64_t n_tokens = tensor.shape[1], n_keys = tensor.shape[2];
    for (int64_t head = 0; head < value.heads; head++)
      for (int64_t i = 0; i < value.rows.n; i++)
        std::copy_n(value.rows.data + head * value.head_stride + i * value.rows.stride, value.rows.width,
                    tensor.values.data() + (head * n_tokens + value.first_position + i) * n_keys);
    return;
  }
  const int64_t width = static_cast<int64_t>(tensor.values.size()) / tensor.shape[0];
  LIULI_CHECK(width == value.rows.width && value.first_position + value.rows.n <= tensor.shape[0]);
  for (int64_t i = 0; i < value.rows.n; i++) {
    const int64_t token = value.row_tokens != nullptr ? value.row_tokens[i] : i;
    std::copy_n(value.rows.row(i), width, tensor.values.data() + (value.first_position + token) * width);
  }
}

bool Recorder::needs_one_pass() const {
  return std::any_of(places_.begin(), places_.end(), [](const Place& place) {
    return place.point == Point::attn_scores || place.point == Point::attn_scores_raw;
  });
}

bool Recorder::needs_every_logit() const {
  return std::any_of(places_.begin(), places_.end(), [](const Place& place) {
    return place.point == Point::logits || place.point >= norm_point(NormSite::ln_final, NormStage::mean);
  });
}

}  // namespace liuli
