#include "trace/hooks.h"

#include <fmt/format.h>

#include "liuli/error.h"
#include "trace/point_selection.h"

namespace liuli {

HookProbe::HookProbe(const ModelConfig& config, const std::vector<Hook>& hooks, Probe* next)
    : config_(config), hooks_(hooks), next_(next) {
  for (size_t i = 0; i < hooks_.size(); i++)
    for (const Place& place : select_places(config, hooks_[i].points)) {
      Target& target = targets_[key(place)];
      target.name = place.name();
      if (target.hooks.empty() || target.hooks.back() != i) target.hooks.push_back(i);
    }
}

uint64_t HookProbe::key(const Place& place) {
  return (static_cast<uint64_t>(place.expert + 1) << 40) | (static_cast<uint64_t>(place.layer + 1) << 16) |
         (static_cast<uint64_t>(place.stack) << 8) | static_cast<uint64_t>(place.point);
}

bool HookProbe::wants(const Place& place) const {
  return targets_.count(key(place)) != 0 || (next_ != nullptr && next_->wants(place));
}

bool HookProbe::may_change(const Place& place) const {
  return targets_.count(key(place)) != 0 || (next_ != nullptr && next_->may_change(place));
}

void HookProbe::see(const ProbedValue& value) {
  if (const auto it = targets_.find(key(value.place)); it != targets_.end()) {
    // The shape of the rows at hand: the table's axes, with the pass's counts where they count tokens.
    const bool by_head = value.head_stride > 0;
    std::vector<int64_t> shape = place_shape(config_, value.place, {value.rows.n, value.rows.n}), strides;
    if (by_head) {
      shape = {value.heads, value.rows.n, value.rows.width};
      strides = {value.head_stride, value.rows.stride, 1};
    } else {
      shape[0] = value.rows.n;
      strides.assign(shape.size(), 1);
      for (size_t i = shape.size() - 1; i-- > 1;) strides[i] = strides[i + 1] * shape[i + 1];
      strides[0] = value.rows.stride;
    }
    for (const size_t hook : it->second.hooks) {
      hooks_[hook].call(
          {it->second.name, value.rows.data, shape, strides, value.first_position, value.row_tokens});
      fired_.insert(hook);
    }
  }
  if (next_ != nullptr && next_->wants(value.place)) next_->see(value);
}

void HookProbe::require_all_fired() const {
  for (size_t i = 0; i < hooks_.size(); i++) {
    if (fired_.count(i) != 0) continue;
    std::string points;
    for (const std::string& point : hooks_[i].points) points.append(points.empty() ? "" : ", ").append(point);
    throw Error(ErrorCode::not_found,
                fmt::format("a change at {} never took place: no value passed there in this run", points));
  }
}

}  // namespace liuli
