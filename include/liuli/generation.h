// How text is continued: settings, and what comes back.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "liuli/hook.h"
#include "liuli/report.h"

namespace liuli {

class Engine;

/// How the next token is drawn from the logits. The defaults are greedy. Applied in this order.
struct SamplingSettings {
  std::vector<std::pair<int, float>> logit_bias;  ///< added to a token's logit
  float repetition_penalty = 1;  ///< divides positive and multiplies negative logits of tokens seen before
  float presence_penalty = 0;    ///< taken off the logit of tokens seen before
  float frequency_penalty = 0;   ///< taken off once per occurrence
  int penalty_window = 64;       ///< how many of the last tokens the penalties look at; −1: all
  float temperature = 0;         ///< 0: greedy (first of the largest)
  int top_k = 0;                 ///< 0: off
  float top_p = 1;               ///< 1: off
  float min_p = 0;               ///< 0: off; keeps tokens with p ≥ min_p · max p
  uint64_t seed = 0;             ///< the same seed gives the same text
};

/// What a model's makers recommend (a folder's generation_config.json), as far as the file states it. Temperature,
/// top_k, top_p and min_p only where it says that sampling is meant (do_sample).
struct GenerationDefaults {
  std::optional<float> temperature, top_p, min_p, repetition_penalty;
  std::optional<int> top_k;
};

/// Guesses of the next tokens, checked several at a time in one pass of the model. It changes the speed and no token:
/// every token is drawn from the model's own logits with the random numbers it would have had, and guesses are kept
/// while they are what was drawn. How many are guessed follows from what guessing brought and cost so far.
struct Speculation {
  enum class Source {
    none,
    lookup,  ///< what followed the last tokens where they occurred before
    draft,   ///< what a smaller model with the same tokens says
  };
  Source source = Source::none;
  Engine* draft = nullptr;  ///< the smaller model; outlives the session that generates with it
  int max_draft = 15;       ///< guesses per pass, at most; one pass takes 16 rows through the weights at once
};

/// What guessing brought.
struct SpeculationCounts {
  int64_t passes = 0, drafted = 0, accepted = 0;  ///< passes after the prompt; tokens guessed; of these kept
  double draft_seconds = 0;                       ///< spent on guessing; part of decode_seconds
};

struct GenerateSettings {
  SamplingSettings sampling;
  Speculation speculation = {};
  int max_tokens = 256;
  std::vector<std::string> stop;  ///< generation ends before any of these; they are not part of the text
  int top_logprobs =
      0;  ///< alternatives to report per token (with log-probabilities of the untouched logits)
  bool ignore_eos = false;
  bool first_token_report =
      false;  ///< watch the prompt's last token and report how the first new one came about
  /// Change values in every pass, of the prompt and of generated tokens. Nothing the session computed without them is
  /// used, and nothing they changed is used later.
  std::vector<Hook> hooks = {};
  const std::atomic<bool>* cancel =
      nullptr;  ///< set it (from a signal handler, another thread) to stop after a token
  std::function<void(int done, int total)> on_prompt_progress;
};

struct TokenLogprob {
  int id;
  float logprob;
};

struct GeneratedToken {
  int id;  ///< −1 for a last piece of text that was held back (an unfinished character, half a stop string)
  std::string text;  ///< whole UTF-8 characters this token completed; may be empty
  float logprob;     ///< of the untouched distribution
  std::vector<TokenLogprob> top;
};

enum class StopReason { end_of_text, stop_string, max_tokens, context_full, cancelled };
const char* to_string(StopReason reason);

struct GenerateResult {
  std::string text;
  std::vector<GeneratedToken> tokens;
  StopReason reason = StopReason::max_tokens;
  int prompt_tokens = 0, reused_tokens = 0;  ///< reused: found in the session's cache
  double prompt_seconds = 0, decode_seconds = 0;
  SpeculationCounts speculation;
  std::optional<FirstTokenReport> first_token;
};

}  // namespace liuli
