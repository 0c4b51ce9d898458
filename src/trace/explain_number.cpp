#include "trace/explain_number.h"

#include <algorithm>

#include "generate/sequence.h"
#include "trace/number_explainers.h"

namespace liuli {
namespace {

using namespace numbers;

using Explainer = void (*)(Calculation&);

// Norm stages aside, which follow one another.
Explainer explainer_of(Point point) {
  switch (point) {
    case Point::embed:
      return explain_embed;
    case Point::pos_embed:
      return explain_pos_embed;
    case Point::type_embed:
      return explain_type_embed;
    case Point::embed_sum:
      return explain_embed_sum;
    case Point::resid_pre:
      return explain_resid_pre;
    case Point::attn_q:
    case Point::attn_k:
    case Point::attn_v:
      return explain_projection;
    case Point::attn_q_normed:
    case Point::attn_k_normed:
      return explain_normed_head;
    case Point::attn_rot_q:
    case Point::attn_rot_k:
      return explain_rotated;
    case Point::attn_q_latent:
    case Point::attn_kv_latent:
      return explain_latent;
    case Point::attn_scores_raw:
      return explain_scores_raw;
    case Point::attn_scores:
      return explain_scores;
    case Point::attn_attn_scores:
      return explain_attn_scores;
    case Point::attn_pattern:
      return explain_pattern;
    case Point::attn_z:
      return explain_z;
    case Point::attn_out_proj:
      return explain_out_proj;
    case Point::attn_out:
      return explain_attn_out;
    case Point::resid_mid:
      return explain_resid_mid;
    case Point::normalized_resid_mid:
    case Point::normalized_resid_cross:
    case Point::normalized_resid_post:
      return explain_normalized;
    case Point::cross_attn_out:
      return explain_cross_attn_out;
    case Point::resid_cross:
      return explain_resid_cross;
    case Point::mlp_pre:
    case Point::mlp_pre_linear:
    case Point::mlp_expert_pre:
    case Point::mlp_expert_pre_linear:
    case Point::mlp_shared_pre:
    case Point::mlp_shared_pre_linear:
      return explain_hidden;
    case Point::mlp_post:
    case Point::mlp_expert_post:
    case Point::mlp_shared_post:
      return explain_post;
    case Point::mlp_router_logits:
      return explain_router_logits;
    case Point::mlp_router_scores:
      return explain_router_scores;
    case Point::mlp_router_biased:
      return explain_router_biased;
    case Point::mlp_group_scores:
      return explain_group_scores;
    case Point::mlp_groups_kept:
      return explain_groups_kept;
    case Point::mlp_expert_ids:
      return explain_expert_ids;
    case Point::mlp_expert_weights:
      return explain_expert_weights;
    case Point::mlp_expert_out:
      return explain_expert_out;
    case Point::mlp_routed_out:
      return explain_routed_out;
    case Point::mlp_shared_out:
      return explain_shared_out;
    case Point::mlp_out_raw:
      return explain_mlp_out_raw;
    case Point::mlp_out:
      return explain_mlp_out;
    case Point::resid_post:
      return explain_resid_post;
    case Point::pooler:
      return explain_pooler;
    default:
      return explain_logits;
  }
}

void explain(Calculation& c) {
  const Point point = c.place().point;
  if (point < Point::norm_first) return explainer_of(point)(c);
  const int at = static_cast<int>(point) - static_cast<int>(Point::norm_first);
  explain_norm_stage(c, static_cast<NormSite>(at / kNormStages), static_cast<NormStage>(at % kNormStages));
}

// Runs the model in one class and lets `rows` listen.
void record(const Model& model, Runner& runner, const NumberQuestion& question, ProductClass product_class,
            RunRows& rows) {
  Sequence sequence(model, {product_class, product_class});
  const BesideTheTokens& beside = question.settings.beside;
  if (!beside.source.empty()) sequence.read_source(runner, beside.source, &rows);
  FeedOptions options;
  options.token_types = beside.token_types;
  if (rows.needs_one_pass()) options.chunk = static_cast<int>(question.tokens.size());
  options.listener = &rows;
  options.every_logit = rows.needs_every_logit();
  const int last = rows.last_layer();
  if (last < model.config.n_layers) options.stop_at_layer = last + 1;
  sequence.feed(runner, question.tokens, options);
  rows.close_run();
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

}  // namespace

std::vector<NumberExplanation> explain_numbers(const Model& model, Runner& runner,
                                               const NumberQuestion& question) {
  std::vector<NumberPlace> places;
  for (const std::string& text : question.at)
    places.push_back(parse_number_place(model.config, text, counts_of(question)));
  RunRows rows(model.config, counts_of(question));
  OpContext ops = make_context(runner, question.product_class);
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
    }
  } while (rows.is_incomplete());
  if (question.settings.with_exact) add_exact(model, runner, question, places, explanations);
  return explanations;
}

}  // namespace liuli
