// liuli tour: one run as one page that opens offline.
#include <memory>

#include <fmt/format.h>

#include "cli/interrupt.h"
#include "cli/language_options.h"
#include "cli/model_options.h"
#include "cli/program.h"
#include "cli/text_table.h"
#include "cli/token_input.h"
#include "core/output_file.h"
#include "liuli/tour.h"

namespace liuli::cli {
namespace {

struct TourOptions {
  ModelOptions model;
  LanguageOptions language;
  std::string prompt, ids, output = "tour.html";
  bool has_prompt = false, chat = false, only_data = false;
  TourSettings settings;
};

std::vector<int> tour_tokens(const TourOptions& options, const Engine& engine, Language language) {
  if (!options.ids.empty()) return parse_ids(options.ids);
  const char* sample = language == Language::zh ? "中国的首都是" : "The capital of France is";
  const std::string text = options.has_prompt ? options.prompt : sample;
  if (text.empty()) throw Error(ErrorCode::invalid_argument, "the prompt is empty");
  return options.chat ? prompt_tokens(text, "", false, engine) : engine.tokenize(text);
}

int tour(const TourOptions& options, bool json) {
  const InterruptGuard guard;
  Engine engine = load_engine(options.model);
  TourSettings settings = options.settings;
  settings.language = options.language.language();
  settings.digits = options.language.digits;
  settings.model = options.model.model;
  settings.on_progress = [](int, int) { throw_if_interrupted(); };
  const std::vector<int> ids = tour_tokens(options, engine, settings.language);
  const nlohmann::ordered_json data = collect_tour(engine, ids, settings);
  const std::string text = options.only_data ? data.dump() + "\n" : tour_page(data);
  OutputFile file(options.output);
  file.write(text);
  file.commit();
  if (json) {
    fmt::print(
        "{}\n",
        json_text(
            {{"output", options.output}, {"bytes", text.size()}, {"ids", ids}, {"layers", data["detail"]}}));
    return 0;
  }
  fmt::print("{}: {}, {} tokens, layers {} in full; open it in a browser\n", options.output,
             size_text(static_cast<int64_t>(text.size())), ids.size(), data["detail"].dump());
  return 0;
}

}  // namespace

void add_tour_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<TourOptions>();
  options->language.digits = options->settings.digits;
  auto* command = app.add_subcommand(
      "tour", "walk through one run as a page: from a line of text to the first new token");
  command->group("Use a model");
  add_model_argument(*command, options->model.model)->required();
  command->add_option_function<std::string>(
      "PROMPT", [options](const std::string& text) { options->prompt = text, options->has_prompt = true; },
      "the text, as it is; none: a sample sentence");
  command->add_option("--ids", options->ids, "the prompt as token ids: 1,2,3")->type_name("IDS");
  command->add_flag("--chat", options->chat, "the text as one user turn of the chat template");
  command->add_option("-o,--output", options->output, "where the page goes")
      ->type_name("FILE")
      ->capture_default_str();
  command
      ->add_option(
          "--layers", options->settings.layers,
          "layers to show in full: 0,5,11 (default: first, last and as many between as keep the page light)")
      ->delimiter(',')
      ->type_name("LAYERS");
  command->add_option("-n,--max-tokens", options->settings.n_generate, "new tokens to show")
      ->check(quiet(CLI::Range(1, 64)))
      ->capture_default_str();
  command->add_flag("--data", options->only_data, "write the data alone, as JSON (docs/tour.md)");
  add_load_options(*command, options->model);
  add_language_options(*command, options->language);
  add_json_flag(*command, program, "print what was written as JSON");
  command->footer(
      "Examples:\n"
      "  liuli tour smollm2 'The capital of France is' -o tour.html\n"
      "  liuli tour qwen2.5 今天西安的天气 --lang zh --layers 0,11,23");
  command->callback(
      [options, &program] { program.action = [options, &program] { return tour(*options, program.json); }; });
}

}  // namespace liuli::cli
