#include "trace/point_selection.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "liuli/error.h"
#include "liuli/trace.h"

namespace liuli {
namespace {

// '*' stands for any characters, also none.
bool matches(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      p++;
      t++;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') p++;
  return p == pattern.size();
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); j++) row[j] = j;
  for (size_t i = 1; i <= a.size(); i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); j++) {
      const size_t substitute = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

std::string nearest_names(const std::vector<Place>& places, const std::string& pattern) {
  std::vector<std::pair<size_t, std::string>> scored;
  for (const Place& place : places) scored.emplace_back(edit_distance(pattern, place.name()), place.name());
  std::stable_sort(scored.begin(), scored.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(3, scored.size()); i++) names += (i ? ", " : "") + scored[i].second;
  return names;
}

// The points that the decoder's second attention shares with the first one.
bool in_cross_attention(Point point) {
  switch (point) {
    case Point::attn_q:
    case Point::attn_k:
    case Point::attn_v:
    case Point::attn_scores_raw:
    case Point::attn_scores:
    case Point::attn_attn_scores:
    case Point::attn_pattern:
    case Point::attn_z:
    case Point::attn_out_proj:
      return true;
    default:
      return false;
  }
}

bool of_one_expert(Point point) { return point >= Point::mlp_expert_pre && point <= Point::mlp_expert_out; }

void add_block(const ModelConfig& c, const LayerPlan& plan, int layer, Stack stack,
               std::vector<Place>& places) {
  for (const PointInfo& info : point_table()) {
    if (!info.in_block || !info.exists(c, &plan)) continue;
    if (info.point == Point::cross_attn_out)
      for (const PointInfo& cross : point_table())
        if (in_cross_attention(cross.point)) places.push_back({cross.point, layer, Stack::cross});
    if (of_one_expert(info.point))
      for (int64_t expert = 0; expert < c.experts.n_experts; expert++)
        places.push_back({info.point, layer, stack, static_cast<int>(expert)});
    else
      places.push_back({info.point, layer, stack});
  }
}

// A tower's embedding points stand before the first row of the table that is in a block.
void add_tower(const ModelConfig& c, const std::vector<LayerPlan>& layers, Stack stack,
               std::vector<Place>& places) {
  for (const PointInfo& info : point_table()) {
    if (info.in_block) break;
    if (info.exists(c, nullptr)) places.push_back({info.point, -1, stack});
  }
  for (size_t layer = 0; layer < layers.size(); layer++)
    add_block(c, layers[layer], static_cast<int>(layer), stack, places);
}

// After the last block: the rows outside the blocks that follow them in the table.
void add_output(const ModelConfig& c, std::vector<Place>& places) {
  bool after_blocks = false;
  for (const PointInfo& info : point_table()) {
    after_blocks |= info.in_block;
    if (after_blocks && !info.in_block && info.exists(c, nullptr)) places.push_back({info.point});
  }
}

}  // namespace

std::vector<Place> all_places(const ModelConfig& config) {
  std::vector<Place> places;
  if (config.is_encoder_decoder()) add_tower(config, config.encoder_layers, Stack::encoder, places);
  add_tower(config, config.layers, config.is_encoder_decoder() ? Stack::decoder : Stack::blocks, places);
  add_output(config, places);
  return places;
}

namespace {

// Names are put together once and looked up: Python asks for everything by a thousand names, and a thousand times a thousand
// names took as long as a tenth of the run.
class NamedPlaces {
 public:
  explicit NamedPlaces(const std::vector<Place>& places) {
    for (size_t i = 0; i < places.size(); i++) {
      by_name_.emplace(places[i].name(), i);
      if (std::string alias = places[i].alias(); !alias.empty()) by_name_.emplace(std::move(alias), i);
    }
  }
  /// Notes what matches; false: nothing.
  bool choose(const std::string& pattern, std::vector<bool>& chosen) const {
    bool found = false;
    if (pattern.find('*') == std::string::npos) {
      const auto [first, last] = by_name_.equal_range(pattern);
      for (auto it = first; it != last; ++it) chosen[it->second] = found = true;
      return found;
    }
    for (const auto& [name, place] : by_name_)
      if (matches(pattern, name)) chosen[place] = found = true;
    return found;
  }

 private:
  std::unordered_multimap<std::string, size_t> by_name_;
};

}  // namespace

std::vector<Place> select_places(const ModelConfig& config, const std::vector<std::string>& patterns) {
  const std::vector<Place> places = all_places(config);
  const NamedPlaces named(places);
  std::vector<bool> chosen(places.size());
  for (const std::string& pattern : patterns) {
    if (!named.choose(pattern, chosen))
      throw Error(ErrorCode::not_found, fmt::format("no point of this {} model matches \"{}\"; nearest: {}",
                                                    config.family, pattern, nearest_names(places, pattern)));
  }
  std::vector<Place> selected;
  for (size_t i = 0; i < places.size(); i++)
    if (chosen[i]) selected.push_back(places[i]);
  return selected;
}

namespace {

PointDescription describe(const Place& place, const ModelConfig* config) {
  const PointInfo& info = point_info(place.point);
  std::string shape;
  for (Axis axis : info.shape) {
    const bool counts_tokens = axis == Axis::token || axis == Axis::key;
    const bool known = config != nullptr && !counts_tokens;
    shape.append(shape.empty() ? "[" : ", ");
    shape.append(known ? std::to_string(axis_size(*config, axis)) : axis_name(axis));
  }
  const bool has_alias = !info.alias.empty() && place.stack == Stack::blocks;
  const std::string prefix = info.in_block ? "blocks.N." : "";
  return {place.general_name(), shape.append("]"), info.formula, has_alias ? prefix + info.alias : ""};
}

}  // namespace

std::vector<PointName> list_point_names(const ModelConfig& config) {
  std::vector<PointName> names;
  for (const Place& place : all_places(config)) names.push_back({place.name(), place.alias()});
  return names;
}

std::vector<PointDescription> list_points() {
  std::vector<PointDescription> list;
  for (const PointInfo& info : point_table()) list.push_back(describe({info.point, 0}, nullptr));
  return list;
}

std::vector<PointDescription> list_points(const ModelConfig& config) {
  std::vector<PointDescription> list;
  std::set<std::string> seen;
  for (const Place& place : all_places(config))
    if (seen.insert(place.general_name()).second) list.push_back(describe(place, &config));
  return list;
}

}  // namespace liuli
