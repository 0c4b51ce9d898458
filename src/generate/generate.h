// The loop that turns a prompt into text.
#pragma once
#include <functional>
#include <vector>

#include "generate/drafter.h"
#include "generate/sequence.h"
#include "liuli/generation.h"
#include "tokenizers/tokenizer.h"

namespace liuli {

/// What a generation runs on.
struct GenerationContext {
  Runner& runner;
  const Tokenizer& tokenizer;
  const std::vector<int>& end_tokens;
  int max_context;
  Probe* prompt_listener = nullptr;  ///< watches the prompt's passes
  Probe* token_listener = nullptr;   ///< watches the passes of generated tokens
  Drafter* drafter = nullptr;        ///< guesses tokens, settings.speculation.max_draft at a time
};

using TokenCallback = std::function<bool(const GeneratedToken&)>;

/// Makes `prompt` the sequence's tokens, reusing its cache where the beginning agrees (at least the last
/// token is computed anew, for its logits), and continues it. With a drafter one pass checks several guesses; tokens,
/// logits and the sequence left behind are the same bits as without. Errors: cancelled (before the first token).
/// REQUIRES: a prompt of 1 … max_context tokens within the vocabulary (the session checks what a user gives).
GenerateResult generate(const GenerationContext& context, Sequence& sequence, const std::vector<int>& prompt,
                        const GenerateSettings& settings, const TokenCallback& on_token);

}  // namespace liuli
