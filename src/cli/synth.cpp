// liuli synth: a random model of true size.
#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "cli/interrupt.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/text_table.h"
#include "liuli/shape.h"
#include "liuli/synth.h"

namespace liuli::cli {
namespace {

nlohmann::ordered_json to_json(const SynthReport& report, const SynthSettings& settings) {
  auto types = nlohmann::ordered_json::array();
  for (const auto& type : report.types)
    types.push_back({{"type", type.type}, {"tensors", type.tensors}, {"bytes", type.bytes}});
  return {
      {"output", settings.output},       {"model", settings.model},         {"type", settings.type},
      {"seed", settings.seed},           {"n_layers", report.n_layers},     {"n_experts", report.n_experts},
      {"parameters", report.parameters}, {"file_bytes", report.file_bytes}, {"types", std::move(types)}};
}

void print_for_people(const SynthReport& report, const SynthSettings& settings, double seconds) {
  fmt::print("{}: {} with random weights, {} layers, {} parameters\n\n", settings.output, report.title,
             report.n_layers, count_text(report.parameters));
  TextTable table({{"stored as"}, {"tensors", Align::right}, {"size", Align::right}});
  for (const auto& type : report.types)
    table.add_row({type.type, fmt::format("{}", type.tensors), size_text(type.bytes)});
  fmt::print("{}\n{} in {:.1f} s\n", table.render(), size_text(report.file_bytes), seconds);
}

int synth(SynthSettings settings, bool json) {
  const InterruptGuard guard;
  Progress progress("writing", ProgressUnit::bytes);
  settings.on_progress = [&](int64_t done, int64_t total) {
    throw_if_interrupted();
    progress.update(done, total);
  };
  const auto start = std::chrono::steady_clock::now();
  const SynthReport report = write_synthetic_model(settings);
  progress.clear();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (json) {
    fmt::print("{}\n", json_text(to_json(report, settings)));
  } else {
    print_for_people(report, settings, seconds);
  }
  return 0;
}

}  // namespace

void add_synth_command(CLI::App& app, Program& program) {
  auto settings = std::make_shared<SynthSettings>();
  auto* command = app.add_subcommand(
      "synth", "a random model of true size, to measure speed and memory without its weights");
  command->group("Files");
  command->add_option("NAME", settings->model, "a built-in model (`liuli shape --list`)")->required();
  command->add_option("--type", settings->type, "a mix or stored type: f16, bf16, q8_0, q4_k_m, iq2_xs, …")
      ->capture_default_str();
  command
      ->add_option("-o,--output", settings->output, "the GGUF file to write; it appears whole or not at all")
      ->type_name("FILE")
      ->required();
  command->add_option("--layers", settings->n_layers, "only so many layers, of full width (default: all)")
      ->check(quiet(CLI::PositiveNumber));
  command->add_option("--experts", settings->n_experts, "only so many experts per layer (default: all)")
      ->check(quiet(CLI::PositiveNumber));
  command
      ->add_option("--context", settings->context, "the trained context to claim (default: the model's own)")
      ->check(quiet(CLI::PositiveNumber));
  command->add_option("--seed", settings->seed, "other seed, other weights")->capture_default_str();
  command->add_option("--threads", settings->threads, "0: every CPU; the file does not depend on it")
      ->check(quiet(CLI::NonNegativeNumber))
      ->capture_default_str();
  add_json_flag(*command, program);
  command->footer(
      "The weights mean nothing: the file is for measuring. The vocabulary is made up, of the right size;\n"
      "general.description says so.\n\n"
      "Examples:\n"
      "  liuli synth llama-3-8b --type q4_k_m -o llama.gguf\n"
      "  liuli synth deepseek-v3 --type q4_k_m --layers 4 -o slice.gguf   # three dense layers, one of "
      "experts");
  command->callback([settings, &program] {
    program.action = [settings, &program] { return synth(*settings, program.json); };
  });
}

}  // namespace liuli::cli
