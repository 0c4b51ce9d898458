// liuli run: one answer to one prompt, then how its first token came about.
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/edits_option.h"
#include "cli/exit_codes.h"
#include "cli/generation_options.h"
#include "cli/interrupt.h"
#include "cli/language_options.h"
#include "cli/model_options.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/run_report.h"
#include "cli/speculation_options.h"
#include "cli/text_table.h"
#include "cli/token_input.h"

namespace liuli::cli {
namespace {

struct RunOptions {
  ModelOptions model;
  GenerationOptions generation;
  LanguageOptions language;
  BesideInput beside;
  EditOptions edits;
  SpeculationOptions speculation;
  std::string prompt, file, system, ids;
  bool has_prompt = false;
  bool raw = false;
  bool report = false, no_report = false;
};

constexpr const char* kHelpFooter =
    "Examples:\n"
    "  liuli run smollm2.gguf 'What is the capital of France?'\n"
    "  liuli run smollm2.gguf --temperature 0.8 --top-p 0.95 --seed 7 'Write a haiku about glass.'\n"
    "  liuli run smollm2.gguf --raw 'The capital of France is' -n 8 --logprobs 3\n"
    "  liuli run qwen2.5.gguf --speculate lookup -f edit-this.txt\n"
    "  git diff | liuli run smollm2.gguf --system 'Write a commit message.' - > message.txt\n"
    "The answer goes to standard output, speed and notices to standard error.";

// The prompt: argument, file, standard input (asked for by -, or a pipe), or a question that shows something.
std::string prompt_text(const RunOptions& options) {
  if (!options.file.empty()) return read_file(options.file);
  if (options.has_prompt && options.prompt != "-") return options.prompt;
  std::string text;
  if (options.prompt == "-" || standard_input_has_data()) text = read_standard_input();
  if (!text.empty()) return text;
  if (options.prompt == "-") throw Error(ErrorCode::invalid_argument, "standard input is empty: no prompt");
  return options.language.language() == Language::zh ? "中国的首都是哪里？"
                                                     : "What is the capital of France?";
}

// --ids, or where an encoder-decoder's answer begins; a text prompt goes on from there.
std::vector<int> prompt_ids(const RunOptions& options, const std::string& prompt, const Engine& engine) {
  if (!options.ids.empty()) return parse_ids(options.ids);
  const ModelConfig& config = engine.config();
  if (!config.is_encoder_decoder()) return prompt_tokens(prompt, options.system, options.raw, engine);
  if (config.decoder_start_token < 0)
    throw Error(ErrorCode::invalid_argument,
                "the model does not state its first target token: give the target's beginning with --ids");
  std::vector<int> ids = {static_cast<int>(config.decoder_start_token)};
  if (!options.has_prompt) return ids;
  const std::vector<int> more = engine.tokenize(prompt, false, options.raw);
  ids.insert(ids.end(), more.begin(), more.end());
  return ids;
}

bool wants_report(const RunOptions& options, bool json) {
  if (options.no_report) return false;
  return options.report || (!json && isatty(STDOUT_FILENO) == 1);
}

void print_piece(const std::string& text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

GenerateResult generate(const GenerateSettings& chosen, Session& session, const std::vector<int>& prompt,
                        bool streaming) {
  Progress progress("reading the prompt", ProgressUnit::tokens);
  GenerateSettings settings = chosen;
  settings.cancel = &InterruptGuard::flag();
  settings.on_prompt_progress = [&progress](int done, int total) { progress.update(done, total); };
  GenerateResult result = session.generate(prompt, settings, [&](const GeneratedToken& token) {
    progress.clear();
    if (streaming) print_piece(token.text);
    return true;
  });
  if (streaming && !result.text.ends_with('\n')) print_piece("\n");
  if (result.reason == StopReason::cancelled && result.tokens.empty()) throw_if_interrupted();
  return result;
}

std::string logprob_table(const GenerateResult& result, const Engine& engine) {
  TextTable table({{"token"}, {"id", Align::right}, {"log p", Align::right}, {"alternatives"}});
  for (const GeneratedToken& token : result.tokens) {
    std::string others;
    for (const TokenLogprob& other : token.top) {
      others += fmt::format("{}{} {:.3f}", others.empty() ? "" : "  ", visible(engine.token_text(other.id)),
                            other.logprob);
    }
    table.add_row({visible(engine.token_text(token.id)), fmt::format("{}", token.id),
                   fmt::format("{:.4f}", token.logprob), others});
  }
  return table.render();
}

nlohmann::ordered_json token_json(const GeneratedToken& token, const Engine& engine) {
  nlohmann::ordered_json json = {
      {"id", token.id}, {"text", engine.token_text(token.id)}, {"logprob", token.logprob}};
  auto top = nlohmann::ordered_json::array();
  for (const TokenLogprob& other : token.top) {
    top.push_back({{"id", other.id}, {"text", engine.token_text(other.id)}, {"logprob", other.logprob}});
  }
  json["top"] = std::move(top);
  return json;
}

nlohmann::ordered_json result_json(const RunOptions& options, const GenerateResult& result,
                                   const Engine& engine) {
  auto ids = nlohmann::ordered_json::array();
  for (const GeneratedToken& token : result.tokens) ids.push_back(token.id);
  const double fresh = result.prompt_tokens - result.reused_tokens;
  const double decoded = result.tokens.empty() ? 0 : static_cast<double>(result.tokens.size() - 1);
  nlohmann::ordered_json json = {
      {"model", options.model.model},
      {"text", result.text},
      {"ids", std::move(ids)},
      {"stop_reason", to_string(result.reason)},
      {"seed", options.generation.settings.sampling.seed},
      {"prompt_tokens", result.prompt_tokens},
      {"generated_tokens", result.tokens.size()},
      {"prompt_seconds", result.prompt_seconds},
      {"decode_seconds", result.decode_seconds},
      {"prompt_tokens_per_second", tokens_per_second(fresh, result.prompt_seconds)},
      {"generated_tokens_per_second", tokens_per_second(decoded, result.decode_seconds)}};
  if (options.generation.settings.top_logprobs > 0) {
    json["tokens"] = nlohmann::ordered_json::array();
    for (const GeneratedToken& token : result.tokens) json["tokens"].push_back(token_json(token, engine));
  }
  if (!options.speculation.source.empty())
    json["speculation"] = speculation_json(options.speculation, result);
  if (result.first_token) {
    json["first_token"] =
        first_token_json(*result.first_token, options.language.language(), options.language.digits);
  }
  return json;
}

void print_for_people(const RunOptions& options, const GenerateResult& result, const Engine& engine,
                      int max_context) {
  const std::string stopped = stop_notice(result.reason, options.generation.settings.max_tokens, max_context);
  const std::string recommended = recommended_settings(options.generation, engine);
  fmt::print(stderr, "[{}{}{}]\n", timing_line(result, stopped),
             speculation_text(options.speculation, result),
             recommended.empty() ? "" : " · the model's own sampling: " + recommended);
  if (options.generation.settings.top_logprobs > 0) fmt::print("\n{}", logprob_table(result, engine));
  if (!result.first_token) return;
  fmt::print("\n{}", first_token_text(*result.first_token, options.model.model, options.language.language(),
                                      options.language.digits));
}

int run(const RunOptions& options, bool json) {
  const InterruptGuard guard;
  const bool by_ids =
      !options.ids.empty() || !options.beside.source.empty() || !options.beside.source_ids.empty();
  const std::string prompt = by_ids ? options.prompt : prompt_text(options);
  Engine engine = load_engine(options.model);
  GenerateSettings settings = generate_settings(options.generation, engine);
  settings.first_token_report = wants_report(options, json);
  std::optional<Engine> draft;
  settings.speculation = load_speculation(options.speculation, options.model, draft);
  Session session(engine, options.generation.context);
  const BesideTheTokens beside = read_beside(options.beside, engine);
  if (engine.config().is_encoder_decoder() || !beside.source.empty()) session.read_source(beside.source);
  const std::vector<int> ids = prompt_ids(options, prompt, engine);
  const EditHooks edits(engine, read_edits(options.edits, engine), ids, settings.max_tokens);
  settings.hooks = edits.hooks();
  const GenerateResult result = generate(settings, session, ids, !json);
  edits.require_all_applied();
  if (json) {
    fmt::print("{}\n", json_text(result_json(options, result, engine)));
  } else {
    print_for_people(options, result, engine, session.max_context());
  }
  return 0;
}

}  // namespace

void add_run_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<RunOptions>();
  auto* command = app.add_subcommand("run", "answer one prompt, and show how the first token came about");
  command->group("Use a model");
  add_model_argument(*command, options->model.model)->required();
  command->add_option_function<std::string>(
      "PROMPT", [options](const std::string& text) { options->prompt = text, options->has_prompt = true; },
      "the prompt; - or a pipe: standard input; none: a sample question");
  command->add_option("-f,--file", options->file, "read the prompt from a file")->type_name("FILE");
  command
      ->add_option("--ids", options->ids,
                   "the prompt as token ids: 1,2,3; an encoder-decoder's target so far")
      ->type_name("IDS");
  add_source_input(*command, options->beside);
  command->add_option("--system", options->system, "system message of the chat template")->type_name("TEXT");
  command->add_flag("--raw", options->raw,
                    "the prompt as it is: no chat template, control tokens recognised");
  command->add_flag("--report", options->report,
                    "show how the first token came about (default on a terminal)");
  command->add_flag("--no-report", options->no_report, "only the answer");
  command
      ->add_option("--logprobs", options->generation.settings.top_logprobs,
                   "log-probability of each token and of the K likeliest (K may be left out: 1)")
      ->check(quiet(CLI::Range(0, 100)))
      ->type_name("[K]");
  add_edit_options(*command, options->edits);
  add_chat_template_option(*command, options->model.settings.chat_template);
  add_load_options(*command, options->model);
  add_generation_options(*command, options->generation);
  add_speculation_options(*command, options->speculation);
  add_language_options(*command, options->language);
  add_json_flag(*command, program, "no streaming; one JSON object at the end");
  command->footer(kHelpFooter);
  command->callback(
      [options, &program] { program.action = [options, &program] { return run(*options, program.json); }; });
}

}  // namespace liuli::cli
