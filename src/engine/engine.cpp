#include "liuli/engine.h"

#include <algorithm>
#include <cmath>
#include <future>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/engine_parts.h"
#include "model/load.h"
#include "report/plan.h"
#include "trace/hooks.h"
#include "trace/recorder.h"

namespace liuli {

Engine::Engine(std::unique_ptr<EngineParts> parts) : parts_(std::move(parts)) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

namespace {
void check_cache_type(CacheType type, ProductClass product_class) {
  if (type == CacheType::automatic || cache_type_in(product_class, type) == type) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("cache type is {}, but the {} class keeps keys and values in f32; take class "
                          "prompt or decode for another type",
                          to_string(type), to_string(product_class)));
}

bool has_codes(const Matrix& m) {
  return kernels::best_kernels().weights[static_cast<size_t>(m.type())].expand_codes != nullptr;
}

// Matrices that are multiplied: tables are only looked up, unless the embedding is the output matrix, too.
bool multiplies_codes(const Model& model) {
  bool found = false;
  model.for_each_matrix([&](const Matrix& m) {
    const bool table = (&m == &model.token_embedding && !model.output_matrix.empty()) ||
                       &m == &model.position_embedding || &m == &model.token_types;
    found = found || (!table && has_codes(m));
  });
  return found;
}

void check_class(PromptProducts products, ProductClass product_class) {
  if (products == PromptProducts::bf16 || product_class == ProductClass::prompt) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("prompt products are {}, but prompts run in the {} class; take class prompt or auto",
                  to_string(products), to_string(product_class)));
}

void use_prompt_products(EngineParts& parts, PromptProducts products) {
  if (products == PromptProducts::bf16) return;
  if (!multiplies_codes(*parts.model))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: prompt products are {}, but no matrix of this model has integer codes",
                            parts.path, to_string(products)));
  parts.runner->int8_prompts = true;
}
}  // namespace

const char* to_string(PromptProducts products) { return products == PromptProducts::int8 ? "int8" : "bf16"; }

PromptProducts prompt_products_named(std::string_view name) {
  for (const PromptProducts products : {PromptProducts::bf16, PromptProducts::int8})
    if (name == to_string(products)) return products;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("prompt products are \"{}\", known are bf16, int8", name));
}

Engine Engine::load(const std::string& path, const LoadSettings& settings) {
  kernels::best_kernels();  // a bad LIULI_ISA is refused before any work
  if (settings.threads < 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("threads is {}, expected 0 (all) or more", settings.threads));
  if (settings.exact && !settings.panels.empty() && settings.panels != kNoPanelFile)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("panels are {}, but an exact run reads the model's own rows; take one of both",
                            settings.panels));
  std::shared_ptr<WeightSource> source = open_weights(path);
  auto parts = std::make_unique<EngineParts>();
  parts->path = path;
  parts->runner = std::make_unique<Runner>(settings.threads);
  // A vocabulary with its merges takes one thread some 0.1 s, while the others can pack weights already.
  const auto policy = parts->runner->pool.size() > 1 ? std::launch::async : std::launch::deferred;
  auto text = std::async(policy, [&] { load_text_parts(*parts, *source, settings.chat_template); });
  parts->classes = run_classes(settings, *source);
  check_cache_type(settings.cache_type, parts->classes.prompt);
  check_class(settings.prompt_products, parts->classes.prompt);
  parts->embedding = embedding_defaults(*source);
  const LoadOptions options{settings.exact ? WeightForm::file_rows : WeightForm::panels, settings.on_progress,
                            settings.panels};
  parts->model = std::make_unique<Model>(load_model(source, parts->runner->pool, options));
  text.get();
  if (settings.cache_type != CacheType::automatic) parts->model->cache_form = settings.cache_type;
  use_prompt_products(*parts, settings.prompt_products);
  return Engine(std::move(parts));
}

Engine Engine::load_tokenizer(const std::string& path, const std::string& chat_template) {
  const auto source = open_weights(path);
  auto parts = std::make_unique<EngineParts>();
  parts->path = path;
  load_text_parts(*parts, *source, chat_template);
  return Engine(std::move(parts));
}

const ModelConfig& Engine::config() const {
  if (parts_->model == nullptr)
    throw Error(ErrorCode::invalid_argument, parts_->path + ": only the tokenizer was loaded");
  return parts_->model->config;
}

