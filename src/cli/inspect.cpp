// liuli inspect: what is inside a model file, without running it.
#include <memory>

#include <fmt/format.h>

#include "cli/model_options.h"
#include "cli/program.h"
#include "cli/text_table.h"
#include "liuli/model_file.h"

namespace liuli::cli {
namespace {

struct InspectOptions {
  std::string file;
  bool metadata = false, tensors = false;
  std::string export_tensor, output;
};

nlohmann::ordered_json to_json(const FileTensor& tensor) {
  return {{"name", tensor.name},
          {"type", tensor.type},
          {"shape", tensor.shape},
          {"elements", tensor.elements},
          {"bytes", tensor.bytes}};
}

nlohmann::ordered_json to_json(const FileType& type) {
  return {{"type", type.type}, {"tensors", type.tensors}, {"elements", type.elements}, {"bytes", type.bytes}};
}

nlohmann::ordered_json to_json(const FileSetAside& tensor) {
  return {{"name", tensor.name}, {"reason", tensor.reason}};
}

nlohmann::ordered_json to_json(const FileKey& key) {
  // The value is JSON already; one that was cut or is no JSON stays text.
  auto value = nlohmann::ordered_json::parse(key.json, nullptr, false);
  if (value.is_discarded()) value = key.json;
  return {{"name", key.name}, {"type", key.type}, {"value", std::move(value)}};
}

template <typename Items>
nlohmann::ordered_json json_array(const Items& items) {
  auto array = nlohmann::ordered_json::array();
  for (const auto& item : items) array.push_back(to_json(item));
  return array;
}

// Everything, or with filters only the parts asked for.
void print_json(const FileReport& report, const InspectOptions& options) {
  const bool all = !options.metadata && !options.tensors;
  nlohmann::ordered_json json = {{"path", report.path},
                                 {"format", report.format},
                                 {"file_bytes", report.file_bytes},
                                 {"parameters", report.parameters},
                                 {"tensor_bytes", report.tensor_bytes},
                                 {"types", json_array(report.types)}};
  if (all || options.metadata) json["metadata"] = json_array(report.metadata);
  if (all || options.tensors) json["tensors"] = json_array(report.tensors);
  if (all || options.tensors) json["set_aside"] = json_array(report.set_aside);
  fmt::print("{}\n", json_text(json));
}

void print_summary(const FileReport& report) {
  fmt::print(
      "{}\n  format      {}\n  size        {} ({} of tensors)\n  parameters  {} ({})\n  tensors     {}\n\n",
      report.path, report.format, size_text(report.file_bytes), size_text(report.tensor_bytes),
      count_text(report.parameters), report.parameters, report.tensors.size());
  TextTable table({{"stored as"},
                   {"tensors", Align::right},
                   {"elements", Align::right},
                   {"size", Align::right},
                   {"bits per element", Align::right}});
  for (const FileType& type : report.types) {
    const double bits =
        type.elements > 0 ? 8.0 * static_cast<double>(type.bytes) / static_cast<double>(type.elements) : 0;
    table.add_row({type.type, fmt::format("{}", type.tensors), count_text(type.elements),
                   size_text(type.bytes), fmt::format("{:.2f}", bits)});
  }
  fmt::print("{}\n", table.render());
}

void print_metadata(const FileReport& report) {
  TextTable table({{"key"}, {"type"}, {"value"}});
  for (const FileKey& key : report.metadata)
    table.add_row({visible(key.name, 60), key.type, visible(key.json, 80)});
  fmt::print("{}\n", table.render());
}

void print_tensors(const FileReport& report) {
  TextTable table({{"tensor"}, {"type"}, {"shape", Align::right}, {"size", Align::right}});
  for (const FileTensor& tensor : report.tensors) {
    table.add_row({visible(tensor.name, 80), tensor.type, shape_text(tensor.shape), size_text(tensor.bytes)});
  }
  fmt::print("{}\n", table.render());
  for (const FileSetAside& tensor : report.set_aside)
    fmt::print("left out: {} {}\n", visible(tensor.name, 80), visible(tensor.reason, 200));
}

void print_for_people(const FileReport& report, const InspectOptions& options) {
  const bool all = !options.metadata && !options.tensors;
  if (all) print_summary(report);
  if (all || options.metadata) print_metadata(report);
  if (all || options.tensors) print_tensors(report);
}

int export_tensor(const InspectOptions& options, const std::string& path, bool json) {
  if (options.output.empty()) throw Error(ErrorCode::invalid_argument, "--export needs -o FILE.npy");
  const DecodedTensor tensor = decode_tensor(path, options.export_tensor);
  write_npy(options.output, tensor.shape, tensor.values);
  if (json) {
    const nlohmann::ordered_json body = {{"tensor", tensor.name},
                                         {"shape", tensor.shape},
                                         {"elements", tensor.values.size()},
                                         {"output", options.output}};
    fmt::print("{}\n", json_text(body));
  } else {
    fmt::print(stderr, "{}: {} {} as f32\n", options.output, tensor.name, shape_text(tensor.shape));
  }
  return 0;
}

int inspect(const InspectOptions& options, bool json) {
  const std::string path = resolve_model(options.file);
  if (!options.export_tensor.empty()) return export_tensor(options, path, json);
  if (!options.output.empty()) throw Error(ErrorCode::invalid_argument, "-o belongs to --export TENSOR");
  constexpr size_t kShownItems = 8, kAllItems = size_t{1} << 40;
  const FileReport report = inspect_file(path, json ? kAllItems : kShownItems);
  if (json) {
    print_json(report, options);
  } else {
    print_for_people(report, options);
  }
  return 0;
}

}  // namespace

void add_inspect_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<InspectOptions>();
  auto* command =
      app.add_subcommand("inspect", "a model file's metadata, tensors and sizes; a tensor's values");
  command->group("See inside");
  command
      ->add_option(
          "FILE", options->file,
          "a GGUF file (the first part of a split one), a Hugging Face folder, or a model's short name")
      ->required();
  command->add_flag("--metadata", options->metadata, "only the metadata");
  command->add_flag("--tensors", options->tensors, "only the list of tensors");
  command->add_option("--export", options->export_tensor, "write this tensor's decoded values (needs -o)")
      ->type_name("TENSOR");
  command->add_option("-o,--output", options->output, "the .npy file to write")->type_name("FILE");
  add_json_flag(*command, program, "everything as JSON, arrays in full");
  command->footer(
      "Examples:\n"
      "  liuli inspect smollm2.gguf --tensors\n"
      "  liuli inspect smollm2.gguf --export blk.0.attn_q.weight -o q.npy   # numpy.load('q.npy')");
  command->callback([options, &program] {
    program.action = [options, &program] { return inspect(*options, program.json); };
  });
}

}  // namespace liuli::cli
