#include <fmt/format.h>

#include "core/check.h"
#include "engine/engine_parts.h"
#include "generate/generate.h"
#include "report/first_token.h"
#include "trace/hooks.h"

namespace liuli {

struct Session::Impl {
  Impl(EngineParts& engine_parts, int context)
      : parts(engine_parts), max_context(context), sequence(*engine_parts.model, engine_parts.classes) {}
  EngineParts& parts;
  int max_context;
  Sequence sequence;
};

Session::Session(Engine& engine, int max_context) {
  const int64_t longest = engine.config().max_seq_len;
  engine.parts().require_logits("text generation");
  if (max_context < 0 || max_context > longest)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("context is {}, expected 1…{} (0: the model's own)", max_context, longest));
  impl_ = std::make_unique<Impl>(engine.parts(), max_context > 0 ? max_context : static_cast<int>(longest));
}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;

void Session::read_source(const std::vector<int>& source) {
  impl_->parts.check_beside({source}, 0);
  if (source != impl_->sequence.source()) impl_->sequence.read_source(*impl_->parts.runner, source);
}

namespace {
// Keys and values that hooks changed, or that were formed without them, serve nobody else.
class ForgetChanged {
 public:
  ForgetChanged(Sequence& sequence, bool changes) : sequence_(changes ? &sequence : nullptr) { forget(); }
  ~ForgetChanged() { forget(); }
  ForgetChanged(const ForgetChanged&) = delete;
  ForgetChanged& operator=(const ForgetChanged&) = delete;

 private:
  void forget() const {
    if (sequence_ != nullptr) sequence_->truncate(0);
  }
  Sequence* sequence_;
};
}  // namespace

GenerateResult Session::generate(const std::vector<int>& prompt, const GenerateSettings& settings,
                                 const std::function<bool(const GeneratedToken&)>& on_token) {
  EngineParts& parts = impl_->parts;
  parts.check_tokens(prompt, 0, impl_->max_context);
  // A lens on the last token shows nothing where the stream is normalised after every sum.
  const bool report = settings.first_token_report && !parts.model->config.is_encoder_decoder();
  LastTokenProbe probe;
  HookProbe hooks(parts.model->config, settings.hooks, report ? &probe : nullptr);
  const bool changes = !settings.hooks.empty();
  Probe* watcher = changes ? static_cast<Probe*>(&hooks) : report ? &probe : nullptr;
  const GenerationContext context{*parts.runner,      *parts.tokenizer, parts.end_tokens,
                                  impl_->max_context, watcher,          changes ? watcher : nullptr};
  const ForgetChanged forget(impl_->sequence, changes);
  GenerateResult result = liuli::generate(context, impl_->sequence, prompt, settings, on_token);
  hooks.require_all_fired();
  if (report && !result.tokens.empty())
    result.first_token = first_token_report(*parts.model, *parts.runner, *parts.tokenizer, probe,
                                            prompt.back(), result.tokens.front().id, parts.classes.prompt);
  return result;
}

namespace {
std::span<const float> row_of(Rows logits, int64_t i) {
  return {logits.row(i), static_cast<size_t>(logits.width)};
}
}  // namespace

std::span<const float> Session::feed(std::span<const int> ids, bool generated, int chunk) {
  EngineParts& parts = impl_->parts;
  parts.check_tokens(ids, impl_->sequence.length(), impl_->max_context);
  if (generated) {
    const Rows logits = impl_->sequence.feed_generated(*parts.runner, ids);
    return row_of(logits, logits.n - 1);
  }
  FeedOptions options;
  options.chunk = chunk;
  const Rows logits = impl_->sequence.feed(*parts.runner, ids, options);
  return row_of(logits, logits.n - 1);
}

std::vector<std::span<const float>> Session::feed_together(std::span<Session* const> sessions,
                                                           std::span<const int> ids) {
  if (sessions.empty() || sessions.size() != ids.size())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} sessions and {} tokens, expected one token for each", sessions.size(), ids.size()));
  std::vector<Sequence*> sequences;
  EngineParts& parts = sessions.front()->impl_->parts;
  for (size_t i = 0; i < sessions.size(); i++) {
    Impl& impl = *sessions[i]->impl_;
    if (&impl.parts != &parts)
      throw Error(ErrorCode::invalid_argument, "the sessions belong to different engines");
    parts.check_tokens(ids.subspan(i, 1), impl.sequence.length(), impl.max_context);
    sequences.push_back(&impl.sequence);
  }
  const Rows logits = Sequence::feed_together(*parts.runner, sequences, ids);
  std::vector<std::span<const float>> rows;
  for (int64_t i = 0; i < logits.n; i++) rows.push_back(row_of(logits, i));
  return rows;
}

const std::vector<int>& Session::tokens() const { return impl_->sequence.tokens(); }
int Session::max_context() const { return impl_->max_context; }
size_t Session::cache_bytes() const { return impl_->sequence.cache().bytes(); }

void Session::truncate(int n_tokens) {
  if (n_tokens < 0 || n_tokens > impl_->sequence.length())
    throw Error(ErrorCode::invalid_argument, fmt::format("cannot cut the session to {} tokens, it has {}",
                                                         n_tokens, impl_->sequence.length()));
  impl_->sequence.truncate(n_tokens);
}

}  // namespace liuli
