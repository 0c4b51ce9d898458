// liuli imatrix: which columns of a model's matrices matter, measured on a text.
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/text_table.h"
#include "cli/token_input.h"
#include "liuli/convert.h"

namespace liuli::cli {
namespace {

struct ImatrixOptions {
  ModelOptions model;
  std::string file, output;
  ImatrixSettings settings;
};

void print_report(const ImatrixReport& report, const ImatrixOptions& options, bool json) {
  if (json) {
    fmt::print("{}\n", json_text({{"output", options.output},
                                  {"tensors", report.tensors},
                                  {"tokens", report.tokens},
                                  {"chunks", report.chunks},
                                  {"missing", report.missing}}));
    return;
  }
  fmt::print("{}: {} matrices over {} tokens in {} windows\n", options.output, report.tensors, report.tokens,
             report.chunks);
  if (!report.missing.empty())
    fmt::print(stderr, "warning: {} matrices get no entry, their inputs have no name: {}{}\n",
               report.missing.size(), report.missing.front(), report.missing.size() > 1 ? ", …" : "");
}

int imatrix(ImatrixOptions options, bool json) {
  const InterruptGuard guard;
  const std::string text = options.file == "-" ? read_standard_input() : read_file(options.file);
  Engine engine = load_engine(options.model);
  const std::vector<int> ids = engine.tokenize(text);
  Progress progress("imatrix", ProgressUnit::tokens);
  options.settings.dataset = std::filesystem::path(options.file).filename().string();
  options.settings.on_progress = [&](int64_t done, int64_t total) {
    throw_if_interrupted();
    progress.update(done, total);
  };
  const ImatrixReport report = collect_imatrix(engine, ids, options.output, options.settings);
  progress.clear();
  print_report(report, options, json);
  return 0;
}

}  // namespace

void add_imatrix_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<ImatrixOptions>();
  auto* command =
      app.add_subcommand("imatrix", "measure on a text which columns of the weights matter, for quantize");
  command->group("Files");
  add_model_argument(*command, options->model.model);
  command->add_option("--file", options->file, "the text; - for standard input")
      ->type_name("FILE")
      ->required();
  command->add_option("-o,--output", options->output, "the importance matrix to write (GGUF)")
      ->type_name("FILE")
      ->required();
  command->add_option("--context", options->settings.chunk, "tokens per window; each starts afresh")
      ->check(quiet(CLI::PositiveNumber))
      ->capture_default_str();
  command
      ->add_option("--chunks", options->settings.max_chunks,
                   "at most so many windows (default: the whole text)")
      ->check(quiet(CLI::PositiveNumber));
  add_load_options(*command, options->model);
  add_json_flag(*command, program);
  command->footer(
      "An error in column c of a matrix changes its outputs by the column's input, so the sum of x_c² over a "
      "text\n"
      "is the weight that errors in this column deserve. Take a text like those the model is for: 50,000 "
      "tokens\n"
      "are plenty. The file is GGUF with NAME.in_sum2 and NAME.counts per tensor, as other tools use it.\n\n"
      "Examples:\n"
      "  liuli imatrix model-f16.gguf --file text.txt -o im.gguf\n"
      "  liuli quantize model-f16.gguf -o model.gguf --type q4_k_m --imatrix im.gguf");
  command->callback([options, &program] {
    program.action = [options, &program] { return imatrix(*options, program.json); };
  });
}

}  // namespace liuli::cli
