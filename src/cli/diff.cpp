// liuli diff: two models, two types of one model, or fast against exact, over one text.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "cli/diff_text.h"
#include "cli/edits_option.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/text_table.h"
#include "cli/token_input.h"
#include "liuli/diff.h"
#include "liuli/model_file.h"

namespace liuli::cli {
namespace {

constexpr int kExitAbove = 1;  // --fail-above

struct DiffOptions {
  ModelOptions a, b;
  TokenInput tokens;
  EditOptions edits;
  std::string file, output;
  std::vector<std::string> columns = {"resid_post"};
  DiffSettings settings;
  int max_tokens = 0;
  double fail_above = -1;
};

// B by its own name, or A again in another class or without its edits.
void complete_reference(DiffOptions& options, bool class_b_given) {
  if (options.b.model.empty()) {
    const bool edited = !options.edits.edits.empty() || !options.edits.file.empty();
    const bool int8 = options.a.prompt_products == "int8";
    if (!options.b.settings.exact && !class_b_given && !edited && !int8)
      throw Error(ErrorCode::invalid_argument,
                  "nothing to compare with: name a second model, or give --exact, --class-b, "
                  "--prompt-products int8 or --edit");
    options.b.model = options.a.model;
    if (!class_b_given) options.b.product_class = options.a.product_class;
  }
  if (options.b.settings.exact && class_b_given)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("--exact and --class-b {} both say how the reference runs", options.b.product_class));
  options.b.settings.threads = options.a.settings.threads;
}

std::vector<int> read_ids(const DiffOptions& options, const std::string& text, const Engine& engine) {
  if (options.file.empty()) return read_tokens(options.tokens, engine);
  return engine.tokenize(text);
}

// The ids are A's; a text that the reference would cut otherwise makes the comparison unfair to it.
void warn_about_tokens(const DiffOptions& options, const std::string& text, const std::vector<int>& ids,
                       const Engine& reference) {
  if (options.a.model == options.b.model || (options.file.empty() && !options.tokens.has_prompt)) return;
  std::vector<int> theirs;
  try {
    theirs = read_ids(options, text, reference);
  } catch (const Error& e) {  // it has no tokenizer, say; running A's ids needs none
    fmt::print(stderr, "liuli: notice: whether {} would make the same tokens of this text is not known: {}\n",
               options.b.model, e.what());
    return;
  }
  if (theirs == ids) return;
  const auto first = std::mismatch(ids.begin(), ids.end(), theirs.begin(), theirs.end()).first - ids.begin();
  fmt::print(
      stderr,
      "liuli: notice: {} makes other tokens of this text ({} instead of {}, differing from position {}); "
      "both run A's\n",
      options.b.model, theirs.size(), ids.size(), first);
}

void write_kl(const std::string& path, const std::vector<double>& kl) {
  write_npy(path, {static_cast<int64_t>(kl.size())}, std::vector<float>(kl.begin(), kl.end()));
}

// Not "mean > limit": a mean that is not a number must fail as well.
int verdict(const DiffOptions& options, const DiffReport& report) {
  if (options.fail_above < 0 || report.mean_kl <= options.fail_above) return 0;
  fmt::print(stderr, "liuli: the mean KL of {:.6g} is above {:.6g}\n", report.mean_kl, options.fail_above);
  return kExitAbove;
}

size_t context_length(const DiffOptions& options, const Engine& a, const Engine& b) {
  if (options.settings.context > 0) return static_cast<size_t>(options.settings.context);
  return static_cast<size_t>(
      std::min({a.config().max_seq_len, b.config().max_seq_len, kLongestDefaultContext}));
}

std::string class_name(const Engine& engine, const ModelOptions& options) {
  return options.settings.exact ? "exact" : engine.plan().prompt_class;
}

// A misspelt column would leave an empty table.
void check_columns(const std::vector<std::string>& columns, const DiffReport& report) {
  if (!report.not_traced.empty()) return;
  for (const std::string& column : columns) {
    const bool known = std::any_of(report.points.begin(), report.points.end(), [&](const PointDiff& point) {
      return point.layer >= 0 && point.name.ends_with("." + column);
    });
    if (!known)
      throw Error(
          ErrorCode::not_found,
          fmt::format("no block has a point \"{}\" in both models; `liuli points` lists them", column));
  }
}

int diff(DiffOptions options, bool json, bool class_b_given) {
  const InterruptGuard guard;
  complete_reference(options, class_b_given);
  const std::string text = options.file.empty()  ? ""
                           : options.file == "-" ? read_standard_input()
                                                 : read_file(options.file);
  Engine engine = load_engine(options.a), reference = load_engine(options.b);
  std::vector<int> ids = read_ids(options, text, engine);
  const std::vector<int> all_ids = ids;
  if (options.max_tokens > 0) ids.resize(std::min(ids.size(), static_cast<size_t>(options.max_tokens)));
  Progress progress("comparing", ProgressUnit::tokens);
  options.settings.on_progress = [&progress](int64_t done, int64_t total) {
    throw_if_interrupted();
    progress.update(done, total);
  };
  const size_t window = std::min(ids.size(), context_length(options, engine, reference));
  // A text of one window is run as a prompt is: its edits may count from the end and read its own run.
  const std::vector<Edit> edits =
      window == ids.size() ? read_edits(options.edits, engine) : read_windowed_edits(options.edits, engine);
  const EditHooks hooks(engine, edits, {ids.begin(), ids.begin() + static_cast<ptrdiff_t>(window)});
  options.settings.hooks = hooks.hooks();
  const DiffReport report = liuli::diff(engine, reference, ids, options.settings);
  hooks.require_all_applied();
  progress.clear();
  warn_about_tokens(options, text, all_ids, reference);
  check_columns(options.columns, report);
  if (!options.output.empty()) write_kl(options.output, report.kl);
  const DiffSides sides{engine,
                        options.a.model,
                        class_name(engine, options.a),
                        options.b.model,
                        class_name(reference, options.b),
                        ids};
  if (json) {
    fmt::print("{}\n", json_text(diff_json(report, sides)));
  } else {
    fmt::print("{}", diff_text(report, sides, options.columns));
  }
  return verdict(options, report);
}

void add_edits(CLI::App& command, DiffOptions& options) {
  add_edit_options(command, options.edits);
  for (const char* name : {"--edit", "--edits"}) {
    CLI::Option* option = command.get_option(name);
    option->description(option->get_description() + " (of MODEL; the reference runs without)");
  }
}

void add_sides(CLI::App& command, DiffOptions& options) {
  add_model_argument(command, options.a.model)->required();
  command.add_option("REFERENCE", options.b.model,
                     "what MODEL is measured against; without it MODEL itself, with --exact, --class-b, "
                     "--prompt-products or --edit");
  const auto classes = quiet(CLI::IsMember({"auto", "prompt", "decode", "f32"}));
  command
      .add_option(
          "--class", options.a.product_class,
          "how MODEL's matrix products round: prompt, decode, f32; auto: prompt, or f32 for a file of "
          "F32 matrices")
      ->check(classes)
      ->capture_default_str();
  CLI::Option* products = add_prompt_products_option(command, options.a.prompt_products);
  products->description(products->get_description() + " (of MODEL; the reference keeps bf16)");
  command.add_option("--class-b", options.b.product_class, "the same for the reference")
      ->check(classes)
      ->capture_default_str();
  command.add_flag("--exact", options.b.settings.exact,
                   "the reference runs in scalar loops with sums in double; slow and as exact as the file");
  command.add_option("--threads", options.a.settings.threads, "threads; 0: every CPU this process may use")
      ->check(quiet(CLI::Range(0, 4096)))
      ->capture_default_str();
}

void add_text(CLI::App& command, DiffOptions& options) {
  add_token_input(command, options.tokens);
  command.get_option_group("tokens")
      ->add_option("-f,--file", options.file, "a text file, as it is; -: standard input")
      ->type_name("FILE");
  command
      .add_option("--context", options.settings.context,
                  "tokens per window, each run from nothing; 0: 2048, or what the shorter context allows")
      ->check(quiet(CLI::Range(0, 1 << 24)))
      ->capture_default_str();
  command.add_option("--max-tokens", options.max_tokens, "only the first so many tokens; 0: all")
      ->check(quiet(CLI::NonNegativeNumber))
      ->capture_default_str();
}

void add_results(CLI::App& command, DiffOptions& options) {
  command
      .add_option("--points", options.columns,
                  "points of a block in the table of layers: resid_post,resid_mid,attn_out,mlp_out")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("POINTS")
      ->capture_default_str();
  command
      .add_option("--trace-positions", options.settings.trace_positions,
                  "compare inner values at so many positions; 0: only the predictions")
      ->check(quiet(CLI::NonNegativeNumber))
      ->capture_default_str();
  command
      .add_option(
          "--threshold", options.settings.threshold,
          "relative error above which a point counts as differing; 0: 3e-2 where a side is in the prompt or "
          "decode class (healthy ones reach 1.6e-2), else 1e-3")
      ->check(quiet(CLI::NonNegativeNumber))
      ->capture_default_str();
  command.add_option("--worst", options.settings.worst, "how many of the worst positions to show")
      ->check(quiet(CLI::NonNegativeNumber))
      ->capture_default_str();
  command.add_option("-o,--out", options.output, "write the KL of every position as .npy")->type_name("FILE");
  command
      .add_option("--fail-above", options.fail_above, "exit with code 1 if the mean KL is above this (nats)")
      ->check(quiet(CLI::NonNegativeNumber))
      ->type_name("KL");
}

}  // namespace

void add_diff_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<DiffOptions>();
  auto* command = app.add_subcommand("diff", "how two models, types or classes differ, and where it begins");
  command->group("Numbers");
  add_sides(*command, *options);
  add_text(*command, *options);
  add_edits(*command, *options);
  add_results(*command, *options);
  add_json_flag(*command, program);
  command->footer(
      "KL is KL(reference ‖ MODEL) in nats. Examples:\n"
      "  liuli diff qwen-q4.gguf qwen-f16.gguf --file book.txt --max-tokens 4096\n"
      "  liuli diff smollm2.gguf --exact --prompt 'The capital of France is' --points resid_mid,mlp_out\n"
      "  liuli diff smollm2.gguf --prompt 'The capital of France is' --edit 'blocks.3.resid_post[-1,:] *= "
      "0'\n"
      "  liuli diff mine.gguf good.gguf --file test.txt --fail-above 0.01 --json");
  command->callback([options, command, &program] {
    const bool class_b_given = command->count("--class-b") > 0;
    program.action = [options, class_b_given, &program] {
      return diff(*options, program.json, class_b_given);
    };
  });
}

}  // namespace liuli::cli