std::vector<std::string> Engine::notices() const {
  return parts_->model == nullptr ? std::vector<std::string>{} : load_notices(*parts_->model);
}

int Engine::threads() const { return parts_->runner == nullptr ? 1 : parts_->runner->pool.size(); }

std::vector<int> Engine::tokenize(std::string_view text, bool add_special, bool parse_special) const {
  return parts_->tokenizer->encode(text, add_special, parse_special);
}

namespace {
void check_vocabulary(const Tokenizer& tokenizer, std::span<const int> ids) {
  for (int id : ids)
    if (id < 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("token {} is negative; the vocabulary has {}", id, tokenizer.vocab_size()));
}
}  // namespace

std::string Engine::detokenize(const std::vector<int>& ids) const {
  check_vocabulary(*parts_->tokenizer, ids);
  return parts_->tokenizer->decode(ids);
}

std::string Engine::token_text(int id) const { return detokenize({id}); }
int Engine::vocab_size() const { return parts_->tokenizer->vocab_size(); }

bool Engine::is_end_token(int id) const {
  return std::find(parts_->end_tokens.begin(), parts_->end_tokens.end(), id) != parts_->end_tokens.end();
}

std::optional<int> Engine::bos_id() const {
  const int bos = parts_->tokenizer->data().bos;
  return bos >= 0 ? std::optional<int>(bos) : std::nullopt;
}

const GenerationDefaults& Engine::generation_defaults() const { return parts_->generation_defaults; }

bool Engine::has_chat_template() const { return parts_->chat_template.has_value(); }

ChatPrompt Engine::render_chat(const nlohmann::ordered_json& messages, const nlohmann::ordered_json& tools,
                               bool add_generation_prompt) const {
  if (!parts_->chat_template) throw Error(ErrorCode::unsupported, parts_->chat_template_problem);
  const TokenizerData& data = parts_->tokenizer->data();
  nlohmann::json trusted = {{"add_generation_prompt", add_generation_prompt}};
  auto name = [&](int id) { return id >= 0 ? data.tokens[static_cast<size_t>(id)] : std::string(); };
  trusted["bos_token"] = name(data.bos);
  trusted["eos_token"] = name(data.eos);
  if (data.padding >= 0) trusted["pad_token"] = name(data.padding);
  const auto spans = parts_->chat_template->render({{"messages", messages}, {"tools", tools}}, trusted);
  ChatPrompt prompt;
  for (const TextSpan& span : spans) prompt.text += span.text;
  prompt.ids = parts_->tokenizer->encode_spans(spans);
  return prompt;
}

void Engine::logits(const std::vector<int>& ids,
                    const std::function<void(int, std::span<const float>)>& on_row, int chunk,
                    const BesideTheTokens& beside, const std::vector<Hook>& hooks) {
  parts_->check_tokens(ids, 0, config().max_seq_len);
  parts_->require_logits("logits");
  parts_->check_beside(beside, ids.size());
  HookProbe probe(config(), hooks);
  Sequence sequence(*parts_->model, parts_->classes);
  FeedOptions options;
  if (!hooks.empty()) options.listener = &probe;
  if (!beside.source.empty()) sequence.read_source(*parts_->runner, beside.source, options.listener);
  options.chunk = chunk;
  options.token_types = beside.token_types;
  options.every_logit = true;
  options.on_logits = [&](int first, Rows rows) {
    for (int64_t i = 0; i < rows.n; i++)
      on_row(first + static_cast<int>(i), {rows.row(i), static_cast<size_t>(rows.width)});
  };
  sequence.feed(*parts_->runner, ids, options);
  probe.require_all_fired();
}

namespace {

// Sum and sum of squares of −log p(next token) over one window.
struct NllSums {
  double sum = 0, squares = 0;
  int64_t n = 0;

  void add(std::span<const float> logits, int next) {
    const auto& rows = kernels::best_kernels().rows;
    const double lse =
        static_cast<double>(rows.log_sum_exp(logits.data(), static_cast<int64_t>(logits.size())));
    const double nll = lse - static_cast<double>(logits[static_cast<size_t>(next)]);
    sum += nll;
    squares += nll * nll;
    n++;
  }
};

}  // namespace

