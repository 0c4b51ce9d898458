// liuli pack: a model's weights in the form they run in, as a file beside it.
#include <chrono>
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/text_table.h"
#include "liuli/pack.h"

namespace liuli::cli {
namespace {

struct PackCommand {
  std::string model;
  PackSettings settings;
};

PanelFileInfo write(const PackCommand& command, bool json) {
  const InterruptGuard guard;
  Progress progress("packing", ProgressUnit::bytes);
  PackSettings settings = command.settings;
  settings.on_start = [&](const PanelFileInfo& file) {
    if (json) return;
    fmt::print("{} to write\n", size_text(file.bytes));
    std::fflush(stdout);
  };
  settings.on_progress = [&](int64_t done, int64_t total) {
    throw_if_interrupted();
    progress.update(done, total);
  };
  return pack_model(resolve_model(command.model), settings);
}

int pack(const PackCommand& command, bool json) {
  const auto start = std::chrono::steady_clock::now();
  const PanelFileInfo file = write(command, json);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (json)
    fmt::print("{}\n", json_text({{"output", file.path}, {"bytes", file.bytes}, {"seconds", seconds}}));
  else
    fmt::print("{}: {} in {:.1f} s\n", file.path, size_text(file.bytes), seconds);
  return 0;
}

}  // namespace

void add_pack_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<PackCommand>();
  auto* command = app.add_subcommand(
      "pack",
      "write a model's weights as they run in memory, beside it: later loads map them and copy nothing");
  command->group("Files");
  add_model_argument(*command, options->model)->required();
  command
      ->add_option(
          "-o,--output", options->settings.output,
          "the file to write (default: MODEL.panels beside the model); it appears whole or not at all")
      ->type_name("FILE");
  command->add_option("--threads", options->settings.threads, "0: every CPU; the file does not depend on it")
      ->check(quiet(CLI::Range(0, 4096)))
      ->capture_default_str();
  add_json_flag(*command, program);
  command->footer(
      "The file is about as large as the model and works beside it: vocabulary, metadata and vectors stay\n"
      "where they are. Every command finds MODEL.panels by itself and makes sure that it was made from\n"
      "these files; one that was not is left alone, with a notice. It serves every instruction set, and\n"
      "processes share its memory.\n\n"
      "Examples:\n"
      "  liuli pack model.gguf\n"
      "  liuli pack model.gguf -o /fast/model.panels\n"
      "  liuli run model.gguf --panels /fast/model.panels 'Hello'\n"
      "  liuli bench model.gguf --panels none");
  command->callback(
      [options, &program] { program.action = [options, &program] { return pack(*options, program.json); }; });
}

}  // namespace liuli::cli
