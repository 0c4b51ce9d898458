// liuli quantize: a model file with smaller weights.
#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/text_table.h"
#include "liuli/convert.h"

namespace liuli::cli {
namespace {

struct QuantizeOptions {
  std::string model, output;
  QuantizeSettings settings;
  std::vector<std::string> rules;  // "regex=type"
  bool dry_run = false, list = false;
};

TensorTypeRule parse_rule(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--tensor \"{}\": expected REGEX=TYPE, such as ffn_down=q6_k", text));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::string percent(double error) { return error > 0 ? fmt::format("{:.3f} %", 100 * error) : "–"; }

double bits_per_weight(const QuantizeReport& report) {
  return report.parameters > 0
             ? 8.0 * static_cast<double>(report.to_bytes) / static_cast<double>(report.parameters)
             : 0;
}

nlohmann::ordered_json to_json(const QuantizedTensor& tensor, bool planned) {
  nlohmann::ordered_json json = {
      {"name", tensor.name}, {"shape", tensor.shape},           {"from", tensor.from},
      {"to", tensor.to},     {"from_bytes", tensor.from_bytes}, {"to_bytes", tensor.to_bytes}};
  if (!planned) json["error"] = tensor.error;
  if (tensor.weighted_error) json["weighted_error"] = *tensor.weighted_error;
  return json;
}

void print_json(const QuantizeReport& report, const QuantizeOptions& options, double seconds) {
  auto tensors = nlohmann::ordered_json::array();
  for (const QuantizedTensor& tensor : report.tensors) tensors.push_back(to_json(tensor, options.dry_run));
  nlohmann::ordered_json json = {
      {"type", options.settings.type},   {"parameters", report.parameters},
      {"from_bytes", report.from_bytes}, {"to_bytes", report.to_bytes},
      {"file_bytes", report.file_bytes}, {"bits_per_weight", bits_per_weight(report)}};
  if (!options.dry_run) {
    json["output"] = options.output;
    json["error"] = report.error;
    json["seconds"] = seconds;
  }
  json["warnings"] = report.warnings;
  json["tensors"] = std::move(tensors);
  fmt::print("{}\n", json_text(json));
}

void print_tensors(const QuantizeReport& report, bool planned) {
  bool weighted = false;
  for (const QuantizedTensor& tensor : report.tensors) weighted |= tensor.weighted_error.has_value();
  std::vector<TextTable::Column> columns = {
      {"tensor"}, {"shape", Align::right}, {"from"}, {"to"}, {"size", Align::right}};
  if (!planned) columns.push_back({"error", Align::right});
  if (weighted) columns.push_back({"weighted", Align::right});
  TextTable table(columns);
  for (const QuantizedTensor& tensor : report.tensors) {
    std::vector<std::string> row = {visible(tensor.name, 60), shape_text(tensor.shape), tensor.from,
                                    tensor.to, size_text(tensor.to_bytes)};
    if (!planned) row.push_back(percent(tensor.error));
    if (weighted) row.push_back(tensor.weighted_error ? percent(*tensor.weighted_error) : "");
    table.add_row(std::move(row));
  }
  fmt::print("{}\n", table.render());
}

void print_for_people(const QuantizeReport& report, const QuantizeOptions& options, double seconds) {
  print_tensors(report, options.dry_run);
  fmt::print("{} → {}, {:.2f} bits per weight", size_text(report.from_bytes), size_text(report.to_bytes),
             bits_per_weight(report));
  if (options.dry_run) {
    fmt::print("; the file would be {}\n", size_text(report.file_bytes));
  } else {
    fmt::print("; error {} of all changed tensors together\n{}: {} in {:.1f} s\n", percent(report.error),
               options.output, size_text(report.file_bytes), seconds);
  }
}

void print_types(bool json) {
  const std::vector<QuantizeType> types = list_quantize_types();
  if (json) {
    auto array = nlohmann::ordered_json::array();
    for (const QuantizeType& type : types) array.push_back({{"name", type.name}, {"bits", type.bits}});
    fmt::print("{}\n", json_text(array));
    return;
  }
  TextTable table({{"type"}, {"bits per weight", Align::right}});
  for (const QuantizeType& type : types) table.add_row({type.name, fmt::format("{:.2f}", type.bits)});
  fmt::print("{}", table.render());
}

QuantizeReport run(const QuantizeOptions& options, const std::string& input) {
  if (options.dry_run) return plan_quantize(input, options.settings);
  if (options.output.empty())
    throw Error(ErrorCode::invalid_argument, "-o FILE.gguf is missing (or --dry-run)");
  const InterruptGuard guard;
  Progress progress("quantising", ProgressUnit::bytes);
  QuantizeSettings settings = options.settings;
  settings.on_progress = [&](int64_t done, int64_t total) {
    throw_if_interrupted();
    progress.update(done, total);
  };
  return quantize_file(input, options.output, settings);
}

int quantize(QuantizeOptions options, bool json) {
  if (options.list) {
    print_types(json);
    return 0;
  }
  if (options.model.empty()) throw Error(ErrorCode::invalid_argument, "MODEL is missing");
  for (const std::string& rule : options.rules) options.settings.tensor_types.push_back(parse_rule(rule));
  const auto start = std::chrono::steady_clock::now();
  const QuantizeReport report = run(options, resolve_model(options.model));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (json) {
    print_json(report, options, seconds);
  } else {
    print_for_people(report, options, seconds);
    for (const std::string& warning : report.warnings) fmt::print(stderr, "warning: {}\n", warning);
  }
  return 0;
}

void add_type_options(CLI::App& command, QuantizeOptions& options) {
  QuantizeSettings& settings = options.settings;
  command.add_option("--type", settings.type, "a mix (q4_k_m) or one type (q8_0, bf16); see --list")
      ->capture_default_str();
  command
      .add_option(
          "--tensor", options.rules,
          "REGEX=TYPE: another type for tensors whose name matches; may be repeated, the first match counts")
      ->type_name("RULE")
      ->allow_extra_args(false);
  command.add_option("--output-type", settings.output_type, "of output.weight")->type_name("TYPE");
  command.add_option("--token-embedding-type", settings.embedding_type, "of token_embd.weight")
      ->type_name("TYPE");
  command.add_flag("--pure", settings.pure, "the main type for every matrix, no mix");
}

}  // namespace

