// One run's data for the tour: which values a page needs, in the order of its chapters.
#include "liuli/tour.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "engine/engine_parts.h"
#include "report/tour.h"
#include "trace/lens.h"
#include "trace/point_selection.h"

namespace liuli {
namespace {

using Json = nlohmann::ordered_json;
using Tensors = std::map<std::string, TracedTensor>;

constexpr int kLensCandidates = 5, kTopLogprobs = 8;
constexpr int kMostLayers = 5;        // more make a page heavier, not clearer
constexpr int kExplainedNumbers = 4;  // per point of a layer that is shown in full
constexpr int kExplainedTerms = 10;
constexpr int kLoudestNeurons = 8;
constexpr int64_t kRouterBytes = 400'000;

// The norms of one layer: their weights' names without "blocks.N.".
constexpr const char* kLayerNorms[] = {"ln1",         "ln1_post",    "ln2",         "ln2_post",
                                       "attn.q_norm", "attn.k_norm", "attn.kv_norm"};
// Products with a matrix: too many operands for a page, so some of their numbers come explained.
constexpr const char* kProducts[] = {
    "attn.q_latent", "attn.kv_latent",    "attn.q",         "attn.k",
    "attn.v",        "attn.out_proj",     "mlp.pre",        "mlp.pre_linear",
    "mlp.out",       "mlp.router_logits", "mlp.shared.pre", "mlp.shared.pre_linear",
    "mlp.shared_out"};

bool is_of_one_expert(const Place& place) { return place.expert >= 0; }

// Values, weights and results of one run, as they are collected.
class Collector {
 public:
  Collector(Engine& engine, const std::vector<int>& ids, const TourSettings& settings)
      : engine_(engine), config_(engine.config()), ids_(ids), settings_(settings), layers_(chosen_layers()) {}

