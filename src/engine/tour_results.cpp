// A tour's weights and results: γ and β, the lens, what comes next, and how products came about.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/tour_collector.h"
#include "trace/lens.h"

namespace liuli {
namespace {

constexpr int kLensCandidates = 5, kTopLogprobs = 8;
constexpr int kExplainedNumbers = 4;  // per point of a layer that is shown in full
constexpr int kExplainedTerms = 10;
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

}  // namespace

void TourCollector::weights() {
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

void TourCollector::want_norm(std::set<std::string>& wanted, const std::string& site) {
  wanted.insert(site + ".weight");
  wanted.insert(site + ".bias");
}

// Some rows of a table that is too large for a page; "rows" in the data says which.
void TourCollector::rows(const std::string& name, const Matrix& matrix, const std::vector<int>& which) {
  if (matrix.empty()) return;
  TracedTensor part{name, {static_cast<int64_t>(which.size()), matrix.d_in()}, {}};
  part.values.resize(which.size() * static_cast<size_t>(matrix.d_in()));
  std::vector<uint8_t> stored;
  for (size_t i = 0; i < which.size(); i++)
    matrix.decode_row(which[i], part.values.data() + i * static_cast<size_t>(matrix.d_in()), stored);
  weights_.add(part);
  out_["rows"][name] = which;
}

void TourCollector::lens() {
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

std::vector<int> TourCollector::best_ids(const float* row, int64_t n, int count) const {
  std::vector<int> ids(static_cast<size_t>(std::min<int64_t>(n, engine_.vocab_size())));
  for (size_t i = 0; i < ids.size(); i++) ids[i] = static_cast<int>(i);
  const auto middle = ids.begin() + std::min<ptrdiff_t>(count, static_cast<ptrdiff_t>(ids.size()));
  std::partial_sort(ids.begin(), middle, ids.end(),
                    [row](int a, int b) { return row[a] > row[b] || (row[a] == row[b] && a < b); });
  return {ids.begin(), middle};
}

TourCollector::Json TourCollector::best(const float* row, int64_t n, int count) const {
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
void TourCollector::keep_logits(const float* row, int64_t n) {
  const int64_t usable = std::min<int64_t>(n, engine_.vocab_size());
  values_.add({"logits", {1, usable}, {row, row + usable}});
  out_["candidates"] = best(row, n, settings_.n_candidates);
  const std::vector<int> ids = best_ids(row, n, settings_.n_candidates);
  rows("unembed.weight", engine_.parts().model->output(), ids);
}

void TourCollector::continuation() {
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
void TourCollector::text_vector() {
  const std::vector<int> text[] = {ids_};
  const EmbedPlan plan = engine_.embed_plan();
  Embedding vector = std::move(engine_.embed_ids(text).front());
  out_["embedding"] = {{"pooling", to_string(plan.pooling)}, {"normalise", plan.normalise}};
  values_.add({"embedding", {static_cast<int64_t>(vector.values.size())}, std::move(vector.values)});
}

std::vector<std::string> TourCollector::explained_numbers() const {
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

void TourCollector::explanations() {
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

}  // namespace liuli
