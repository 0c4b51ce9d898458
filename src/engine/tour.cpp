// One run's data for the tour: its heading and the values at points, in the order of the page's chapters.
#include "liuli/tour.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "engine/tour_collector.h"

namespace liuli {
namespace {
constexpr int kMostLayers = 5;  // more make a page heavier, not clearer
constexpr int kLoudestNeurons = 8;
}  // namespace

TourCollector::Json TourCollector::collect() {
  progress(0);
  heading();
  trace_values();
  progress(1);
  weights();
  if (config_.has_output) {
    lens();
    progress(2);
    continuation();
  } else {
    text_vector();
  }
  progress(3);
  explanations();
  progress(4);
  out_["values"] = values_.take();
  out_["weights"] = weights_.take();
  return std::move(out_);
}

void TourCollector::progress(int done) const {
  if (settings_.on_progress) settings_.on_progress(done, 4);
}

std::vector<std::string> TourCollector::points_of_layer(int64_t layer) const {
  std::vector<std::string> names;
  for (const Place& place : all_places(config_))
    if (place.layer == layer && !is_of_one_expert(place)) names.push_back(place.name());
  return names;
}

std::vector<int> TourCollector::chosen_layers() const {
  const auto n_layers = static_cast<int>(config_.n_layers);
  std::set<int> chosen;
  for (const int layer : settings_.layers) {
    if (layer < 0 || layer >= n_layers)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("layer {}: the model has layers 0 … {}", layer, n_layers - 1));
    chosen.insert(layer);
  }
  if (chosen.empty()) {
    const int64_t bytes = engine_.trace_bytes(n_tokens(), points_of_layer(n_layers - 1)) * 4 / 3;
    const int fitting = static_cast<int>(settings_.max_bytes / std::max<int64_t>(bytes, 1));
    const int n = std::clamp(fitting, 1, std::min(kMostLayers, n_layers));
    for (int i = 0; i < n; i++) chosen.insert(n == 1 ? 0 : i * (n_layers - 1) / (n - 1));
  }
  return {chosen.begin(), chosen.end()};
}

TourCollector::Json TourCollector::token_json(int id) const {
  return {{"id", id}, {"text", engine_.token_text(id)}};
}

void TourCollector::heading() {
  out_ = {{"schema", "liuli.tour"},     {"version", kTourSchema},
          {"model", settings_.model},   {"class", engine_.plan().prompt_class},
          {"isa", active_isa()},        {"language", settings_.language == Language::zh ? "zh" : "en"},
          {"digits", settings_.digits}, {"config", tour_config(config_)},
          {"detail", layers_}};
  out_["tokens"] = Json::array();
  for (const int id : ids_) out_["tokens"].push_back(token_json(id));
  ropes();
  out_["points"] = Json::object();
  for (const PointDescription& point : list_points()) out_["points"][point.name] = point.formula;
}

void TourCollector::ropes() {
  const auto& frequencies = engine_.parts().model->rope_frequencies;
  out_["ropes"] = Json::array();
  for (size_t i = 0; i < frequencies.size(); i++) {
    const RopeConfig& rope = config_.ropes[i];
    out_["ropes"].push_back({{"theta", rope.theta},
                             {"dim", rope.dim},
                             {"scaled", rope.scaling != RopeScaling::none},
                             {"attention_factor", rope.attention_factor},
                             {"frequencies", frequencies[i]}});
  }
}

TourCollector::Tensors TourCollector::trace(const std::vector<std::string>& names) const {
  TraceSettings settings;
  settings.beside = settings_.beside;
  Tensors tensors;
  for (TracedTensor& tensor : engine_.trace(ids_, names, settings)) {
    std::string name = tensor.name;
    tensors.emplace(std::move(name), std::move(tensor));
  }
  return tensors;
}

// All layers show where the stream is and who looks at whom; chosen ones show everything.
std::vector<std::string> TourCollector::wanted_points() const {
  constexpr const char* kEverywhere[] = {
      "resid_pre", "resid_mid", "resid_post",     "normalized_resid_post", "attn.pattern",
      "attn_out",  "mlp_out",   "mlp.expert_ids", "mlp.expert_weights"};
  std::set<std::string> everywhere(std::begin(kEverywhere), std::end(kEverywhere));
  std::vector<std::string> names;
  for (const Place& place : all_places(config_)) {
    if (is_of_one_expert(place) || place.point == Point::logits) continue;
    const std::string name = place.name();
    const std::string in_block = place.layer < 0 ? "" : name.substr(at(place.layer, "").size());
    if (place.layer < 0 || is_chosen(place.layer) || everywhere.count(in_block) > 0) names.push_back(name);
  }
  return names;
}