PerplexityResult Engine::perplexity(const std::vector<int>& ids, int context,
                                    const std::function<void(int64_t, int64_t)>& on_progress,
                                    const std::vector<Hook>& hooks) {
  const int64_t longest = config().max_seq_len;
  parts_->require_logits("perplexity");
  if (context < 2 || context > longest)
    throw Error(ErrorCode::invalid_argument, fmt::format("context is {}, expected 2…{}", context, longest));
  if (ids.size() < 2)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the text has {} tokens, perplexity needs at least 2", ids.size()));
  NllSums sums;
  for (size_t at = 0; at + 1 < ids.size(); at += static_cast<size_t>(context)) {
    const size_t n = std::min(static_cast<size_t>(context), ids.size() - at);
    if (n < 2) break;
    const std::vector<int> window(ids.begin() + static_cast<ptrdiff_t>(at),
                                  ids.begin() + static_cast<ptrdiff_t>(at + n));
    const auto on_row = [&](int position, std::span<const float> row) {
      if (static_cast<size_t>(position) + 1 < n) sums.add(row, window[static_cast<size_t>(position) + 1]);
    };
    logits(window, on_row, 512, {}, hooks);
    if (on_progress) on_progress(static_cast<int64_t>(at + n), static_cast<int64_t>(ids.size()));
  }
  const auto n = static_cast<double>(sums.n);
  PerplexityResult result;
  result.predicted_tokens = sums.n;
  result.mean_nll = sums.sum / n;
  result.perplexity = std::exp(result.mean_nll);
  const double variance = std::max(0.0, sums.squares / n - result.mean_nll * result.mean_nll);
  result.standard_error = std::sqrt(variance / n);
  return result;
}

namespace {

bool lies_behind(const Place& place, int stop_at_layer) {
  if (place.stack == Stack::encoder) return false;
  if (place.layer >= 0) return place.layer >= stop_at_layer;
  return place.point == Point::logits || place.point == Point::pooler ||
         place.point >= norm_point(NormSite::ln_final, NormStage::mean);
}

// What is captured of a run that may end early.
std::vector<Capture> captures_before(std::vector<Capture> captures, int stop_at_layer) {
  if (stop_at_layer < 0 || captures.empty()) return captures;
  const std::string first = captures.front().name;
  std::erase_if(captures, [&](const Capture& capture) { return lies_behind(capture.place, stop_at_layer); });
  if (captures.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} lies behind the first {} blocks, where the run stops", first, stop_at_layer));
  return captures;
}

}  // namespace

std::vector<TracedTensor> Engine::trace(const std::vector<int>& ids, const std::vector<std::string>& points,
                                        const TraceSettings& settings) {
  parts_->check_tokens(ids, 0, config().max_seq_len);
  parts_->check_beside(settings.beside, ids.size());
  const std::vector<int>& source = settings.beside.source;
  const TokenCounts counts{static_cast<int64_t>(ids.size()), static_cast<int64_t>(source.size())};
  Recorder recorder(
      captures_before(select_captures(config(), points, settings.slices, counts), settings.stop_at_layer),
      settings.max_bytes, settings.sink, &parts_->runner->pool);
  HookProbe listener(config(), settings.hooks, &recorder);
  Sequence sequence(*parts_->model, parts_->classes);
  if (!source.empty()) sequence.read_source(*parts_->runner, source, &listener);
  FeedOptions options;
  options.token_types = settings.beside.token_types;
  options.chunk = recorder.needs_one_pass() ? static_cast<int>(ids.size()) : settings.chunk;
  options.listener = &listener;
  options.stop_at_layer = settings.stop_at_layer;
  options.every_logit = recorder.needs_every_logit();
  sequence.feed(*parts_->runner, ids, options);
  listener.require_all_fired();
  return recorder.take();
}

int64_t Engine::trace_bytes(int64_t n_tokens, const std::vector<std::string>& points, int64_t n_source,
                            const TraceSlices& slices) const {
  return capture_bytes(select_captures(config(), points, slices, {n_tokens, n_source}));
}

ModelPlan Engine::plan(int context) const {
  config();
  return make_plan(*parts_->model, parts_->classes, *parts_->runner, context);
}

ModelConfig read_config(const std::string& path) { return read_model_config(*open_weights(path)); }

std::string active_isa() { return kernels::best_kernels().name; }

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (auto isa : kernels::kAllIsas)
    if (const auto* table = kernels::kernels_for(isa)) names.push_back(table->name);
  return names;
}

}  // namespace liuli
