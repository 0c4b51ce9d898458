// liuli explain MODEL --at NAME[…]: one number of a model's run.
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/edits_option.h"
#include "cli/explain_number.h"
#include "cli/interrupt.h"
#include "cli/language_options.h"
#include "cli/model_options.h"
#include "cli/text_table.h"
#include "cli/token_input.h"

namespace liuli::cli {
namespace {

struct NumberQuestion {
  ModelOptions model;
  TokenInput tokens;
  BesideInput beside;
  EditOptions edits;
  LanguageOptions language;
  std::vector<std::string> at;
  std::optional<size_t> terms;
  bool with_exact = false;
};

int explain_number(const NumberQuestion& question, bool json) {
  Engine engine = load_engine(question.model);
  const std::vector<int> ids = read_tokens(question.tokens, engine);
  ExplainNumberSettings settings;
  settings.beside = read_beside(question.beside, engine);
  settings.with_exact = question.with_exact;
  settings.max_terms = question.terms.value_or(json ? 0 : 8);
  const EditHooks edits(engine, read_edits(question.edits, engine), ids);
  settings.hooks = edits.hooks();
  const std::vector<NumberExplanation> explained = engine.explain(ids, question.at, settings);
  edits.require_all_applied();
  if (json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const NumberExplanation& e : explained) all.push_back(e);
    fmt::print("{}\n", json_text(all.size() == 1 ? all[0] : all));
    return 0;
  }
  for (size_t i = 0; i < explained.size(); i++)
    fmt::print("{}{}", i > 0 ? "\n" : "",
               render_text(explained[i], question.language.language(), settings.max_terms,
                           {terminal_width(), isatty(STDOUT_FILENO) == 1}));
  return 0;
}

// What has no subcommand needs all three.
void require_complete(const NumberQuestion& question) {
  const bool has_tokens =
      question.tokens.has_ids || question.tokens.has_prompt || !question.tokens.ids_file.empty();
  if (question.model.model.empty()) throw CLI::RequiredError("MODEL with --at, or one of the calculations");
  if (question.at.empty()) throw CLI::RequiredError("--at");
  if (!has_tokens) throw CLI::RequiredError("--prompt or --ids");
}

}  // namespace

void add_number_explanation(CLI::App& command, Program& program) {
  auto question = std::make_shared<NumberQuestion>();
  add_model_argument(command, question->model.model);
  add_load_options(command, question->model);
  add_token_input(command, question->tokens, false);
  add_source_input(command, question->beside);
  add_token_types_input(command, question->beside);
  add_edit_options(command, question->edits);
  command
      .add_option("--at", question->at,
                  "a number: a point's name with an index, blocks.3.attn.pattern[2,5,1]; may be repeated")
      ->allow_extra_args(false)
      ->type_name("NUMBER");
  command.add_option("--terms", question->terms,
                     "how many terms to show, largest first; 0: all (default: 8)");
  command.add_flag("--with-exact", question->with_exact, "run once more in double, and show the distance");
  add_language_option(command, question->language);
  add_json_flag(command, program);
  command.callback([question, &program, &command] {
    if (!command.get_subcommands().empty()) return;
    require_complete(*question);
    program.action = [question, &program] {
      const InterruptGuard guard;
      return explain_number(*question, program.json);
    };
  });
}

}  // namespace liuli::cli
