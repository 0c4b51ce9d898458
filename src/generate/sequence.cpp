#include "generate/sequence.h"

#include <algorithm>

#include "core/check.h"

namespace liuli {

Sequence::Sequence(const Model& model, RunClasses classes)
    : model_(&model),
      classes_(classes),
      cache_(cache_shape(model.config), attention_kernels(classes.prompt)) {
  LIULI_CHECK(&attention_kernels(classes.prompt) == &attention_kernels(classes.generated));
}

Rows Sequence::feed(Runner& runner, std::span<const int> tokens, const FeedOptions& options) {
  Rows logits;
  const size_t chunk = static_cast<size_t>(std::max(1, options.chunk));
  for (size_t at = 0; at < tokens.size(); at += chunk) {
    const auto part = tokens.subspan(at, std::min(chunk, tokens.size() - at));
    const bool last = at + part.size() == tokens.size();
    const SequenceInput input{&cache_, part};
    logits = transformer_forward(
        *model_, runner, {&input, 1},
        {classes_.prompt, options.listener, options.every_logit, !last && !options.every_logit});
    const int first = length();
    tokens_.insert(tokens_.end(), part.begin(), part.end());
    if (options.every_logit && options.on_logits) options.on_logits(first, logits);
    if (options.on_chunk)
      options.on_chunk(static_cast<int>(at + part.size()), static_cast<int>(tokens.size()));
  }
  return logits;
}

Rows Sequence::feed_generated(Runner& runner, std::span<const int> tokens) {
  const SequenceInput input{&cache_, tokens};
  Rows logits = transformer_forward(*model_, runner, {&input, 1}, {classes_.generated});
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  return logits;
}

Rows Sequence::feed_together(Runner& runner, std::span<Sequence* const> sequences,
                             std::span<const int> tokens) {
  LIULI_CHECK(!sequences.empty() && sequences.size() == tokens.size());
  std::vector<SequenceInput> inputs;
  for (size_t i = 0; i < sequences.size(); i++)
    inputs.push_back({&sequences[i]->cache_, tokens.subspan(i, 1)});
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
