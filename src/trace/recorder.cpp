#include "trace/recorder.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "core/check.h"
#include "liuli/error.h"
#include "trace/number_place.h"

namespace liuli {
namespace {

// What stands where a later chunk's keys were not there yet: hidden from those rows.
float unseen(Point point) {
  return point == Point::attn_attn_scores ? -std::numeric_limits<float>::infinity() : 0.0f;
}

// Where each of `size` indices goes among the kept ones.
std::vector<int64_t> slots(const std::vector<int64_t>& kept, int64_t size) {
  std::vector<int64_t> slot(static_cast<size_t>(size), -1);
  for (size_t i = 0; i < kept.size(); i++) slot[static_cast<size_t>(kept[i])] = static_cast<int64_t>(i);
  return slot;
}

// The places within a row that a cut of its axes keeps, in order.
std::vector<int64_t> kept_columns(const Capture& capture, size_t first_axis) {
  std::vector<int64_t> columns = {0};
  for (size_t axis = first_axis; axis < capture.kept.size(); axis++) {
    std::vector<int64_t> longer;
    for (const int64_t column : columns)
      for (const int64_t index : capture.kept[axis])
        longer.push_back(column * capture.full_shape[axis] + index);
    columns = std::move(longer);
  }
  return columns;
}

}  // namespace

int64_t capture_bytes(const std::vector<Capture>& captures) {
  int64_t bytes = 0;
  for (const Capture& capture : captures) bytes += capture.elements() * static_cast<int64_t>(sizeof(float));
  return bytes;
}

int64_t capture_bytes(const ModelConfig& config, const std::vector<Place>& places, TokenCounts counts) {
  int64_t bytes = 0;
  for (const Place& place : places) {
    int64_t elements = 1;
    for (const int64_t size : place_shape(config, place, counts)) elements *= size;
    bytes += elements * static_cast<int64_t>(sizeof(float));
  }
  return bytes;
}

Recorder::Recorder(std::vector<Capture> captures, int64_t max_bytes, TraceSink* sink, ThreadPool* pool)
    : captures_(std::move(captures)), sink_(sink), pool_(pool) {
  const int64_t bytes = capture_bytes(captures_);
  if (bytes > max_bytes)
    throw Error(ErrorCode::out_of_memory,
                fmt::format("the capture of {} points would take {:.1f} MiB, the limit is {:.1f} MiB",
                            captures_.size(), static_cast<double>(bytes) / (1 << 20),
                            static_cast<double>(max_bytes) / (1 << 20)));
  for (const Capture& capture : captures_) {
    slots_[key(capture.place)].push_back(tensors_.size());
    layouts_.push_back(layout_of(capture));
    tensors_.push_back({capture.name, capture.shape, {}});
    if (sink_ == nullptr) tensors_.back().values.resize(static_cast<size_t>(capture.elements()));
  }
  begun_.resize(tensors_.size());
  if (sink_ != nullptr) sink_->begin(tensors_);
  for (size_t i = 0; i < tensors_.size(); i++)
    memory_.push_back(sink_ != nullptr ? sink_->memory(i) : tensors_[i].values.data());
}

Recorder::Layout Recorder::layout_of(const Capture& capture) {
  Layout layout;
  layout.by_head = is_score_like(capture.place.point);
  const size_t row_axis = layout.by_head ? 1 : 0;
  layout.n_heads = layout.by_head ? capture.full_shape[0] : 1;
  layout.head_slot = layout.by_head ? slots(capture.kept[0], layout.n_heads) : std::vector<int64_t>{0};
  layout.n_rows = capture.full_shape[row_axis];
  layout.row_slot = slots(capture.kept[row_axis], layout.n_rows);
  layout.kept_rows = static_cast<int64_t>(capture.kept[row_axis].size());
  layout.width = 1;
  for (size_t axis = row_axis + 1; axis < capture.full_shape.size(); axis++)
    layout.width *= capture.full_shape[axis];
  layout.columns = kept_columns(capture, row_axis + 1);
  layout.kept_width = static_cast<int64_t>(layout.columns.size());
  if (layout.kept_width == layout.width) layout.columns.clear();
  return layout;
}

void Recorder::see(const ProbedValue& value) {
  for (const size_t tensor : slots_.at(key(value.place))) {
    if (!begun_[tensor]) begin(tensor, value);
    if (memory_[tensor] == nullptr || memory_[tensor] != value.rows.data)  // else it was formed there
      if (!keep_rows_at_once(tensor, value)) keep(tensor, value);
  }
}

// What comes in pieces may leave gaps (tokens that an expert does not see): they are 0.
void Recorder::begin(size_t tensor, const ProbedValue& value) {
  begun_[tensor] = true;
  const bool complete = value.row_tokens == nullptr && value.rows.n == layouts_[tensor].n_rows;
  if (!complete) zero(tensor);
}

// A sink's memory may hold anything; vectors are 0 from the start.
void Recorder::zero(size_t tensor) {
  if (sink_ != nullptr && memory_[tensor] != nullptr)
    std::fill_n(memory_[tensor], captures_[tensor].elements(), 0.0f);
}

std::vector<TracedTensor> Recorder::take() {
  for (size_t tensor = 0; tensor < begun_.size(); tensor++)
    if (!begun_[tensor]) zero(tensor);
  return std::move(tensors_);
}

bool Recorder::is_whole(const Layout& at) const {
  return at.columns.empty() && at.kept_rows == at.n_rows &&
         std::none_of(at.head_slot.begin(), at.head_slot.end(), [](int64_t slot) { return slot < 0; });
}

float* Recorder::storage(const Place& place, int64_t n) {
  for (const size_t tensor : slots_.at(key(place)))
    if (memory_[tensor] != nullptr && is_whole(layouts_[tensor]) && captures_[tensor].elements() == n)
      return memory_[tensor];
  return nullptr;
}

// Whole rows of consecutive tokens, which is most of a large capture: copied by all threads. (Nearly all of the time is the
// system's, handing out new pages.)
bool Recorder::keep_rows_at_once(size_t tensor, const ProbedValue& value) {
  const Layout& at = layouts_[tensor];
  const Rows& rows = value.rows;
  if (memory_[tensor] == nullptr || at.by_head || value.row_tokens != nullptr || !is_whole(at) ||
      rows.width != at.width)
    return false;
  LIULI_CHECK(value.first_position + rows.n <= at.n_rows);
  float* to = memory_[tensor] + value.first_position * at.width;
  const auto copy = [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i++)
      std::memcpy(to + i * at.width, rows.row(i), static_cast<size_t>(at.width) * sizeof(float));
  };
  constexpr int64_t kFloatsWorthAThread = 1 << 14;
  if (pool_ != nullptr)
    pool_->parallel_for(rows.n, copy, std::max<int64_t>(1, kFloatsWorthAThread / at.width));
  else
    copy(0, rows.n, 0);
  return true;
}

