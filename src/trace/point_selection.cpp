#include "trace/point_selection.h"

#include <algorithm>

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

std::string nearest_names(const std::vector<PointPlace>& places, const std::string& pattern) {
  std::vector<std::pair<size_t, std::string>> scored;
  for (const PointPlace& place : places)
    scored.emplace_back(edit_distance(pattern, place.name()), place.name());
  std::stable_sort(scored.begin(), scored.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(3, scored.size()); i++) names += (i ? ", " : "") + scored[i].second;
  return names;
}

bool has_point(const ModelConfig& c, Point point, int layer) {
  const int offset = static_cast<int>(point) - static_cast<int>(Point::norm_first);
  if (offset >= 0) {
    const auto site = static_cast<NormSite>(offset / kNormStages);
    if (site == NormSite::ln_final) return c.final_norm != NormKind::none;
    const LayerPlan& plan = c.layers[static_cast<size_t>(layer)];
    switch (site) {
      case NormSite::ln1:
        return plan.attn_norm.before != NormKind::none;
      case NormSite::ln1_post:
        return plan.attn_norm.on_output != NormKind::none;
      case NormSite::ln2:
        return plan.ffn_norm.before != NormKind::none;
      default:
        return plan.ffn_norm.on_output != NormKind::none;
    }
  }
  switch (point) {
    case Point::attn_q_normed:
    case Point::attn_k_normed:
      return c.qk_norm != QkNorm::none;
    case Point::mlp_pre_linear:
      return c.gated_ffn;
    case Point::pos_embed:
      return c.learned_positions;
    default:
      return true;
  }
}

// The order a token meets the points of one block.
std::vector<Point> block_order() {
  std::vector<Point> order = {Point::resid_pre};
  auto norm = [&](NormSite site) {
    for (int stage = 0; stage < kNormStages; stage++)
      order.push_back(norm_point(site, static_cast<NormStage>(stage)));
  };
  norm(NormSite::ln1);
  for (int p = static_cast<int>(Point::attn_q); p <= static_cast<int>(Point::attn_out_proj); p++)
    order.push_back(static_cast<Point>(p));
  norm(NormSite::ln1_post);
  order.insert(order.end(), {Point::attn_out, Point::resid_mid});
  norm(NormSite::ln2);
  order.insert(order.end(), {Point::mlp_pre, Point::mlp_pre_linear, Point::mlp_post, Point::mlp_out_raw});
  norm(NormSite::ln2_post);
  order.insert(order.end(), {Point::mlp_out, Point::resid_post});
  return order;
}

std::vector<Point> final_order() {
  std::vector<Point> order;
  for (int stage = 0; stage < kNormStages; stage++)
    order.push_back(norm_point(NormSite::ln_final, static_cast<NormStage>(stage)));
  order.push_back(Point::logits);
  return order;
}

const char* axis_name(Axis axis) {
  switch (axis) {
    case Axis::token:
      return "n_tokens";
    case Axis::key:
      return "n_tokens";
    case Axis::head:
      return "n_heads";
    case Axis::kv_head:
      return "n_kv_heads";
    case Axis::head_dim:
      return "head_dim";
    case Axis::d_model:
      return "d_model";
    case Axis::d_ff:
      return "d_ff";
    case Axis::vocab:
      return "vocab_size";
    case Axis::one:
      return "1";
  }
  return "?";
}

int64_t axis_size(const ModelConfig& c, Axis axis, int64_t n_tokens) {
  switch (axis) {
    case Axis::token:
    case Axis::key:
      return n_tokens;
    case Axis::head:
      return c.n_heads;
    case Axis::kv_head:
      return c.n_kv_heads;
    case Axis::head_dim:
      return c.head_dim;
    case Axis::d_model:
      return c.d_model;
    case Axis::d_ff:
      return c.d_ff;
    case Axis::vocab:
      return c.vocab_size;
    case Axis::one:
      return 1;
  }
  return 0;
}

}  // namespace

std::vector<PointPlace> all_places(const ModelConfig& config) {
  std::vector<PointPlace> places = {{Point::embed, -1}};
  if (has_point(config, Point::pos_embed, -1)) places.push_back({Point::pos_embed, -1});
  const std::vector<Point> order = block_order();
  for (int layer = 0; layer < config.n_layers; layer++)
    for (Point point : order)
      if (has_point(config, point, layer)) places.push_back({point, layer});
  for (Point point : final_order())
    if (has_point(config, point, -1)) places.push_back({point, -1});
  return places;
}

std::vector<PointPlace> select_places(const ModelConfig& config, const std::vector<std::string>& patterns) {
  const std::vector<PointPlace> places = all_places(config);
  std::vector<bool> chosen(places.size());
  for (const std::string& pattern : patterns) {
    bool found = false;
    for (size_t i = 0; i < places.size(); i++) {
      const PointInfo& info = point_info(places[i].point);
      const std::string prefix = info.in_block ? "blocks." + std::to_string(places[i].layer) + "." : "";
      if (matches(pattern, prefix + info.name) ||
          (!info.alias.empty() && matches(pattern, prefix + info.alias)))
        chosen[i] = found = true;
    }
    if (!found)
      throw Error(ErrorCode::not_found, fmt::format("no point of this {} model matches \"{}\"; nearest: {}",
                                                    config.family, pattern, nearest_names(places, pattern)));
  }
  std::vector<PointPlace> selected;
  for (size_t i = 0; i < places.size(); i++)
    if (chosen[i]) selected.push_back(places[i]);
  return selected;
}

std::vector<int64_t> place_shape(const ModelConfig& c, Point point, int64_t n_tokens) {
  std::vector<int64_t> shape;
  for (Axis axis : point_info(point).shape) shape.push_back(axis_size(c, axis, n_tokens));
  return shape;
}

namespace {

// axis_text(axis): how one index of a shape is written.
template <class F>
PointDescription describe(Point point, F&& axis_text) {
  const PointInfo& info = point_info(point);
  const std::string prefix = info.in_block ? "blocks.N." : "";
  std::string shape;
  for (Axis axis : info.shape) shape.append(shape.empty() ? "[" : ", ").append(axis_text(axis));
  return {prefix + info.name, shape.append("]"), info.formula, info.alias.empty() ? "" : prefix + info.alias};
}

std::vector<Point> every_point() {
  std::vector<Point> order = {Point::embed, Point::pos_embed};
  for (Point p : block_order()) order.push_back(p);
  for (Point p : final_order()) order.push_back(p);
  return order;
}

}  // namespace

std::vector<PointDescription> list_points() {
  std::vector<PointDescription> list;
  for (Point point : every_point()) list.push_back(describe(point, axis_name));
  return list;
}

std::vector<PointDescription> list_points(const ModelConfig& config) {
  auto text = [&](Axis axis) {
    const bool counts_tokens = axis == Axis::token || axis == Axis::key;
    return counts_tokens ? std::string(axis_name(axis)) : std::to_string(axis_size(config, axis, 0));
  };
  std::vector<PointDescription> list;
  const std::vector<PointPlace> places = all_places(config);
  for (Point point : every_point())
    if (std::any_of(places.begin(), places.end(), [&](const PointPlace& p) { return p.point == point; }))
      list.push_back(describe(point, text));
  return list;
}

}  // namespace liuli
