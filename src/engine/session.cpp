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
  EngineParts* draft = nullptr;            ///< of the smaller model that guesses
  std::optional<Sequence> draft_sequence;  ///< its own cache of this conversation

  std::unique_ptr<Drafter> make_drafter(const GenerateSettings& settings);
  void use_draft(EngineParts& other);
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
// Guesses are token ids: they mean the same only if every id stands for the same text.
void check_same_tokens(const EngineParts& model, const EngineParts& draft) {
  const int n = model.tokenizer->vocab_size(), other = draft.tokenizer->vocab_size();
  if (n != other)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} cannot guess for {}: its vocabulary has {} tokens, the model's {}",
                            draft.path, model.path, other, n));
  for (int id = 0; id < n; id++)
    if (model.tokenizer->token_bytes(id) != draft.tokenizer->token_bytes(id))
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{} cannot guess for {}: token {} is '{}' there, '{}' in the model", draft.path,
                      model.path, id, draft.tokenizer->token_bytes(id), model.tokenizer->token_bytes(id)));
}

void check_speculation(const GenerateSettings& settings) {
  const Speculation& speculation = settings.speculation;
  if (speculation.source == Speculation::Source::none) return;
  if (speculation.max_draft < 1)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("at most {} guesses per pass, expected 1 or more", speculation.max_draft));
  if (!settings.hooks.empty())  // a hook would see, and count, guesses that are never drawn
    throw Error(ErrorCode::unsupported,
                "edits and speculation do not go together: wrong guesses would pass through the edits, too; "
                "leave one of them out");
  if (speculation.source == Speculation::Source::draft && speculation.draft == nullptr)
    throw Error(ErrorCode::invalid_argument, "speculation by a draft model: no draft model was given");
}
}  // namespace

void Session::Impl::use_draft(EngineParts& other) {
  if (draft == &other) return;
  if (other.model == nullptr)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: only its tokenizer was loaded: it cannot guess", other.path));
  other.require_logits("guesses");
  if (parts.model->config.is_encoder_decoder() || other.model->config.is_encoder_decoder())
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{} cannot guess for {}: encoder-decoders take no draft model", other.path, parts.path));
  check_same_tokens(parts, other);
  draft = &other;
  draft_sequence.emplace(*other.model, other.classes);
}

std::unique_ptr<Drafter> Session::Impl::make_drafter(const GenerateSettings& settings) {
  check_speculation(settings);
  const Speculation& speculation = settings.speculation;
  if (speculation.source == Speculation::Source::none) return nullptr;
  if (speculation.source == Speculation::Source::lookup) return std::make_unique<LookupDrafter>();
  use_draft(speculation.draft->parts());
  return std::make_unique<ModelDrafter>(*draft_sequence, *parts.runner, settings.sampling,
                                        parts.tokenizer->vocab_size(), draft->model->config.max_seq_len);
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
  const std::unique_ptr<Drafter> drafter = impl_->make_drafter(settings);
  const GenerationContext context{*parts.runner,      *parts.tokenizer, parts.end_tokens,
                                  impl_->max_context, watcher,          changes ? watcher : nullptr,
                                  drafter.get()};
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
