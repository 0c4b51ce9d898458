// liuli explain: one calculation by hand, with the user's numbers or a real model's.
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/explain_model.h"
#include "cli/explain_number.h"
#include "cli/interrupt.h"
#include "cli/language_options.h"
#include "cli/program.h"
#include "cli/text_table.h"
#include "core/output_file.h"

namespace liuli::cli {
namespace {

// One `liuli explain X` command: its own operands beside what all of them share.
struct ExplainOptions {
  LanguageOptions language;
  RunPlace place;
  std::string row, gamma, beta, kind = "layer";  // norm
  double eps = 0;
  std::string q, keys;  // scores
  std::optional<double> scale;
  double soft_cap = 0;
  bool causal = false;
  std::string x, added;  // residual
  ExplosionInputs explosion;
  std::string svg;
};

int show(const Explanation& explanation, bool json) {
  if (json) {
    fmt::print("{}\n", render_json(explanation));
  } else {
    fmt::print("{}", render_text(explanation, {terminal_width(), isatty(STDOUT_FILENO) == 1}));
  }
  return 0;
}

void require(bool given, const char* operands) {
  if (given) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("nothing to work out: give {}, or --model with --prompt or --ids", operands));
}

bool from_model(const ExplainOptions& options) {
  if (options.place.model.model.empty()) return false;
  if (options.place.tokens.has_ids == options.place.tokens.has_prompt) {
    throw Error(ErrorCode::invalid_argument, "--model needs the tokens to run: either --prompt or --ids");
  }
  return true;
}

NormKind norm_kind(const std::string& name) {
  if (name == "rms") return NormKind::rms;
  return name == "batch" ? NormKind::batch : NormKind::layer;
}

// "1,2;3,4": one key per part.
std::vector<std::vector<double>> parse_keys(const std::string& text) {
  std::vector<std::vector<double>> keys;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(';', begin), text.size());
    keys.push_back(parse_numbers(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return keys;
}

int explain_norm_command(const ExplainOptions& options, bool json) {
  NormInputs inputs;
  if (from_model(options)) {
    inputs = norm_inputs(options.place);
  } else {
    require(!options.row.empty(), "--row");
    inputs.kind = norm_kind(options.kind);
    inputs.row = parse_numbers(options.row);
    inputs.gamma = parse_numbers(options.gamma);
    inputs.beta = parse_numbers(options.beta);
    inputs.eps = options.eps;
  }
  return show(explain_norm(inputs, options.language.language(), options.language.digits), json);
}

int explain_scores_command(const ExplainOptions& options, bool json) {
  ScoreInputs inputs;
  if (from_model(options)) {
    inputs = score_inputs(options.place);
  } else {
    require(!options.q.empty() && !options.keys.empty(), "--q and --keys");
    inputs.q = parse_numbers(options.q);
    inputs.keys = parse_keys(options.keys);
    inputs.scale = options.scale;
    inputs.soft_cap = options.soft_cap;
    if (options.causal) inputs.query_position = static_cast<int64_t>(inputs.keys.size()) - 1;
  }
  return show(explain_scores(inputs, options.language.language(), options.language.digits), json);
}

int explain_residual_command(const ExplainOptions& options, bool json) {
  ResidualInputs inputs;
  if (from_model(options)) {
    inputs = residual_inputs(options.place);
  } else {
    require(!options.x.empty() && !options.added.empty(), "--x and --added");
    inputs.x = parse_numbers(options.x);
    inputs.added = parse_numbers(options.added);
  }
  return show(explain_residual(inputs, options.language.language(), options.language.digits), json);
}

int explain_explosion_command(const ExplainOptions& options, bool json) {
  const auto explanation =
      explain_explosion(options.explosion, options.language.language(), options.language.digits);
  if (!options.svg.empty()) {
    OutputFile file(options.svg);
    file.write(explanation.svg);
    file.commit();
  }
  return show(explanation, json);
}

int explain_article_command(const ExplainOptions& options, bool json) {
  return show(explain_article(options.language.language(), options.language.digits), json);
}

using Work = int (*)(const ExplainOptions&, bool json);

CLI::App* add(CLI::App& parent, Program& program, const std::shared_ptr<ExplainOptions>& options,
              const char* name, const char* help, Work work) {
  auto* command = parent.add_subcommand(name, help);
  add_language_options(*command, options->language);
  add_json_flag(*command, program, "write the steps with full-precision values as JSON");
  command->callback([options, &program, work] {
    program.action = [options, &program, work] {
      const InterruptGuard guard;
      return work(*options, program.json);
    };
  });
  return command;
}

constexpr const char* kOwn = "Your own numbers";

void add_norm(CLI::App& parent, Program& program) {
  auto options = std::make_shared<ExplainOptions>();
  auto* command = add(parent, program, options, "norm", "one row through LayerNorm, RMSNorm or BatchNorm",
                      explain_norm_command);
  command->add_option("--row", options->row, "the numbers to normalise: 1,2,3")->group(kOwn);
  command->add_option("--gamma", options->gamma, "scale per dimension; default 1")->group(kOwn);
  command->add_option("--beta", options->beta, "shift per dimension; default 0")->group(kOwn);
  command->add_option("--eps", options->eps, "added under the root")->capture_default_str()->group(kOwn);
  command->add_option("--kind", options->kind, "layer, rms, or batch (the row is then one column)")
      ->check(quiet(CLI::IsMember({"layer", "rms", "batch"})))
      ->capture_default_str()
      ->group(kOwn);
  add_run_place(*command, options->place);
  options->place.site = "ln1";
  command
      ->add_option("--site", options->place.site,
                   "ln1 (before attention), ln2 (before feed-forward), ln_final")
      ->check(quiet(CLI::IsMember({"ln1", "ln2", "ln_final"})))
      ->capture_default_str()
      ->group("From a model's run");
  command->footer(
      "Examples:\n"
      "  liuli explain norm --row 2.1,-0.3,0.8,1.4 --gamma 1,1,0.5,2 --beta 0,0,0.1,0 --eps 1e-5\n"
      "  liuli explain norm --model smollm2 --prompt 'Hello' --layer 3 --site ln2");
}

void add_scores(CLI::App& parent, Program& program) {
  auto options = std::make_shared<ExplainOptions>();
  auto* command = add(parent, program, options, "scores",
                      "one query against its keys: products, scale, mask, softmax", explain_scores_command);
  command->add_option("--q", options->q, "the query: 1,0,2")->group(kOwn);
  command->add_option("--keys", options->keys, "the keys, ';' between them: '1,0,0;0,1,1'")->group(kOwn);
  command->add_option("--scale", options->scale, "default 1/√head_dim")->group(kOwn);
  command->add_option("--soft-cap", options->soft_cap, "s becomes c·tanh(s/c); 0: off")->group(kOwn);
  command->add_flag("--causal", options->causal, "the query stands at the last key's position")->group(kOwn);
  add_run_place(*command, options->place);
  command->add_option("--head", options->place.head, "attention head, from 0")
      ->check(quiet(CLI::NonNegativeNumber))
      ->capture_default_str()
      ->group("From a model's run");
  command->footer(
      "Examples:\n"
      "  liuli explain scores --q 1,0,2 --keys '1,0,0;0,1,1;1,1,1'\n"
      "  liuli explain scores --model smollm2 --prompt 'Hello' --layer 0 --head 2 --token -1");
}

void add_residual(CLI::App& parent, Program& program) {
  auto options = std::make_shared<ExplainOptions>();
  auto* command = add(parent, program, options, "residual", "one addition to the residual stream",
                      explain_residual_command);
  command->add_option("--x", options->x, "the stream: 1,2,3")->group(kOwn);
  command->add_option("--added", options->added, "what the branch adds: 0.1,-0.2,0")->group(kOwn);
  add_run_place(*command, options->place);
  options->place.site = "attn";
  command->add_option("--site", options->place.site, "which branch is added: attn or mlp")
      ->check(quiet(CLI::IsMember({"attn", "mlp"})))
      ->capture_default_str()
      ->group("From a model's run");
  command->footer(
      "Examples:\n"
      "  liuli explain residual --x 1,2,3 --added 0.1,-0.2,0\n"
      "  liuli explain residual --model smollm2 --prompt 'Hello' --layer 3 --site mlp");
}

void add_explosion(CLI::App& parent, Program& program) {
  auto options = std::make_shared<ExplainOptions>();
  auto* command =
      add(parent, program, options, "explosion",
          "why norms are needed: x ← factor · x + shift, layer after layer", explain_explosion_command);
  command->add_option("--factor", options->explosion.factor, "each layer multiplies by it")
      ->capture_default_str();
  command->add_option("--shift", options->explosion.shift, "and adds it")->capture_default_str();
  command->add_option("--start", options->explosion.start, "the first value")->capture_default_str();
  command->add_option("--steps", options->explosion.steps, "layers")->capture_default_str();
  command->add_option("--svg", options->svg, "also write the curve as a picture")->type_name("FILE");
  command->footer(
      "Example:\n  liuli explain explosion --factor 1.5 --shift 0.5 --steps 10 --svg explosion.svg");
}

}  // namespace

void add_explain_command(CLI::App& app, Program& program) {
  auto* command =
      app.add_subcommand("explain", "any number of a run from its operands, or one step worked out by hand");
  command->group("See inside");
  command->require_subcommand(0, 1);
  add_number_explanation(*command, program);
  command->footer(
      "Examples (names as `liuli points MODEL` lists them; negative indices count from the end):\n"
      "  liuli explain smollm2 --prompt 'Hello' --at 'blocks.3.attn.pattern[2,-1,0]'\n"
      "  liuli explain smollm2 --prompt 'Hello' --at 'logits[-1,11]' --class decode --with-exact --terms 20\n"
      "  liuli explain norm --row 1,2,3");
  add_norm(*command, program);
  add_scores(*command, program);
  add_residual(*command, program);
  add_explosion(*command, program);
  add(*command, program, std::make_shared<ExplainOptions>(), "article",
      "the article's worked example (explosion, LayerNorm of 西安), recomputed and compared with its numbers",
      explain_article_command);
}

}  // namespace liuli::cli
