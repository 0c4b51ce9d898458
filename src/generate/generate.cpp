#include "generate/generate.h"

#include <algorithm>
#include <chrono>

#include "core/check.h"
#include "generate/draft_length.h"
#include "generate/sampler.h"
#include "generate/stop_matcher.h"
#include "liuli/error.h"

namespace liuli {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool cancelled(const GenerateSettings& settings) {
  return settings.cancel != nullptr && settings.cancel->load(std::memory_order_relaxed);
}

// Everything a generation carries from token to token.
class Generation {
 public:
  Generation(const GenerationContext& context, Sequence& sequence, const GenerateSettings& settings,
             const TokenCallback& on_token)
      : context_(context),
        sequence_(sequence),
        settings_(settings),
        on_token_(on_token),
        sampler_(settings.sampling),
        decoder_(context.tokenizer),
        matcher_(settings.stop),
        draft_length_(settings.speculation.max_draft, context.drafter ? context.drafter->prior() : 0) {}

  GenerateResult run(const std::vector<int>& prompt) {
    history_ = prompt;
    const auto start = Clock::now();
    Rows logits = feed_prompt(prompt);
    result_.prompt_seconds = seconds_since(start);
    const auto decode_start = Clock::now();
    generate_from(logits);
    result_.decode_seconds = seconds_since(decode_start);
    if (!matcher_.stopped()) emit_rest();
    return std::move(result_);
  }

 private:
  Rows feed_prompt(const std::vector<int>& prompt) {
    const auto& cached = sequence_.tokens();
    const size_t limit = std::min(cached.size(), prompt.size() - 1);
    size_t reused = 0;
    while (reused < limit && cached[reused] == prompt[reused]) reused++;
    sequence_.truncate(static_cast<int>(reused));
    result_.prompt_tokens = static_cast<int>(prompt.size());
    result_.reused_tokens = static_cast<int>(reused);
    FeedOptions options;
    options.listener = context_.prompt_listener;
    options.on_chunk = [&](int done, int total) {
      if (settings_.on_prompt_progress) settings_.on_prompt_progress(done, total);
      if (done < total && cancelled(settings_))
        throw Error(ErrorCode::cancelled, "stopped while reading the prompt");
    };
    return sequence_.feed(context_.runner, std::span(prompt).subspan(reused), options);
  }

  void generate_from(Rows logits) {
    for (int n = 0, row = 0;; n++) {
      if (n == settings_.max_tokens) return stop(StopReason::max_tokens);
      if (cancelled(settings_)) return stop(StopReason::cancelled);
      // Rows beyond the vocabulary are padding of the matrix: they have no text and are never chosen.
      const auto usable = std::min<int64_t>(logits.width, context_.tokenizer.vocab_size());
      const std::span<const float> scores(logits.row(row), static_cast<size_t>(usable));
      const int id = sampler_.sample(scores, history_);
      history_.push_back(id);
      const bool end =
          !settings_.ignore_eos &&
          std::find(context_.end_tokens.begin(), context_.end_tokens.end(), id) != context_.end_tokens.end();
      if (end) return stop(StopReason::end_of_text);
      if (!emit(id, scores)) return stop(StopReason::cancelled);
      if (matcher_.stopped()) return stop(StopReason::stop_string);
      if (fed() >= context_.max_context) return stop(StopReason::context_full);
      if (n + 1 == settings_.max_tokens) continue;
      if (guess_was_right(row, id)) {
        row++;  // of the same pass: it was computed behind this very token
      } else {
        logits = next_pass(row, settings_.max_tokens - n - 1);
        row = 0;
      }
    }
  }

  // Tokens that belong into the sequence's cache: all but the last drawn.
  int fed() const { return static_cast<int>(history_.size()) - 1; }

  // Whether row + 1 of the last pass was computed behind the tokens drawn so far.
  bool guess_was_right(int row, int id) const {
    const auto next = static_cast<size_t>(row) + 1;
    return next < pass_.size() && pass_[next] == id;
  }

