#include "engine/edit_places.h"

#include <algorithm>

#include <fmt/format.h>

#include "liuli/error.h"
#include "trace/point_selection.h"

namespace liuli {
namespace {

[[noreturn]] void bad(const std::string& message) { throw Error(ErrorCode::invalid_argument, message); }

const char* axis_word(Axis axis) {
  switch (axis) {
    case Axis::token:
      return "token";
    case Axis::key:
      return "key";
    case Axis::head:
    case Axis::kv_head:
      return "head";
    case Axis::expert:
    case Axis::active_expert:
      return "expert";
    default:
      return "coordinate";
  }
}

bool is_score(Point point) { return point >= Point::attn_scores_raw && point <= Point::attn_pattern; }

// Scores of keys that the mask hides anyway: whatever is written there, nobody reads it.
void require_visible(const ModelConfig& config, const EditTarget& target) {
  const bool masked =
      config.causal && target.place.stack != Stack::encoder && target.place.stack != Stack::cross;
  if (!masked || !is_score(target.place.point) || target.choice[1].last() >= target.choice[2].first()) return;
  bad(fmt::format("{}: the mask hides key {} from token {}; a change there goes nowhere", target.place.name(),
                  target.choice[2].first(), target.choice[1].last()));
}

void require_changeable(const ModelConfig& config, const Place& place) {
  const bool shown = config.is_latent() && (place.point == Point::attn_k || place.point == Point::attn_v ||
                                            place.point == Point::attn_rot_k);
  if (!shown && place.point != Point::pooler) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("{} cannot be changed: it is formed for show, nothing is computed "
                          "from it",
                          place.name()));
}

}  // namespace

AxisChoice::AxisChoice(const std::string& what, std::span<const IndexRange> ranges, int64_t size,
                       int64_t from_end)
    : size_(size) {
  for (const IndexRange& range : ranges) {
    const auto resolve = [&](int64_t i) { return i < 0 ? i + from_end : i; };
    const bool open = range.end == IndexRange::kEnd;
    const bool last = open && range.begin == -1;
    if (open && range.begin == 0) {  // ":"
      spans_.clear();
      return;
    }
    const int64_t begin = resolve(range.begin);
    const int64_t end = last ? begin + 1 : open ? size : range.end <= 0 ? range.end + from_end : range.end;
    if (begin < 0 || begin >= end || end > size)
      bad(fmt::format("{} {}{} is out of range: there are {}", what, range.begin,
                      open || end == begin + 1 ? "" : fmt::format(":{}", range.end), size));
    spans_.push_back({begin, end});
  }
}

bool AxisChoice::has(int64_t index) const {
  return spans_.empty() || std::any_of(spans_.begin(), spans_.end(),
                                       [&](const Span& s) { return index >= s.begin && index < s.end; });
}

int64_t AxisChoice::first() const {
  int64_t first = spans_.empty() ? 0 : size_;
  for (const Span& span : spans_) first = std::min(first, span.begin);
  return first;
}

int64_t AxisChoice::last() const {
  int64_t last = spans_.empty() ? size_ - 1 : 0;
  for (const Span& span : spans_) last = std::max(last, span.end - 1);
  return last;
}

std::vector<EditTarget> find_targets(const ModelConfig& config, const Edit& edit, RunLength length) {
  std::vector<EditTarget> targets;
  for (Place place : select_places(config, {edit.at})) {
    if (edit.action == EditAction::knock_out) {
      if (!is_score(place.point))
        bad(fmt::format("{}: knock_out takes an edge of attention away; it acts on attn.attn_scores",
                        place.name()));
      if (place.point == Point::attn_pattern) place.point = Point::attn_attn_scores;
    }
    require_changeable(config, place);
    EditTarget target{place, point_info(place.point).shape, {}};
    if (edit.index.size() > target.axes.size())
      bad(fmt::format("{} has {} indices, the edit names {}", place.name(), target.axes.size(),
                      edit.index.size()));
    for (size_t i = 0; i < target.axes.size(); i++) {
      const Axis axis = target.axes[i];
      const bool counts = axis == Axis::token || axis == Axis::key;
      const std::span<const IndexRange> ranges =
          i < edit.index.size() ? std::span<const IndexRange>(edit.index[i]) : std::span<const IndexRange>();
      const int64_t size = counts ? length.total : axis_size(config, axis);
      target.choice.emplace_back(fmt::format("{}: {}", place.name(), axis_word(axis)), ranges, size,
                                 counts ? length.prompt : size);
    }
    require_visible(config, target);
    targets.push_back(std::move(target));
  }
  return targets;
}

}  // namespace liuli