void Recorder::keep(size_t tensor, const ProbedValue& value) {
  const Layout& at = layouts_[tensor];
  LIULI_CHECK(at.by_head == (value.head_stride > 0) && (at.by_head || value.rows.width == at.width));
  const float absent = unseen(value.place.point);
  row_.resize(static_cast<size_t>(at.kept_width));
  for (int64_t head = 0; head < at.n_heads; head++)
    for (int64_t i = 0; i < value.rows.n; i++) {
      const int64_t token = value.first_position + (value.row_tokens != nullptr ? value.row_tokens[i] : i);
      LIULI_CHECK(token < at.n_rows);
      const int64_t head_slot = at.head_slot[static_cast<size_t>(head)],
                    row_slot = at.row_slot[static_cast<size_t>(token)];
      if (head_slot < 0 || row_slot < 0) continue;
      const float* row = value.rows.row(i) + head * value.head_stride;
      const int64_t first = (head_slot * at.kept_rows + row_slot) * at.kept_width;
      if (at.columns.empty() && value.rows.width == at.width) {
        write(tensor, first, row, at.width);
        continue;
      }
      for (int64_t j = 0; j < at.kept_width; j++) {
        const int64_t column = at.columns.empty() ? j : at.columns[static_cast<size_t>(j)];
        row_[static_cast<size_t>(j)] = column < value.rows.width ? row[column] : absent;
      }
      write(tensor, first, row_.data(), at.kept_width);
    }
}

void Recorder::write(size_t tensor, int64_t first, const float* values, int64_t n) {
  if (memory_[tensor] != nullptr)
    std::copy_n(values, n, memory_[tensor] + first);
  else
    sink_->write(tensor, first, values, n);
}

bool Recorder::needs_one_pass() const {
  return std::any_of(captures_.begin(), captures_.end(), [](const Capture& capture) {
    return capture.place.point == Point::attn_scores || capture.place.point == Point::attn_scores_raw;
  });
}

bool Recorder::needs_every_logit() const {
  return std::any_of(captures_.begin(), captures_.end(), [](const Capture& capture) {
    return capture.place.point == Point::logits ||
           capture.place.point >= norm_point(NormSite::ln_final, NormStage::mean);
  });
}

}  // namespace liuli