void add_quantize_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<QuantizeOptions>();
  auto* command = app.add_subcommand(
      "quantize",
      "write a model as GGUF, from GGUF or from a Hugging Face folder, with smaller weights if asked for");
  command->group("Files");
  command->add_option(
      "MODEL", options->model,
      "a GGUF file (the first part of a split one), a folder with config.json and safetensors, "
      "or a model's short name");
  command
      ->add_option("-o,--output", options->output, "the GGUF file to write; it appears whole or not at all")
      ->type_name("FILE");
  add_type_options(*command, *options);
  command
      ->add_option("--imatrix", options->settings.imatrix,
                   "an importance matrix: which columns matter (`liuli imatrix`)")
      ->type_name("FILE");
  command->add_option("--threads", options->settings.threads, "0: every CPU; the file does not depend on it")
      ->check(quiet(CLI::Range(0, 4096)))
      ->capture_default_str();
  command->add_flag("--no-tokenizer", options->settings.no_tokenizer,
                    "leave a folder's tokenizer out (needed where GGUF cannot express it)");
  command->add_flag("--dry-run", options->dry_run, "only the types and sizes");
  command->add_flag("--list", options->list, "only the types there are");
  add_json_flag(*command, program);
  command->footer(
      "error is ‖w − ŵ‖ / ‖w‖ of a tensor as it was read against what the new file decodes to. Norms, biases "
      "and\n"
      "other vectors stay F32. Where a row is no whole number of blocks, a type with smaller blocks steps "
      "in.\n"
      "A folder becomes GGUF with its tokenizer and chat template; as f32, f16 or bf16 (whichever it has) no "
      "value\n"
      "changes. So does a model that `liuli train` wrote.\n\n"
      "Examples:\n"
      "  liuli quantize model-f16.gguf -o model.gguf --type q4_k_m\n"
      "  liuli quantize path/to/folder -o model-bf16.gguf --type bf16\n"
      "  liuli quantize model-f16.gguf -o model.gguf --type q4_k_s --tensor 'ffn_down=q6_k' --imatrix "
      "im.gguf\n"
      "  liuli quantize model-f16.gguf --type q3_k_m --dry-run");
  command->callback([options, &program] {
    program.action = [options, &program] { return quantize(*options, program.json); };
  });
}

}  // namespace liuli::cli