  // Forgets what wrong guesses left behind and runs the last token, with guesses behind it. accepted: of the last pass.
  Rows next_pass(int accepted, int still_wanted) {
    if (pass_.size() > 1) {
      draft_length_.saw_guesses(trust_, static_cast<int>(pass_.size()) - 1, accepted);
      result_.speculation.accepted += accepted;
      sequence_.truncate(fed());
    }
    pass_.assign(1, history_.back());
    if (context_.drafter != nullptr) guess(std::min(still_wanted - 1, context_.max_context - fed() - 1));
    const auto start = Clock::now();
    Rows logits = sequence_.feed_generated(context_.runner, pass_, context_.token_listener, true);
    draft_length_.saw_pass(static_cast<int>(pass_.size()), seconds_since(start));
    result_.speculation.passes++;
    return logits;
  }

  // Adds at most `room` guesses to the next pass.
  void guess(int room) {
    const auto start = Clock::now();
    trust_ = context_.drafter->look(history_);
    const int n = trust_ < 0 ? 0 : std::min(room, draft_length_.choose(trust_));
    if (n > 0) {
      context_.drafter->prepare(history_);
      const auto proposing = Clock::now();
      const auto guesses = context_.drafter->propose(history_, n, sampler_);
      pass_.insert(pass_.end(), guesses.begin(), guesses.end());
      result_.speculation.drafted += static_cast<int64_t>(guesses.size());
      draft_length_.saw_drafting(static_cast<int>(guesses.size()), seconds_since(proposing));
    }
    result_.speculation.draft_seconds += seconds_since(start);
  }

  // Records a token and shows it; false when the caller wants no more.
  bool emit(int id, std::span<const float> logits) {
    TokenLogprobs logprobs = log_probabilities(logits, id, settings_.top_logprobs);
    GeneratedToken token{id, matcher_.push(decoder_.push(id)), logprobs.chosen, std::move(logprobs.top)};
    result_.text += token.text;
    result_.tokens.push_back(std::move(token));
    return !on_token_ || on_token_(result_.tokens.back());
  }

  // The end of the stream: bytes of an unfinished character, and text that might have become a stop string.
  void emit_rest() {
    const std::string rest = matcher_.push(decoder_.finish()) + matcher_.finish();
    if (rest.empty() || result_.tokens.empty()) return;
    result_.text += rest;
    result_.tokens.back().text += rest;
    if (on_token_) on_token_({-1, rest, 0, {}});
  }

  void stop(StopReason reason) {
    result_.reason = reason;
    if (sequence_.length() > fed()) sequence_.truncate(fed());  // guesses that nobody asked about any more
  }

  const GenerationContext& context_;
  Sequence& sequence_;
  const GenerateSettings& settings_;
  const TokenCallback& on_token_;
  Sampler sampler_;
  StreamDecoder decoder_;
  StopMatcher matcher_;
  DraftLength draft_length_;
  int trust_ = -1;         ///< of the guesses in the last pass
  std::vector<int> pass_;  ///< what it ran: the last token drawn, then guesses
  std::vector<int> history_;
  GenerateResult result_;
};

}  // namespace

const char* to_string(StopReason reason) {
  switch (reason) {
    case StopReason::end_of_text:
      return "end_of_text";
    case StopReason::stop_string:
      return "stop_string";
    case StopReason::max_tokens:
      return "max_tokens";
    case StopReason::context_full:
      return "context_full";
    case StopReason::cancelled:
      return "cancelled";
  }
  return "?";
}

GenerateResult generate(const GenerationContext& context, Sequence& sequence, const std::vector<int>& prompt,
                        const GenerateSettings& settings, const TokenCallback& on_token) {
  LIULI_CHECK(!prompt.empty() && static_cast<int64_t>(prompt.size()) <= context.max_context);
  return Generation(context, sequence, settings, on_token).run(prompt);
}

}  // namespace liuli
