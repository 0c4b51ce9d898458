#include "liuli/attribution.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/rng.h"
#include "engine/engine_parts.h"
#include "trace/attention_summary.h"
#include "trace/attribution.h"
#include "trace/ledger.h"
#include "trace/lens.h"
#include "trace/slices.h"

namespace liuli {
namespace {

std::string class_name(const EngineParts& parts) { return to_string(parts.classes.prompt); }

std::vector<int> positions_of(const std::string& tokens, size_t n_tokens) {
  const auto kept =
      parse_slice(tokens.empty() ? ":" : tokens, static_cast<int64_t>(n_tokens), "the prompt's tokens");
  return {kept.begin(), kept.end()};
}

int checked_token(int token, const ModelConfig& config, const char* what) {
  if (token < 0 || token >= config.vocab_size)
    throw Error(ErrorCode::invalid_argument, fmt::format("{} token {} is outside the vocabulary 0 … {}", what,
                                                         token, config.vocab_size - 1));
  return token;
}

}  // namespace

// ---- lens ----

namespace {

std::vector<std::string> storeys(const ModelConfig& config) {
  const std::string blocks = config.is_encoder_decoder() ? "decoder.blocks" : "blocks";
  std::vector<std::string> points = {blocks + ".0.resid_pre"};
  for (size_t layer = 0; layer < config.layers.size(); layer++) {
    const LayerPlan& plan = config.layers[layer];
    const auto stream = [&](NormKind after_add) { return after_add == NormKind::none ? "" : "normalized_"; };
    points.push_back(fmt::format("{}.{}.{}resid_mid", blocks, layer, stream(plan.attn_norm.after_add)));
    points.push_back(fmt::format("{}.{}.{}resid_post", blocks, layer, stream(plan.ffn_norm.after_add)));
  }
  return points;
}

// Logits of the lens, as many rows at a time as make a good product.
class Lens {
 public:
  Lens(Engine& engine, const std::vector<int>& ids, const LensSettings& settings)
      : parts_(engine.parts()), ids_(ids), settings_(settings) {
    report_.positions = positions_of(settings.tokens, ids.size());
    report_.product_class = class_name(parts_);
    usable_ = std::min<int64_t>(engine.config().vocab_size, engine.vocab_size());
    if (settings.followed >= 0) checked_token(settings.followed, engine.config(), "the followed");
  }

  LensReport run(const std::vector<TracedTensor>& streams, const TracedTensor& last) {
    for_each_row(last, [&](size_t, const float* logits) { take_final(logits); });
    for (const TracedTensor& stream : streams) {
      LensRow row{stream.name, {}};
      for_each_row(stream, [&](size_t i, const float* logits) { row.cells.push_back(cell(i, logits)); });
      report_.rows.push_back(std::move(row));
    }
    return std::move(report_);
  }

 private:
  template <class F>
  void for_each_row(const TracedTensor& stream, F&& f) {
    constexpr size_t kRows = 64;  // 64 rows of 256k logits are 64 MiB
    const auto width = static_cast<size_t>(stream.shape.at(1)), n = static_cast<size_t>(stream.shape.at(0));
    for (size_t first = 0; first < n; first += kRows) {
      std::vector<std::vector<float>> rows;
      for (size_t i = first; i < std::min(n, first + kRows); i++)
        rows.emplace_back(stream.values.begin() + static_cast<ptrdiff_t>(i * width),
                          stream.values.begin() + static_cast<ptrdiff_t>((i + 1) * width));
      const Rows logits = lens_logits(*parts_.model, *parts_.runner, rows, parts_.classes.prompt);
      for (size_t i = 0; i < rows.size(); i++) f(first + i, logits.row(static_cast<int64_t>(i)));
    }
  }

  void take_final(const float* logits) {
    const size_t i = report_.final_token.size(), next = static_cast<size_t>(report_.positions[i]) + 1;
    report_.final_token.push_back(static_cast<int>(kernels::best_kernels().rows.argmax(logits, usable_)));
    report_.followed.push_back(settings_.followed >= 0 ? settings_.followed
                               : next < ids_.size()    ? ids_[next]
                                                       : report_.final_token.back());
  }

  int64_t rank(const float* logits, int token) const {
    return 1 + std::count_if(logits, logits + usable_, [&](float v) { return v > logits[token]; });
  }

  LensCell cell(size_t i, const float* logits) const {
    const auto& kernels = kernels::best_kernels().rows;
    const auto lse = static_cast<double>(kernels.log_sum_exp(logits, usable_));
    auto probability = [&](int token) { return std::exp(static_cast<double>(logits[token]) - lse); };
    LensCell c;
    c.top_token = static_cast<int>(kernels.argmax(logits, usable_));
    c.top_probability = probability(c.top_token);
    c.followed_probability = probability(report_.followed[i]);
    c.followed_rank = rank(logits, report_.followed[i]);
    c.final_rank = rank(logits, report_.final_token[i]);
    return c;
  }

  EngineParts& parts_;
  const std::vector<int>& ids_;
  const LensSettings& settings_;
  LensReport report_;
  int64_t usable_;
};

}  // namespace

LensReport logit_lens(Engine& engine, const std::vector<int>& ids, const LensSettings& settings) {
  engine.parts().require_logits("the logit lens");
  const ModelConfig& config = engine.config();
  const std::vector<std::string> all = storeys(config);
  std::vector<std::string> points = settings.points.empty() ? all : settings.points;
  points.push_back(all.back());  // what the finished model says
  TraceSettings traced;
  traced.beside = settings.beside;
  traced.slices.tokens = settings.tokens;
  Lens lens(engine, ids, settings);
  const std::vector<TracedTensor> streams = engine.trace(ids, points, traced);
  for (const TracedTensor& stream : streams)
    if (stream.shape.size() != 2 || stream.shape[1] != config.d_model ||
        stream.shape[0] != static_cast<int64_t>(positions_of(settings.tokens, ids.size()).size()))
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{} cannot be seen through the lens: its rows are not the stream's, [n_tokens, {}]",
                      stream.name, config.d_model));
  const auto last = std::find_if(streams.begin(), streams.end(),
                                 [&](const TracedTensor& stream) { return stream.name == all.back(); });
  return lens.run(streams, *last);
}

