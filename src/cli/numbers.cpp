// liuli logits, trace, points, perplexity: a run's numbers, as files and figures.
#include <algorithm>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/text_table.h"
#include "cli/token_input.h"
#include "liuli/model_file.h"

namespace liuli::cli {
namespace {

struct NumberOptions {
  ModelOptions model;
  TokenInput tokens;
  BesideInput beside;
  std::string output, file;
  std::vector<std::string> points;
  double max_gib = 4;
  int context = 512;
};

// What a reader needs to know to compute the same numbers again.
std::map<std::string, std::string> file_metadata(const NumberOptions& options, const std::vector<int>& ids) {
  return {{"format", "liuli"},
          {"schema", "1"},
          {"model", options.model.model},
          {"class", options.model.settings.exact ? "exact" : options.model.product_class},
          {"isa", active_isa()},
          {"ids", fmt::format("[{}]", joined(ids, ", "))}};
}

void print_written(const NumberOptions& options, const std::vector<TensorFileWriter::Entry>& entries,
                   bool json) {
  if (json) {
    auto tensors = nlohmann::ordered_json::array();
    for (const auto& entry : entries) tensors.push_back({{"name", entry.name}, {"shape", entry.shape}});
    fmt::print("{}\n", json_text({{"output", options.output}, {"tensors", std::move(tensors)}}));
    return;
  }
  for (const auto& entry : entries) fmt::print("{} {}\n", entry.name, shape_text(entry.shape));
  fmt::print(stderr, "written to {}\n", options.output);
}

int logits(const NumberOptions& options, bool json) {
  Engine engine = load_engine(options.model);
  const std::vector<int> ids = read_tokens(options.tokens, engine);
  const auto n = static_cast<int64_t>(ids.size());
  const std::vector<TensorFileWriter::Entry> entries = {{"logits", {n, engine.config().vocab_size}}};
  TensorFileWriter writer(options.output, entries, file_metadata(options, ids));
  Progress progress("logits", ProgressUnit::tokens);
  // The exact class takes minutes: short passes keep the bar moving and Ctrl-C working, and change no bit.
  const int chunk = options.model.settings.exact ? 64 : 512;
  const auto write_row = [&](int position, std::span<const float> row) {
    throw_if_interrupted();
    writer.append(row.data(), row.size());
    progress.update(std::min<int64_t>((position / chunk + 1) * chunk, n), n);  // its whole pass is done
  };
  engine.logits(ids, write_row, chunk, read_beside(options.beside, engine));
  writer.finish();
  progress.clear();
  print_written(options, entries, json);
  return 0;
}

int trace(const NumberOptions& options, bool json) {
  Engine engine = load_engine(options.model);
  const std::vector<int> ids = read_tokens(options.tokens, engine);
  TraceSettings settings;
  settings.max_bytes = static_cast<int64_t>(options.max_gib * 1024 * 1024 * 1024);
  settings.beside = read_beside(options.beside, engine);
  const int64_t bytes = engine.trace_bytes(static_cast<int64_t>(ids.size()), options.points,
                                           static_cast<int64_t>(settings.beside.source.size()));
  if (!json && bytes <= settings.max_bytes) fmt::print(stderr, "capturing {}\n", size_text(bytes));
  const auto traced = engine.trace(ids, options.points, settings);
  throw_if_interrupted();
  std::vector<TensorFileWriter::Entry> entries;
  for (const TracedTensor& tensor : traced) entries.push_back({tensor.name, tensor.shape});
  TensorFileWriter writer(options.output, entries, file_metadata(options, ids));
  for (const TracedTensor& tensor : traced) writer.append(tensor.values.data(), tensor.values.size());
  writer.finish();
  print_written(options, entries, json);
  return 0;
}

int points(const std::string& model, bool json) {
  const std::vector<PointDescription> list =
      model.empty() ? list_points() : list_points(read_config(resolve_model(model)));
  if (json) {
    auto array = nlohmann::ordered_json::array();
    for (const PointDescription& point : list) {
      array.push_back(
          {{"name", point.name}, {"shape", point.shape}, {"formula", point.formula}, {"alias", point.alias}});
    }
    fmt::print("{}\n", json_text(array));
    return 0;
  }
  TextTable table({{"point"}, {"shape"}, {"formula"}, {"TransformerLens"}});
  for (const PointDescription& point : list) {
    table.add_row({point.name, point.shape, point.formula, point.alias});
  }
  fmt::print("{}", table.render());
  return 0;
}

int perplexity(const NumberOptions& options, bool json) {
  const std::string text = options.file == "-" ? read_standard_input() : read_file(options.file);
  Engine engine = load_engine(options.model);
  const std::vector<int> ids = engine.tokenize(text);
  Progress progress("perplexity", ProgressUnit::tokens);
  const PerplexityResult result = engine.perplexity(ids, options.context, [&](int64_t done, int64_t total) {
    throw_if_interrupted();
    progress.update(done, total);
  });
  progress.clear();
  const double error = result.perplexity * result.standard_error;  // d exp(x) = exp(x) dx
  if (json) {
    fmt::print("{}\n", json_text({{"perplexity", result.perplexity},
                                  {"perplexity_standard_error", error},
                                  {"mean_nll", result.mean_nll},
                                  {"mean_nll_standard_error", result.standard_error},
                                  {"predicted_tokens", result.predicted_tokens},
                                  {"tokens", ids.size()},
                                  {"context", options.context}}));
  } else {
    fmt::print("perplexity {:.4f} ± {:.4f}  (mean −log p {:.5f} ± {:.5f} over {} tokens, windows of {})\n",
               result.perplexity, error, result.mean_nll, result.standard_error, result.predicted_tokens,
               options.context);
  }
  return 0;
}

using Work = int (*)(const NumberOptions&, bool json);

CLI::App* add(CLI::App& app, Program& program, const std::shared_ptr<NumberOptions>& options,
              const char* name, const char* help, Work work) {
  auto* command = app.add_subcommand(name, help);
  command->group("Numbers");
  add_model_argument(*command, options->model.model)->required();
  add_load_options(*command, options->model);
  add_json_flag(*command, program);
  command->callback([options, &program, work] {
    program.action = [options, &program, work] {
      const InterruptGuard guard;
      return work(*options, program.json);
    };
  });
  return command;
}

void add_output(CLI::App& command, NumberOptions& options) {
  command
      .add_option("-o,--output", options.output,
                  "the .safetensors file to write; it appears whole or not at all")
      ->type_name("FILE")
      ->required();
}

void add_trace(CLI::App& app, Program& program) {
  auto options = std::make_shared<NumberOptions>();
  auto* command = add(app, program, options, "trace", "values at named points of a prompt's run", trace);
  add_token_input(*command, options->tokens);
  add_source_input(*command, options->beside);
  add_token_types_input(*command, options->beside);
  command
      ->add_option("--points", options->points,
                   "names, with * for any characters; several by commas or repeated")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("POINTS")
      ->required();
  command->add_option("--max-gib", options->max_gib, "refuse a larger capture before it runs")
      ->check(quiet(CLI::PositiveNumber))
      ->capture_default_str();
  add_output(*command, *options);
  command->footer(
      "Examples (`liuli points` lists the names):\n"
      "  liuli trace smollm2.gguf --ids 1,2,3 --points 'blocks.*.resid_post' -o resid.safetensors\n"
      "  liuli trace smollm2.gguf --prompt 'Hello' --points blocks.0.attn.pattern,logits -o x.safetensors");
}

void add_perplexity(CLI::App& app, Program& program) {
  auto options = std::make_shared<NumberOptions>();
  auto* command = add(app, program, options, "perplexity", "how well the model predicts a text", perplexity);
  command->add_option("-f,--file", options->file, "the text; -: standard input")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--context", options->context, "tokens per window; each window's first is not predicted")
      ->check(quiet(CLI::Range(2, 1 << 24)))
      ->capture_default_str();
  command->footer("Example:\n  liuli perplexity smollm2.gguf --file book.txt --context 512");
}

}  // namespace

void add_number_commands(CLI::App& app, Program& program) {
  auto options = std::make_shared<NumberOptions>();
  auto* command = add(app, program, options, "logits", "the logits at every position, as a file", logits);
  add_token_input(*command, options->tokens);
  add_source_input(*command, options->beside);
  add_output(*command, *options);
  command->footer(
      "Examples (tensor `logits` [n, vocab], f32):\n"
      "  liuli logits smollm2.gguf --ids 1,2,3 -o fast.safetensors\n"
      "  liuli logits smollm2.gguf --ids 1,2,3 -o exact.safetensors --exact");
  add_trace(app, program);

  auto* list = app.add_subcommand("points", "the names of all values `liuli trace` can capture");
  list->group("Numbers");
  auto model = std::make_shared<std::string>();
  list->add_option("MODEL", *model,
                   "a model: only the points it has, with its sizes (default: the whole table)");
  add_json_flag(*list, program);
  list->callback(
      [&program, model] { program.action = [&program, model] { return points(*model, program.json); }; });
  add_perplexity(app, program);
}

}  // namespace liuli::cli
