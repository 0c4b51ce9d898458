#include "cli/speculation_options.h"

#include <fmt/format.h>

#include "cli/program.h"

namespace liuli::cli {
namespace {

// The first token comes out of the prompt's pass.
double tokens_per_pass(const GenerateResult& result) {
  if (result.speculation.passes == 0 || result.tokens.empty()) return 0;
  return static_cast<double>(result.tokens.size() - 1) / static_cast<double>(result.speculation.passes);
}

}  // namespace

void add_speculation_options(CLI::App& command, SpeculationOptions& options) {
  command
      .add_option("--speculate", options.source,
                  "guess tokens and check several in one pass; the text stays the same. lookup: from the "
                  "text so far; "
                  "MODEL: by a smaller model with the same tokens")
      ->type_name("lookup|MODEL")
      ->group("Speed");
  command.add_option("--draft-max", options.max_draft, "at most so many guesses per pass")
      ->check(quiet(CLI::Range(1, 1024)))
      ->capture_default_str()
      ->group("Speed");
}

Speculation load_speculation(const SpeculationOptions& options, const ModelOptions& model,
                             std::optional<Engine>& draft) {
  Speculation speculation;
  speculation.max_draft = options.max_draft;
  if (options.source.empty()) return speculation;
  if (options.source == "lookup") {
    speculation.source = Speculation::Source::lookup;
    return speculation;
  }
  ModelOptions smaller = model;
  smaller.model = options.source;
  smaller.settings.chat_template.clear();
  draft.emplace(load_engine(smaller));
  speculation.source = Speculation::Source::draft;
  speculation.draft = &*draft;
  return speculation;
}

std::string speculation_text(const SpeculationOptions& options, const GenerateResult& result) {
  if (options.source.empty()) return "";
  return fmt::format(" · guesses: {} of {} right, {:.2f} tokens per pass", result.speculation.accepted,
                     result.speculation.drafted, tokens_per_pass(result));
}

nlohmann::ordered_json speculation_json(const SpeculationOptions& options, const GenerateResult& result) {
  return {{"source", options.source},
          {"passes", result.speculation.passes},
          {"guessed", result.speculation.drafted},
          {"right", result.speculation.accepted},
          {"tokens_per_pass", tokens_per_pass(result)},
          {"guessing_seconds", result.speculation.draft_seconds}};
}

}  // namespace liuli::cli
