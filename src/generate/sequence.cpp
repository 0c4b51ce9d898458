#include "generate/sequence.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/check.h"
#include "liuli/error.h"
#include "model/prompt_chunk.h"

namespace liuli {

Sequence::Sequence(const Model& model, RunClasses classes)
    : model_(&model),
      classes_(classes),
      cache_(cache_shape(model.config), attention_kernels(classes.prompt, model.cache_form)) {
  LIULI_CHECK(&cache_.kernels() == &attention_kernels(classes.generated, model.cache_form));
}

SequenceInput Sequence::input(std::span<const int> tokens) {
  const ModelConfig& c = model_->config;
  if (c.is_encoder_decoder() && !source_)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a {} model reads a source text before its first token", c.family));
  if (!c.causal && length() > 0)
    throw Error(ErrorCode::unsupported,
                fmt::format("a {} model reads both ways: {} tokens cannot be appended to {}", c.family,
                            tokens.size(), length()));
  return {&cache_, tokens, source_ ? &*source_ : nullptr};
}

void Sequence::read_source(Runner& runner, std::span<const int> tokens, Probe* listener) {
  truncate(0);
  if (!source_) source_.emplace(source_cache_shape(model_->config), cache_.kernels());
  StepOptions options;
  options.product_class = classes_.prompt;
  options.listener = listener;
  encode_source(*model_, runner, tokens, *source_, options);
  source_tokens_.assign(tokens.begin(), tokens.end());
}

// A long pass that leaves a short one behind gains nothing: passes of a prompt are as even as groups of rows allow.
size_t Sequence::pass_length(size_t n, const FeedOptions& options) const {
  if (!model_->config.causal) return n;
  if (options.chunk > 0) return static_cast<size_t>(options.chunk);
  const auto longest = static_cast<size_t>(options.every_logit ? kDenseChunk : model_->prompt_chunk);
  const size_t passes = std::max<size_t>(1, (n + longest - 1) / longest);
  return (n + passes * kDenseChunk - 1) / (passes * kDenseChunk) * kDenseChunk;
}

Rows Sequence::feed(Runner& runner, std::span<const int> tokens, const FeedOptions& options) {
  Rows logits;
  const size_t chunk = pass_length(tokens.size(), options);
  for (size_t at = 0; at < tokens.size(); at += chunk) {
    const auto part = tokens.subspan(at, std::min(chunk, tokens.size() - at));
    const bool last = at + part.size() == tokens.size();
    SequenceInput rows = input(part);
    if (!options.token_types.empty()) rows.token_types = options.token_types.subspan(at, part.size());
    logits = transformer_forward(*model_, runner, {&rows, 1},
                                 {classes_.prompt, options.listener, options.every_logit, false,
                                  !last && !options.every_logit, options.stop_at_layer});
    const int first = length();
    tokens_.insert(tokens_.end(), part.begin(), part.end());
    if (options.every_logit && options.on_logits) options.on_logits(first, logits);
    if (options.on_chunk)
      options.on_chunk(static_cast<int>(at + part.size()), static_cast<int>(tokens.size()));
  }
  return logits;
}

Rows Sequence::feed_generated(Runner& runner, std::span<const int> tokens, Probe* listener,
                              bool every_logit) {
  const SequenceInput rows = input(tokens);
  Rows logits = transformer_forward(*model_, runner, {&rows, 1}, {classes_.generated, listener, every_logit});
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  return logits;
}

Rows Sequence::feed_prompts_together(Runner& runner, std::span<Sequence* const> sequences,
                                     std::span<const std::vector<int>* const> prompts, Probe* listener) {
  LIULI_CHECK(!sequences.empty() && sequences.size() == prompts.size());
  std::vector<SequenceInput> inputs;
  for (size_t i = 0; i < sequences.size(); i++) {
    LIULI_CHECK(sequences[i]->length() == 0);
    inputs.push_back(sequences[i]->input(*prompts[i]));
  }
  const Sequence& first = *sequences.front();
  const Rows logits = transformer_forward(*first.model_, runner, inputs, {first.classes_.prompt, listener});
  for (size_t i = 0; i < sequences.size(); i++) sequences[i]->tokens_ = *prompts[i];
  return logits;
}

Rows Sequence::feed_together(Runner& runner, std::span<Sequence* const> sequences,
                             std::span<const int> tokens) {
  LIULI_CHECK(!sequences.empty() && sequences.size() == tokens.size());
  std::vector<SequenceInput> inputs;
  for (size_t i = 0; i < sequences.size(); i++) inputs.push_back(sequences[i]->input(tokens.subspan(i, 1)));
  const Sequence& first = *sequences.front();
  Rows logits = transformer_forward(*first.model_, runner, inputs, {first.classes_.generated});
  for (size_t i = 0; i < sequences.size(); i++) sequences[i]->tokens_.push_back(tokens[i]);
  return logits;
}

void Sequence::truncate(int length) {
  cache_.truncate(length);
  tokens_.resize(static_cast<size_t>(length));
}

}  // namespace liuli
