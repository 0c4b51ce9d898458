#include "trace/explain_number.h"

#include <iterator>

#include <algorithm>

#include <fmt/format.h>

#include "generate/sequence.h"
#include "liuli/error.h"
#include "trace/hooks.h"
#include "trace/number_explainers.h"
#include "trace/point_selection.h"

namespace liuli {
namespace {

using namespace numbers;

using Explainer = void (*)(Calculation&);

// In the order of the points; the stages of norms, which follow, have one explainer together.
struct Entry {
  Point point;
  Explainer explain;
};
constexpr Entry kExplainers[] = {
    {Point::embed, explain_embed},
    {Point::pos_embed, explain_pos_embed},
    {Point::type_embed, explain_type_embed},
    {Point::embed_sum, explain_embed_sum},
    {Point::resid_pre, explain_resid_pre},
    {Point::attn_q, explain_projection},
    {Point::attn_k, explain_projection},
    {Point::attn_v, explain_projection},
    {Point::attn_q_normed, explain_normed_head},
    {Point::attn_k_normed, explain_normed_head},
    {Point::attn_rope_angle, explain_rope_angle},
    {Point::attn_rope_cos, explain_rope_angle},
    {Point::attn_rope_sin, explain_rope_angle},
    {Point::attn_rot_q, explain_rotated},
    {Point::attn_rot_k, explain_rotated},
    {Point::attn_q_latent, explain_latent},
    {Point::attn_kv_latent, explain_latent},
    {Point::attn_scores_raw, explain_scores_raw},
    {Point::attn_scores, explain_scores},
    {Point::attn_attn_scores, explain_attn_scores},
    {Point::attn_pattern, explain_pattern},
    {Point::attn_z, explain_z},
    {Point::attn_out_proj, explain_out_proj},
    {Point::attn_out, explain_attn_out},
    {Point::resid_mid, explain_resid_mid},
    {Point::normalized_resid_mid, explain_normalized},
    {Point::cross_attn_out, explain_cross_attn_out},
    {Point::resid_cross, explain_resid_cross},
    {Point::normalized_resid_cross, explain_normalized},
    {Point::mlp_pre, explain_hidden},
    {Point::mlp_pre_linear, explain_hidden},
    {Point::mlp_post, explain_post},
    {Point::mlp_router_logits, explain_router_logits},
    {Point::mlp_router_scores, explain_router_scores},
    {Point::mlp_router_biased, explain_router_biased},
    {Point::mlp_group_scores, explain_group_scores},
    {Point::mlp_groups_kept, explain_groups_kept},
    {Point::mlp_expert_ids, explain_expert_ids},
    {Point::mlp_expert_weights, explain_expert_weights},
    {Point::mlp_expert_pre, explain_hidden},
    {Point::mlp_expert_pre_linear, explain_hidden},
    {Point::mlp_expert_post, explain_post},
    {Point::mlp_expert_out, explain_expert_out},
    {Point::mlp_routed_out, explain_routed_out},
    {Point::mlp_shared_pre, explain_hidden},
    {Point::mlp_shared_pre_linear, explain_hidden},
    {Point::mlp_shared_post, explain_post},
    {Point::mlp_shared_out, explain_shared_out},
    {Point::mlp_out_raw, explain_mlp_out_raw},
    {Point::mlp_out, explain_mlp_out},
    {Point::resid_post, explain_resid_post},
    {Point::normalized_resid_post, explain_normalized},
    {Point::pooler, explain_pooler},
    {Point::logits, explain_logits},
};

constexpr bool is_complete() {
  if (std::size(kExplainers) != static_cast<size_t>(Point::norm_first)) return false;
  for (size_t i = 0; i < std::size(kExplainers); i++)
    if (kExplainers[i].point != static_cast<Point>(i)) return false;
  return true;
}
static_assert(is_complete(), "every point has an explainer, in the order of the points");

void explain(Calculation& c) {
  const Point point = c.place().point;
  if (point < Point::norm_first) return kExplainers[static_cast<size_t>(point)].explain(c);
  const int at = static_cast<int>(point) - static_cast<int>(Point::norm_first);
  explain_norm_stage(c, static_cast<NormSite>(at / kNormStages), static_cast<NormStage>(at % kNormStages));
}

// Runs the model in one class and lets `rows` listen.
void record(const Model& model, Runner& runner, const NumberQuestion& question, ProductClass product_class,
            RunRows& rows) {
  Sequence sequence(model, {product_class, product_class});
  const BesideTheTokens& beside = question.settings.beside;
  HookProbe hooks(model.config, question.settings.hooks, &rows);
  Probe* listener = question.settings.hooks.empty() ? static_cast<Probe*>(&rows) : &hooks;
  if (!beside.source.empty()) sequence.read_source(runner, beside.source, listener);
  FeedOptions options;
  options.token_types = beside.token_types;
  if (rows.needs_one_pass()) options.chunk = static_cast<int>(question.tokens.size());
  options.listener = listener;
  options.every_logit = rows.needs_every_logit();
  const int last = rows.last_layer();
  if (last < model.config.n_layers) options.stop_at_layer = last + 1;
  sequence.feed(runner, question.tokens, options);
  rows.close_run();
  hooks.require_all_fired();
}

TokenCounts counts_of(const NumberQuestion& q) {
  return {static_cast<int64_t>(q.tokens.size()), static_cast<int64_t>(q.settings.beside.source.size())};
}

// The same numbers of a run in double; those that it does not have stay empty.
void add_exact(const Model& model, Runner& runner, const NumberQuestion& question,
               const std::vector<NumberPlace>& places, std::vector<NumberExplanation>& explanations) {
  RunRows rows(model.config, counts_of(question));
  for (const NumberPlace& at : places) rows.value(at.place, at.index);
  record(model, runner, question, ProductClass::exact, rows);
  for (size_t i = 0; i < places.size(); i++) {
    const NumberPlace& at = places[i];
    const bool scores = is_score_like(at.place.point);
    if (scores || rows.passed(at.place, at.index[0]))
      explanations[i].exact = static_cast<double>(rows.value(at.place, at.index));
  }
}

// A hook behind every number that is asked for changes none of them.
void require_hooks_before(const ModelConfig& config, const std::vector<Hook>& hooks,
                          const std::vector<NumberPlace>& numbers) {
  const std::vector<Place> places = all_places(config);
  const auto order = [&](const Place& place) { return std::find(places.begin(), places.end(), place); };
  const auto last = std::max_element(numbers.begin(), numbers.end(), [&](const auto& a, const auto& b) {
    return order(a.place) < order(b.place);
  });
  for (const Hook& hook : hooks) {
    const Place first = select_places(config, hook.points).front();
    if (last != numbers.end() && order(first) > order(last->place))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("a change at {} comes after {}: it changes nothing there", first.name(),
                              last->place.name()));
  }
}

}  // namespace

std::vector<NumberExplanation> explain_numbers(const Model& model, Runner& runner,
                                               const NumberQuestion& question) {
  std::vector<NumberPlace> places;
  for (const std::string& text : question.at)
    places.push_back(parse_number_place(model.config, text, counts_of(question)));
  require_hooks_before(model.config, question.settings.hooks, places);
  const HookProbe hooked(model.config, question.settings.hooks);
  RunRows rows(model.config, counts_of(question));
  OpContext ops = make_context(runner, question.product_class, model.cache_form);
  const BesideTheTokens& beside = question.settings.beside;
  ExplainedRun run{model, ops, rows, question.tokens, beside.source, beside.token_types};
  std::vector<NumberExplanation> explanations;
  do {
    if (rows.is_incomplete()) record(model, runner, question, question.product_class, rows);
    explanations.clear();
    for (const NumberPlace& at : places) {
      Calculation calculation(run, at, question.settings.max_terms);
      explain(calculation);
      explanations.push_back(calculation.take());
      explanations.back().edited = hooked.hooks_at(at.place);
    }
  } while (rows.is_incomplete());
  if (question.settings.with_exact) add_exact(model, runner, question, places, explanations);
  return explanations;
}

}  // namespace liuli