void TourCollector::trace_values() {
  const Tensors traced = trace(wanted_points());
  out_["norms"] = Json::object();
  for (const char* name :
       {"resid_pre", "resid_mid", "resid_post", "normalized_resid_post", "attn_out", "mlp_out"})
    norms(traced, name);
  constexpr const char* kOnlyNorms[] = {"resid_mid", "attn_out", "mlp_out"};
  for (const Place& place : all_places(config_)) {
    const auto found = traced.find(place.name());
    if (found == traced.end()) continue;
    const bool only_norm = !is_chosen(place.layer) && place.layer >= 0 &&
                           std::any_of(std::begin(kOnlyNorms), std::end(kOnlyNorms), [&](const char* name) {
                             return found->first == at(place.layer, name);
                           });
    if (!only_norm) values_.add(found->second);
    if (place.point == Point::resid_post) streams_.push_back(found->second);
    if (place.point == Point::mlp_post) loudest_neurons(place.layer, found->second);
  }
  experts(traced);
}

// Those the page shows first: what came into them is explained as well.
void TourCollector::loudest_neurons(int layer, const TracedTensor& post) {
  const int64_t width = post.shape[1];
  const float* row = post.values.data() + last_token() * width;
  std::vector<int> neurons(static_cast<size_t>(width));
  std::iota(neurons.begin(), neurons.end(), 0);
  const auto middle = neurons.begin() + std::min<ptrdiff_t>(kLoudestNeurons, static_cast<ptrdiff_t>(width));
  std::partial_sort(neurons.begin(), middle, neurons.end(),
                    [row](int a, int b) { return std::fabs(row[a]) > std::fabs(row[b]); });
  for (const char* name : {"mlp.pre", "mlp.pre_linear"}) {
    if (config_.gated_ffn || std::string(name) == "mlp.pre")
      for (auto i = neurons.begin(); i != middle; i++)
        loudest_.push_back(fmt::format("{}[{},{}]", at(layer, name), last_token(), *i));
  }
}

void TourCollector::norms(const Tensors& traced, const std::string& name) {
  Json rows = Json::array();
  for (int64_t layer = 0; layer < config_.n_layers; layer++) {
    const auto found = traced.find(at(layer, name));
    if (found == traced.end()) return;
    rows.push_back(row_norms(found->second));
  }
  out_["norms"][name] = std::move(rows);
}

// The outputs of the experts that the last token goes through.
void TourCollector::experts(const Tensors& traced) {
  std::vector<std::string> names;
  for (const int layer : layers_) {
    const auto chosen = traced.find(at(layer, "mlp.expert_ids"));
    if (chosen == traced.end()) continue;
    const int64_t n = chosen->second.shape[1];
    for (int64_t i = 0; i < n; i++) {
      const auto expert = static_cast<int>(chosen->second.values[static_cast<size_t>(last_token() * n + i)]);
      for (const char* value : {"pre", "pre_linear", "post", "out"})
        names.push_back(at(layer, fmt::format("mlp.experts.{}.{}", expert, value)));
    }
  }
  if (names.empty()) return;
  for (const auto& [name, tensor] : trace(names)) values_.add(tensor);
}

namespace {

void check(const Engine& engine, const std::vector<int>& ids) {
  if (engine.config().is_encoder_decoder())
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{}: a tour walks one tower of blocks, an encoder-decoder has two", engine.parts().path));
  if (ids.empty() || ids.size() > kTourMaxTokens)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the prompt has {} tokens, a tour takes 1…{}", ids.size(), kTourMaxTokens));
}

}  // namespace

nlohmann::ordered_json collect_tour(Engine& engine, const std::vector<int>& ids,
                                    const TourSettings& settings) {
  check(engine, ids);
  return TourCollector(engine, ids, settings).collect();
}

}  // namespace liuli
