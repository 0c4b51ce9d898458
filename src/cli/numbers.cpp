// liuli logits, trace, points, perplexity: a run's numbers, as files and figures.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "cli/edits_option.h"
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
  EditOptions edits;
  std::string output, file;
  std::vector<std::string> points;
  TraceSlices slices;
  double max_gib = 4;
  int context = 512;
};

// What a reader needs to know to compute the same numbers again.
std::map<std::string, std::string> file_metadata(const NumberOptions& options, const Engine& engine,
                                                 const std::vector<int>& ids) {
  std::map<std::string, std::string> metadata = {{"format", "liuli"},
                                                 {"schema", "1"},
                                                 {"model", options.model.model},
                                                 {"class", engine.plan().prompt_class},
                                                 {"isa", active_isa()},
                                                 {"ids", fmt::format("[{}]", joined(ids, ", "))}};
  const TraceSlices& slices = options.slices;
  if (!slices.tokens.empty()) metadata["tokens"] = slices.tokens;
  if (!slices.heads.empty()) metadata["heads"] = slices.heads;
  if (!slices.layers.empty()) metadata["layers"] = slices.layers;
  return metadata;
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
  TensorFileWriter writer(options.output, entries, file_metadata(options, engine, ids));
  Progress progress("logits", ProgressUnit::tokens);
  // The exact class takes minutes: short passes keep the bar moving and Ctrl-C working, and change no bit.
  const int chunk = options.model.settings.exact ? 64 : 512;
  const auto write_row = [&](int position, std::span<const float> row) {
    throw_if_interrupted();
    writer.append(row.data(), row.size());
    progress.update(std::min<int64_t>((position / chunk + 1) * chunk, n), n);  // its whole pass is done
  };
  const EditHooks edits(engine, read_edits(options.edits, engine), ids);
  engine.logits(ids, write_row, chunk, read_beside(options.beside, engine), edits.hooks());
  edits.require_all_applied();
  writer.finish();
  progress.clear();
  print_written(options, entries, json);
  return 0;
}

// Writes values where they belong in the file as they come; pieces that follow one another go out together.
class FileSink final : public TraceSink {
 public:
  FileSink(const std::string& path, std::map<std::string, std::string> metadata)
      : path_(path), metadata_(std::move(metadata)) {}

  void begin(const std::vector<TracedTensor>& tensors) override {
    for (const TracedTensor& tensor : tensors) entries_.push_back({tensor.name, tensor.shape});
    writer_.emplace(path_, entries_, metadata_);
  }
  void write(size_t tensor, int64_t first, const float* values, int64_t n) override {
    throw_if_interrupted();
    if (tensor != tensor_ || first != first_ + static_cast<int64_t>(pending_.size()) ||
        pending_.size() >= kPendingValues) {
      flush();
      tensor_ = tensor;
      first_ = first;
    }
    pending_.insert(pending_.end(), values, values + n);
  }
  void finish() {
    flush();
    writer_->finish();
  }
  const std::vector<TensorFileWriter::Entry>& entries() const { return entries_; }

 private:
  static constexpr size_t kPendingValues = size_t{1} << 18;
  void flush() {
    if (!pending_.empty())
      writer_->write_at(tensor_, first_, pending_.data(), static_cast<int64_t>(pending_.size()));
    pending_.clear();
  }

  const std::string& path_;
  std::map<std::string, std::string> metadata_;
  std::vector<TensorFileWriter::Entry> entries_;
  std::optional<TensorFileWriter> writer_;
  size_t tensor_ = 0;
  int64_t first_ = 0;
  std::vector<float> pending_;
};

