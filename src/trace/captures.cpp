#include "trace/captures.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "liuli/error.h"
#include "trace/point_selection.h"
#include "trace/slices.h"

namespace liuli {
namespace {

std::vector<int64_t> all_of(int64_t size) {
  std::vector<int64_t> indices(static_cast<size_t>(size));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

Capture whole(const ModelConfig& config, const Place& place, TokenCounts counts) {
  Capture capture{place, place.name(), place_shape(config, place, counts), {}, {}};
  capture.shape = capture.full_shape;
  for (const int64_t size : capture.full_shape) capture.kept.push_back(all_of(size));
  return capture;
}

// "[:, 2, :5]" without its brackets, axis by axis.
void cut_by_brackets(Capture& capture, const std::string& inside) {
  const auto axes = point_info(capture.place.point).shape;
  const std::vector<std::string> pieces = split_outside_brackets(inside);
  if (pieces.size() > axes.size())
    throw Error(ErrorCode::invalid_argument, fmt::format("{}[{}] has {} indices, the value has {}",
                                                         capture.name, inside, pieces.size(), axes.size()));
  std::vector<int64_t> shape;
  std::string slice;
  for (size_t axis = 0; axis < axes.size(); axis++) {
    const std::string piece = axis < pieces.size() ? pieces[axis] : ":";
    const auto what = fmt::format("{} of {}", axis_name(axes[axis]), capture.name);
    capture.kept[axis] = parse_slice(piece, capture.full_shape[axis], what);
    if (piece.find(':') != std::string::npos)
      shape.push_back(static_cast<int64_t>(capture.kept[axis].size()));
    if (axis < pieces.size()) slice.append(slice.empty() ? "[" : ",").append(piece);
  }
  capture.shape = shape;
  capture.name += slice + "]";
}

// A query head's keys and values are those of its group.
std::vector<int64_t> kv_heads_of(const std::vector<int64_t>& heads, const ModelConfig& config) {
  std::set<int64_t> kv_heads;
  for (const int64_t head : heads) kv_heads.insert(head / (config.n_heads / config.n_kv_heads));
  return {kv_heads.begin(), kv_heads.end()};
}

// --tokens and --heads: on every axis of that kind. Rows of a source text are not of the prompt's tokens.
void cut_by_options(Capture& capture, const TraceSlices& slices, const ModelConfig& config) {
  const auto axes = point_info(capture.place.point).shape;
  const bool of_source = capture.place.stack == Stack::encoder || capture.place.stack == Stack::cross;
  for (size_t axis = 0; axis < axes.size(); axis++) {
    std::vector<int64_t>& kept = capture.kept[axis];
    if (axes[axis] == Axis::token && !slices.tokens.empty() && !of_source)
      kept = parse_slice(slices.tokens, capture.full_shape[axis], "the prompt's tokens");
    else if (axes[axis] == Axis::head && !slices.heads.empty())
      kept = parse_slice(slices.heads, capture.full_shape[axis], "the heads");
    else if (axes[axis] == Axis::kv_head && !slices.heads.empty())
      kept = kv_heads_of(parse_slice(slices.heads, config.n_heads, "the heads"), config);
    capture.shape[axis] = static_cast<int64_t>(kept.size());
  }
}

std::vector<Place> within_layers(std::vector<Place> places, const TraceSlices& slices,
                                 const ModelConfig& config) {
  if (slices.layers.empty()) return places;
  const auto layers = parse_slice(slices.layers, config.n_layers, "the layers");
  const std::string first = places.front().name();
  std::erase_if(places, [&](const Place& place) {
    return place.layer >= 0 && !std::binary_search(layers.begin(), layers.end(), place.layer);
  });
  if (places.empty())
    throw Error(ErrorCode::not_found,
                fmt::format("{} is not in the layers {}, nor is any other point that was asked for", first,
                            slices.layers));
  return places;
}

}  // namespace

int64_t Capture::elements() const {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

std::vector<Capture> whole_captures(const ModelConfig& config, const std::vector<Place>& places,
                                    TokenCounts counts) {
  std::vector<Capture> captures;
  for (const Place& place : places) captures.push_back(whole(config, place, counts));
  return captures;
}

std::vector<Capture> select_captures(const ModelConfig& config, const std::vector<std::string>& patterns,
                                     const TraceSlices& slices, TokenCounts counts) {
  std::vector<std::string> plain;
  for (const std::string& pattern : patterns)
    if (pattern.find('[') == std::string::npos) plain.push_back(pattern);
  std::vector<Capture> captures;
  if (!plain.empty())
    for (const Place& place : within_layers(select_places(config, plain), slices, config)) {
      captures.push_back(whole(config, place, counts));
      cut_by_options(captures.back(), slices, config);
    }
  std::set<std::string> names;
  for (const std::string& pattern : patterns) {
    const size_t open = pattern.find('[');
    if (open == std::string::npos) continue;
    if (pattern.back() != ']')
      throw Error(ErrorCode::invalid_argument, fmt::format("\"{}\": the slice has no end ]", pattern));
    const std::string inside = pattern.substr(open + 1, pattern.size() - open - 2);
    for (const Place& place :
         within_layers(select_places(config, {pattern.substr(0, open)}), slices, config)) {
      Capture capture = whole(config, place, counts);
      cut_by_brackets(capture, inside);
      if (names.insert(capture.name).second) captures.push_back(std::move(capture));
    }
  }
  return captures;
}

}  // namespace liuli