// ---- attribution ----

namespace {

double run_logit(const TracedTensor& logits, const AttributionSettings& settings) {
  const auto at = [&](int token) { return static_cast<double>(logits.values[static_cast<size_t>(token)]); };
  return at(settings.token) - (settings.against >= 0 ? at(settings.against) : 0);
}

}  // namespace

AttributionReport attribute_logit(Engine& engine, const std::vector<int>& ids,
                                  const AttributionSettings& settings) {
  EngineParts& parts = engine.parts();
  parts.require_logits("attribution");
  require_additive_stream(*parts.model, "attribution");
  AttributionSettings resolved = settings;
  checked_token(settings.token, engine.config(), "the attributed");
  if (settings.against >= 0) checked_token(settings.against, engine.config(), "the other");
  resolved.position = static_cast<int>(
      parse_slice(std::to_string(settings.position), static_cast<int64_t>(ids.size()), "the prompt's tokens")
          .front());
  std::vector<std::string> points = attribution_points(*parts.model, settings.by, resolved.position);
  points.push_back(fmt::format("logits[{}]", resolved.position));
  std::vector<TracedTensor> traced = engine.trace(ids, points);
  const auto logits = std::find_if(traced.begin(), traced.end(),
                                   [](const TracedTensor& t) { return t.name.rfind("logits[", 0) == 0; });
  const double measured = run_logit(*logits, resolved);
  const RunValues values(std::move(traced));
  AttributionReport report = attribute_values(*parts.model, parts.runner->pool, values, resolved);
  report.run_logit = measured;
  report.product_class = class_name(parts);
  return report;
}

// ---- ledger ----

LedgerReport residual_ledger(Engine& engine, const std::vector<int>& ids, const LedgerSettings& settings) {
  const EngineParts& parts = engine.parts();
  require_additive_stream(*parts.model, "the residual ledger");
  const ModelConfig& config = engine.config();
  for (const int j : settings.coordinates)
    if (j < 0 || j >= config.d_model)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("coordinate {} does not exist: there are 0 … {}", j, config.d_model - 1));
  for (const Block& block : parts.model->blocks)
    if (block.residual_scale != 1.0f)
      throw Error(ErrorCode::unsupported,
                  fmt::format("the residual ledger of a stream that is scaled by {} on its way",
                              block.residual_scale));
  TraceSettings traced;
  traced.slices.tokens = settings.tokens;
  traced.max_bytes = settings.max_bytes;
  std::vector<std::string> points = embedding_terms(config);
  points.insert(points.end(), {"blocks.*.attn_out", "blocks.*.mlp_out", "blocks.*.resid_post"});
  const std::vector<TracedTensor> values = engine.trace(ids, points, traced);
  std::vector<StreamRows> terms, streams;
  for (const TracedTensor& value : values) {
    const bool in_block = value.name.rfind("blocks.", 0) == 0;
    const int layer = in_block ? std::stoi(value.name.substr(7)) : -1;
    (value.name.ends_with(".resid_post") ? streams : terms).push_back({value.name, layer, value.values});
  }
  const std::vector<int> positions = positions_of(settings.tokens, ids.size());
  LedgerReport report = make_ledger(positions, terms, streams.back(), settings.coordinates);
  report.massive = find_massive(positions, streams, terms, settings.massive_ratio);
  report.product_class = class_name(parts);
  return report;
}

// ---- heads ----

HeadsReport summarize_heads(Engine& engine, const std::vector<int>& ids, const BesideTheTokens& beside) {
  EngineParts& parts = engine.parts();
  parts.check_tokens(ids, 0, engine.config().max_seq_len);
  parts.check_beside(beside, ids.size());
  AttentionSummary summary(ids);
  Sequence sequence(*parts.model, parts.classes);
  if (!beside.source.empty()) sequence.read_source(*parts.runner, beside.source, &summary);
  FeedOptions options;
  options.listener = &summary;
  options.token_types = beside.token_types;
  sequence.feed(*parts.runner, ids, options);
  HeadsReport report = summary.report();
  report.product_class = class_name(parts);
  return report;
}

std::vector<int> repeated_random_tokens(const Engine& engine, int length, int repeats, uint64_t seed) {
  if (length < 1 || repeats < 1)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} tokens {} times: expected 1 or more of both", length, repeats));
  std::vector<int> ids = engine.tokenize("");
  const auto limit =
      static_cast<uint64_t>(std::min<int64_t>(engine.vocab_size(), engine.config().vocab_size));
  Rng rng(seed);
  std::vector<int> drawn;
  for (int64_t tries = 0; drawn.size() < static_cast<size_t>(length); tries++) {
    if (tries > int64_t{1000} * length)
      throw Error(ErrorCode::unsupported,
                  "hardly any token of this vocabulary is read back from its own text");
    const int id = static_cast<int>(rng.below(limit));
    if (engine.tokenize(engine.token_text(id), false) == std::vector<int>{id}) drawn.push_back(id);
  }
  for (int i = 0; i < repeats; i++) ids.insert(ids.end(), drawn.begin(), drawn.end());
  return ids;
}

}  // namespace liuli
