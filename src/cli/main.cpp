// The liuli program: parse, run the chosen command, turn any failure into one line and an exit code.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/exit_codes.h"
#include "cli/help_formatter.h"
#include "cli/program.h"

namespace liuli::cli {
namespace {

constexpr const char* kIntro =
    "Liuli runs language models fast on a CPU and shows every number on the way.\n"
    "`liuli COMMAND --help` explains a command and gives examples.";

constexpr const char* kModelHelp =
    "MODEL is a GGUF or safetensors file, a Hugging Face folder, or a short name: smollm2 "
    "means\n$LIULI_MODELS/smollm2.gguf or "
    "models/smollm2.gguf in\n"
    "the cache folder ($LIULI_CACHE, else ~/.cache/liuli). LIULI_ISA chooses the instruction set (see `liuli "
    "plan`).";

// --logprobs may stand without its K. CLI11 would then take the next argument, so the K is filled in before.
std::vector<std::string> arguments(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  for (size_t i = 0; i < args.size() && args[i] != "--"; ++i) {
    if (args[i] != "--logprobs") continue;
    const bool has_count = i + 1 < args.size() && !args[i + 1].empty() &&
                           args[i + 1].find_first_not_of("0123456789") == std::string::npos;
    if (!has_count) args[i] = "--logprobs=1";
  }
  return {args.rbegin(), args.rend()};  // CLI11 wants them last first
}

// A parse error comes before --json has been parsed, so it is looked for by hand.
bool asks_for_json(int argc, char** argv) {
  for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    if (std::strcmp(argv[i], "--json") == 0 || std::strcmp(argv[i], "--jsonl") == 0) return true;
  }
  return false;
}

void describe(CLI::App& app, Program& program) {
  app.set_version_flag("--version", "liuli " LIULI_VERSION);
  app.footer(std::string(kModelHelp) + "\n\n" + exit_code_help());
  app.formatter(std::make_shared<HelpFormatter>());
  app.require_subcommand(1);
  add_run_command(app, program);
  add_chat_command(app, program);
  add_explain_command(app, program);
  add_tour_command(app, program);
  add_inspect_command(app, program);
  add_plan_command(app, program);
  add_token_commands(app, program);
  add_number_commands(app, program);
  add_lens_command(app, program);
  add_attribute_command(app, program);
  add_ledger_command(app, program);
  add_heads_command(app, program);
  add_heatmap_command(app, program);
  add_embed_command(app, program);
  add_diff_command(app, program);
  add_sweep_command(app, program);
  add_shape_command(app, program);
  add_synth_command(app, program);
  add_quantize_command(app, program);
  add_imatrix_command(app, program);
  add_pack_command(app, program);
  add_lab_command(app, program);
  add_train_command(app, program);
  add_train_tokenizer_command(app, program);
  add_bench_command(app, program);
}

// The deepest command that was named, for "see liuli explain norm --help".
std::string command_path(const CLI::App& app) {
  std::string path = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  return path;
}

// What is still buffered may be what does not fit on the disk.
void finish_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw Error(ErrorCode::io_error, std::string("standard output: ") + std::strerror(errno));
  }
}

int run(CLI::App& app, Program& program, int argc, char** argv) {
  try {
    app.parse(arguments(argc, argv));
    const int code = program.action();
    finish_output();
    return code;
  } catch (const CLI::Success& e) {
    app.exit(e);  // --help, --version
    finish_output();
    return 0;
  } catch (const CLI::ParseError& e) {
    const std::string message = fmt::format("{} (see {} --help)", e.what(), command_path(app));
    return report_failure({kExitUsage, "invalid_argument", message}, asks_for_json(argc, argv));
  }
}

int main_function(int argc, char** argv) {
  Program program;
  try {
    CLI::App app(kIntro, "liuli");
    describe(app, program);
    if (argc < 2) {
      fmt::print(stderr, "{}", app.help());
      return kExitUsage;
    }
    return run(app, program, argc, argv);
  } catch (...) {
    return report_failure(describe_failure(std::current_exception()),
                          program.json || asks_for_json(argc, argv));
  }
}

}  // namespace
}  // namespace liuli::cli

int main(int argc, char** argv) { return liuli::cli::main_function(argc, argv); }