int trace(const NumberOptions& options, bool json) {
  Engine engine = load_engine(options.model);
  const std::vector<int> ids = read_tokens(options.tokens, engine);
  TraceSettings settings;
  settings.max_bytes = static_cast<int64_t>(options.max_gib * 1024 * 1024 * 1024);
  settings.beside = read_beside(options.beside, engine);
  settings.slices = options.slices;
  const int64_t bytes =
      engine.trace_bytes(static_cast<int64_t>(ids.size()), options.points,
                         static_cast<int64_t>(settings.beside.source.size()), settings.slices);
  if (!json && bytes <= settings.max_bytes)
    fmt::print(stderr, "capturing {} of {} tokens\n", size_text(bytes), ids.size());
  FileSink sink(options.output, file_metadata(options, engine, ids));
  // A pipe takes the values in the file's order only: they wait in memory.
  const bool streams =
      !std::filesystem::exists(options.output) || std::filesystem::is_regular_file(options.output);
  if (streams) settings.sink = &sink;
  const EditHooks edits(engine, read_edits(options.edits, engine), ids);
  settings.hooks = edits.hooks();
  const auto traced = engine.trace(ids, options.points, settings);
  throw_if_interrupted();
  edits.require_all_applied();
  if (streams) {
    sink.finish();
    print_written(options, sink.entries(), json);
    return 0;
  }
  std::vector<TensorFileWriter::Entry> entries;
  for (const TracedTensor& tensor : traced) entries.push_back({tensor.name, tensor.shape});
  TensorFileWriter writer(options.output, entries, file_metadata(options, engine, ids));
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
  const size_t window = std::min(ids.size(), static_cast<size_t>(options.context));
  const EditHooks edits(engine, read_windowed_edits(options.edits, engine),
                        {ids.begin(), ids.begin() + static_cast<ptrdiff_t>(window)});
  const auto on_progress = [&](int64_t done, int64_t total) {
    throw_if_interrupted();
    progress.update(done, total);
  };
  const PerplexityResult result = engine.perplexity(ids, options.context, on_progress, edits.hooks());
  edits.require_all_applied();
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
                  "the .safetensors or .npz file to write; it appears whole or not at all")
      ->type_name("FILE")
      ->required();
}

// At the commas outside brackets: "a[:,2],b" is two points.
std::vector<std::string> split_points(const std::string& text) {
  std::vector<std::string> points(1);
  int depth = 0;
  for (const char c : text) {
    depth += (c == '[') - (c == ']');
    if (c == ',' && depth == 0)
      points.emplace_back();
    else
      points.back() += c;
  }
  return points;
}

void add_slices(CLI::App& command, TraceSlices& slices) {
  command.add_option("--tokens", slices.tokens, "only these positions: 3:7, -1, 0,2")->type_name("SLICE");
  command
      .add_option("--heads", slices.heads,
                  "only these query heads (of keys and values: those that they read)")
      ->type_name("SLICE");
  command.add_option("--layers", slices.layers, "only these layers: 0:4")->type_name("SLICE");
}

void add_trace(CLI::App& app, Program& program) {
  auto options = std::make_shared<NumberOptions>();
  auto* command = add(app, program, options, "trace", "values at named points of a prompt's run", trace);
  add_token_input(*command, options->tokens);
  add_source_input(*command, options->beside);
  add_token_types_input(*command, options->beside);
  add_edit_options(*command, options->edits);
  command
      ->add_option_function<std::vector<std::string>>(
          "--points",
          [options](const std::vector<std::string>& texts) {
            for (const std::string& text : texts)
              for (const std::string& point : split_points(text)) options->points.push_back(point);
          },
          "names, with * for any characters and perhaps a slice in brackets; several by commas or repeated")
      ->allow_extra_args(false)
      ->type_name("POINTS")
      ->required();
  add_slices(*command, options->slices);
  command->add_option("--limit,--max-gib", options->max_gib, "refuse a larger capture before it runs, in GiB")
      ->check(quiet(CLI::PositiveNumber))
      ->capture_default_str();
  add_output(*command, *options);
  command->footer(
      "Examples (`liuli points` lists the names):\n"
      "  liuli trace smollm2.gguf --ids 1,2,3 --points 'blocks.*.resid_post' -o resid.safetensors\n"
      "  liuli trace smollm2.gguf --prompt 'Hello' --points blocks.0.attn.pattern,logits -o x.safetensors\n"
      "  liuli trace smollm2.gguf --prompt 'Hello' --points 'blocks.3.attn.pattern[:,2,:5]' -o x.npz\n"
      "  liuli trace smollm2.gguf --prompt 'Hello' --points 'blocks.*.attn.z' --layers 0:4 --heads 0,2 -o "
      "x.npz\n"
      "Values go to the file as they come; memory stays small whatever is captured.");
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
  add_edit_options(*command, options->edits);
  command->footer("Example:\n  liuli perplexity smollm2.gguf --file book.txt --context 512");
}

}  // namespace

void add_number_commands(CLI::App& app, Program& program) {
  auto options = std::make_shared<NumberOptions>();
  auto* command = add(app, program, options, "logits", "the logits at every position, as a file", logits);
  add_token_input(*command, options->tokens);
  add_source_input(*command, options->beside);
  add_edit_options(*command, options->edits);
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