  Json collect() {
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

 private:
  int64_t n_tokens() const { return static_cast<int64_t>(ids_.size()); }
  int last_token() const { return static_cast<int>(ids_.size()) - 1; }
  void progress(int done) const {
    if (settings_.on_progress) settings_.on_progress(done, 4);
  }
  static std::string at(int64_t layer, const std::string& name) {
    return fmt::format("blocks.{}.{}", layer, name);
  }

  // ---- which layers ----
  std::vector<std::string> points_of_layer(int64_t layer) const {
    std::vector<std::string> names;
    for (const Place& place : all_places(config_))
      if (place.layer == layer && !is_of_one_expert(place)) names.push_back(place.name());
    return names;
  }

  std::vector<int> chosen_layers() const {
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

  // ---- what the page says above everything ----
  Json token_json(int id) const { return {{"id", id}, {"text", engine_.token_text(id)}}; }

  void heading() {
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

  void ropes() {
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

  // ---- values at points ----
  Tensors trace(const std::vector<std::string>& names) const {
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
  std::vector<std::string> wanted_points() const {
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
  bool is_chosen(int layer) const {
    return std::find(layers_.begin(), layers_.end(), layer) != layers_.end();
  }

  void trace_values() {
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
  void loudest_neurons(int layer, const TracedTensor& post) {
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

  void norms(const Tensors& traced, const std::string& name) {
    Json rows = Json::array();
    for (int64_t layer = 0; layer < config_.n_layers; layer++) {
      const auto found = traced.find(at(layer, name));
      if (found == traced.end()) return;
      rows.push_back(row_norms(found->second));
    }
    out_["norms"][name] = std::move(rows);
  }

  // The outputs of the experts that the last token goes through.
  void experts(const Tensors& traced) {
    std::vector<std::string> names;
    for (const int layer : layers_) {
      const auto chosen = traced.find(at(layer, "mlp.expert_ids"));
      if (chosen == traced.end()) continue;
      const int64_t n = chosen->second.shape[1];
      for (int64_t i = 0; i < n; i++) {
        const auto expert =
            static_cast<int>(chosen->second.values[static_cast<size_t>(last_token() * n + i)]);
        for (const char* value : {"pre", "pre_linear", "post", "out"})
          names.push_back(at(layer, fmt::format("mlp.experts.{}.{}", expert, value)));
      }
    }
    if (names.empty()) return;
    for (const auto& [name, tensor] : trace(names)) values_.add(tensor);
  }

  // ---- weights ----
  void weights() {
    const Model& model = *engine_.parts().model;
    rows("embed.weight", model.token_embedding, ids_);
    std::vector<int> positions(ids_.size());
    for (size_t i = 0; i < positions.size(); i++) positions[i] = static_cast<int>(i);
    rows("pos_embed.weight", model.position_embedding, positions);
    std::vector<int> segments = settings_.beside.token_types;
    segments.resize(ids_.size());
    rows("type_embed.weight", model.token_types, segments);
    const std::vector<WeightInfo> all = engine_.weights();
    std::set<std::string> wanted;
    for (const char* site : {"embed_ln", "ln_final"}) want_norm(wanted, site);
    for (int64_t layer = 0; layer < config_.n_layers; layer++)
      for (const char* norm : kLayerNorms) want_norm(wanted, at(layer, norm));
    for (const int layer : layers_) {
      wanted.insert(at(layer, "mlp.router.weight"));
      wanted.insert(at(layer, "mlp.router.choice_bias"));
    }
    for (const WeightInfo& info : all) {
      int64_t bytes = 4;
      for (const int64_t n : info.shape) bytes *= n;
      if (wanted.count(info.name) == 0 || bytes > kRouterBytes) continue;
      weights_.add({info.name, info.shape, engine_.weight(info.name).values});
    }
    out_["types"] = Json::object();
    for (const WeightInfo& info : all)
      if (info.shape.size() == 2 && info.name.find(".experts.") == std::string::npos)
        out_["types"][info.name] = {{"type", info.type}, {"shape", info.shape}};
  }

  static void want_norm(std::set<std::string>& wanted, const std::string& site) {
    wanted.insert(site + ".weight");
    wanted.insert(site + ".bias");
  }

  // Some rows of a table that is too large for a page; "rows" in the data says which.
  void rows(const std::string& name, const Matrix& matrix, const std::vector<int>& which) {
    if (matrix.empty()) return;
    TracedTensor part{name, {static_cast<int64_t>(which.size()), matrix.d_in()}, {}};
    part.values.resize(which.size() * static_cast<size_t>(matrix.d_in()));
    std::vector<uint8_t> stored;
    for (size_t i = 0; i < which.size(); i++)
      matrix.decode_row(which[i], part.values.data() + i * static_cast<size_t>(matrix.d_in()), stored);
    weights_.add(part);
    out_["rows"][name] = which;
  }

  // ---- the storeys' own guesses ----
  void lens() {
    out_["lens"] = Json::array();
    for (const TracedTensor& stream : streams_) {
      std::vector<std::vector<float>> rows;
      const int64_t d = stream.shape[1];
      for (int64_t i = 0; i < stream.shape[0]; i++)
        rows.emplace_back(stream.values.begin() + i * d, stream.values.begin() + (i + 1) * d);
      const Rows logits =
          lens_logits(*engine_.parts().model, *engine_.parts().runner, rows, engine_.parts().classes.prompt);
      Json layer = Json::array();
      for (int64_t i = 0; i < logits.n; i++)
        layer.push_back(best(logits.row(i), logits.width, kLensCandidates));
      out_["lens"].push_back(std::move(layer));
      if (&stream == &streams_.back()) keep_logits(logits.row(logits.n - 1), logits.width);
    }
  }

  std::vector<int> best_ids(const float* row, int64_t n, int count) const {
    std::vector<int> ids(static_cast<size_t>(std::min<int64_t>(n, engine_.vocab_size())));
    for (size_t i = 0; i < ids.size(); i++) ids[i] = static_cast<int>(i);
    const auto middle = ids.begin() + std::min<ptrdiff_t>(count, static_cast<ptrdiff_t>(ids.size()));
    std::partial_sort(ids.begin(), middle, ids.end(),
                      [row](int a, int b) { return row[a] > row[b] || (row[a] == row[b] && a < b); });
    return {ids.begin(), middle};
  }

  Json best(const float* row, int64_t n, int count) const {
    const int64_t usable = std::min<int64_t>(n, engine_.vocab_size());
    const double lse = static_cast<double>(kernels::best_kernels().rows.log_sum_exp(row, usable));
    Json list = Json::array();
    for (const int id : best_ids(row, n, count)) {
      const auto logit = static_cast<double>(row[id]);
      list.push_back(
          {{"id", id}, {"text", engine_.token_text(id)}, {"logit", logit}, {"p", std::exp(logit - lse)}});
    }
    return list;
  }

  // Of the last position: it is what the first new token is drawn from.
  void keep_logits(const float* row, int64_t n) {
    const int64_t usable = std::min<int64_t>(n, engine_.vocab_size());
    values_.add({"logits", {1, usable}, {row, row + usable}});
    out_["candidates"] = best(row, n, settings_.n_candidates);
    const std::vector<int> ids = best_ids(row, n, settings_.n_candidates);
    rows("unembed.weight", engine_.parts().model->output(), ids);
  }

  // ---- what comes next ----
  void continuation() {
    GenerateSettings settings;
    settings.max_tokens = settings_.n_generate;
    settings.top_logprobs = kTopLogprobs;
    const int64_t context = std::min(config_.max_seq_len, n_tokens() + settings_.n_generate + 1);
    Session session(engine_, static_cast<int>(context));
    const GenerateResult result = session.generate(ids_, settings);
    out_["generated"] = Json::array();
    for (const GeneratedToken& token : result.tokens) {
      if (token.id < 0) continue;
      Json top = Json::array();
      for (const TokenLogprob& other : token.top)
        top.push_back({{"id", other.id}, {"text", engine_.token_text(other.id)}, {"logprob", other.logprob}});
      out_["generated"].push_back({{"id", token.id},
                                   {"text", engine_.token_text(token.id)},
                                   {"logprob", token.logprob},
                                   {"top", std::move(top)}});
    }
    out_["stop_reason"] = to_string(result.reason);
    out_["cache_bytes_per_token"] = engine_.plan().cache_bytes_per_token;
  }

  // A model without logits ends in one vector for its text.
  void text_vector() {
    const std::vector<int> text[] = {ids_};
    const EmbedPlan plan = engine_.embed_plan();
    Embedding vector = std::move(engine_.embed_ids(text).front());
    out_["embedding"] = {{"pooling", to_string(plan.pooling)}, {"normalise", plan.normalise}};
    values_.add({"embedding", {static_cast<int64_t>(vector.values.size())}, std::move(vector.values)});
  }

  // ---- numbers that matrices made ----
  std::vector<std::string> explained_numbers() const {
    std::vector<std::string> numbers = loudest_;
    const std::vector<Place> places = all_places(config_);
    for (const Place& place : places) {
      if (place.layer < 0 || !is_chosen(place.layer) || is_of_one_expert(place)) continue;
      const std::string name = place.name();
      const bool product = std::any_of(std::begin(kProducts), std::end(kProducts),
                                       [&](const char* p) { return name == at(place.layer, p); });
      if (!product) continue;
      const std::vector<int64_t> shape = place_shape(config_, place, {n_tokens(), 0});
      for (int64_t i = 0; i < std::min<int64_t>(shape.back(), kExplainedNumbers); i++)
        numbers.push_back(fmt::format("{}[{},{}{}]", name, last_token(), shape.size() == 3 ? "0," : "", i));
    }
    return numbers;
  }

  void explanations() {
    ExplainNumberSettings settings;
    settings.beside = settings_.beside;
    settings.max_terms = kExplainedTerms;
    out_["explanations"] = Json::object();
    for (const NumberExplanation& explanation : engine_.explain(ids_, explained_numbers(), settings)) {
      Json json = explanation;
      for (Json& term : json["terms"])
        for (Json& operand : term["operands"])
          if (operand.contains("stored")) operand["stored"].erase("bytes");  // long, and of little use by eye
      out_["explanations"][explanation.name] = std::move(json);
    }
  }

  Engine& engine_;
  const ModelConfig& config_;
  const std::vector<int>& ids_;
  const TourSettings& settings_;
  const std::vector<int> layers_;
  std::vector<TracedTensor> streams_;  ///< resid_post of every layer
  std::vector<std::string> loudest_;   ///< numbers of mlp.pre and mlp.pre_linear
  TensorPack values_, weights_;
  Json out_;
};

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
  return Collector(engine, ids, settings).collect();
}

}  // namespace liuli
