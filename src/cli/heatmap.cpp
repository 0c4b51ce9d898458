// liuli heatmap: attention patterns, norms of the residual stream, the lens, and any matrix of a file as pictures.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/glass_options.h"
#include "cli/interrupt.h"
#include "cli/program.h"
#include "cli/text_table.h"
#include "core/output_file.h"
#include "liuli/attribution.h"
#include "liuli/model_file.h"
#include "liuli/plot.h"

namespace liuli::cli {
namespace {

struct HeatmapOptions : GlassOptions {
  int layer = 0, head = 0;
  std::string token, positions;
  std::string file, array;
  std::vector<int64_t> index;
  bool diverging = false;
};

// To the file, or to the terminal.
void show(const Heatmap& map, const std::string& output) {
  if (output.empty()) {
    const bool colour = isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
    fmt::print("{}", heatmap_terminal(map, {terminal_width(), colour}));
    return;
  }
  const std::string picture = heatmap_file(map, output);
  OutputFile file(output);
  file.write(picture);
  file.commit();
  fmt::print(stderr, "written to {}\n", output);
}

std::vector<std::string> token_labels(const Engine& engine, const std::vector<int>& ids) {
  std::vector<std::string> labels;
  for (size_t i = 0; i < ids.size(); i++) labels.push_back(position_label(engine, ids, static_cast<int>(i)));
  return labels;
}

int attention(const HeatmapOptions& options) {
  Engine engine = load_engine(options.model);
  const std::vector<int> ids = read_tokens(options.tokens, engine);
  const auto pattern =
      engine.trace(ids, {fmt::format("*blocks.{}.attn.pattern[{}]", options.layer, options.head)}).at(0);
  Heatmap map;
  map.title = fmt::format("{}: attention pattern", pattern.name);
  map.x_title = "key (looked at)";
  map.y_title = "query (looks)";
  map.value_title = "probability";
  map.rows = map.columns = static_cast<int64_t>(ids.size());
  map.x_labels = map.y_labels = token_labels(engine, ids);
  map.values = pattern.values;
  if (engine.config().causal)
    for (int64_t i = 0; i < map.rows; i++)
      for (int64_t j = i + 1; j < map.columns; j++)
        map.values[static_cast<size_t>(i * map.columns + j)] = NAN;
  map.low = 0, map.high = 1;
  show(map, options.output);
  return 0;
}

int residual(const HeatmapOptions& options) {
  Engine engine = load_engine(options.model);
  const std::vector<int> ids = read_tokens(options.tokens, engine);
  const auto traced = engine.trace(ids, {"*blocks.0.resid_pre", "*blocks.*.resid_post"});
  Heatmap map;
  map.title = "norm of the residual stream, as it is (raw)";
  map.x_title = "position";
  map.value_title = "‖x‖₂";
  map.x_labels = token_labels(engine, ids);
  map.columns = static_cast<int64_t>(ids.size());
  for (const TracedTensor& stream : traced) {
    if (stream.shape[0] != map.columns || stream.name.find("normalized") != std::string::npos) continue;
    map.rows++;
    map.y_labels.push_back(stream.name);
    const auto width = static_cast<size_t>(stream.shape[1]);
    for (size_t i = 0; i < ids.size(); i++) {
      double sum = 0;
      for (size_t j = 0; j < width; j++)
        sum += std::pow(static_cast<double>(stream.values[i * width + j]), 2);
      map.values.push_back(static_cast<float>(std::sqrt(sum)));
    }
  }
  show(map, options.output);
  return 0;
}

int lens(const HeatmapOptions& options) {
  Engine engine = load_engine(options.model);
  const std::vector<int> ids = read_tokens(options.tokens, engine);
  LensSettings settings;
  settings.tokens = options.positions;
  if (!options.token.empty()) settings.followed = one_token(engine, options.token);
  const LensReport report = logit_lens(engine, ids, settings);
  const bool follows = settings.followed >= 0;
  Heatmap map;
  map.title = follows ? fmt::format("lens: probability of {}, through ln_final",
                                    token_label(engine, settings.followed))
                      : "lens: the likeliest next token, through ln_final";
  map.x_title = "position";
  map.value_title = "probability";
  map.rows = static_cast<int64_t>(report.rows.size());
  map.columns = static_cast<int64_t>(report.positions.size());
  for (const int position : report.positions) map.x_labels.push_back(position_label(engine, ids, position));
  for (auto row = report.rows.rbegin(); row != report.rows.rend(); ++row) {  // the last storey on top
    map.y_labels.push_back(row->point);
    for (const LensCell& cell : row->cells) {
      map.values.push_back(static_cast<float>(follows ? cell.followed_probability : cell.top_probability));
      if (!follows) map.cell_labels.push_back(token_label(engine, cell.top_token, 10));
    }
  }
  map.low = 0, map.high = 1;
  show(map, options.output);
  return 0;
}

// One matrix of a file: an array's last two axes, the others fixed by --index.
int matrix(const HeatmapOptions& options) {
  std::vector<DecodedTensor> arrays = read_arrays(options.file);
  const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const DecodedTensor& a) {
    return options.array.empty() ? a.shape.size() >= 2 || arrays.size() == 1 : a.name == options.array;
  });
  if (found == arrays.end()) {
    std::string names;
    for (const DecodedTensor& a : arrays) names += fmt::format(" {} {}", a.name, shape_text(a.shape));
    throw Error(ErrorCode::not_found, fmt::format("{} has no matrix \"{}\"; it holds:{}", options.file,
                                                  options.array, names.empty() ? " nothing" : names));
  }
  std::vector<int64_t> shape = found->shape;
  while (shape.size() < 2) shape.insert(shape.begin(), 1);
  const size_t n_fixed = shape.size() - 2;
  std::vector<int64_t> index = options.index;
  index.resize(std::max(index.size(), n_fixed));
  int64_t at = 0;
  for (size_t i = 0; i < index.size(); i++) {
    if (index.size() > n_fixed || index[i] < 0 || index[i] >= shape[i])
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--index {} does not fit the shape {}: it fixes all axes but "
                              "the last two",
                              joined(index, ","), shape_text(found->shape)));
    at = at * shape[i] + index[i];
  }
  Heatmap map;
  map.rows = shape[n_fixed];
  map.columns = shape[n_fixed + 1];
  map.title =
      fmt::format("{} {}{}", options.file, found->name, n_fixed > 0 ? " [" + joined(index, ", ") + "]" : "");
  const auto begin = found->values.begin() + at * map.rows * map.columns;
  map.values.assign(begin, begin + map.rows * map.columns);
  map.scale = options.diverging ? ColourScale::diverging : ColourScale::sequential;
  show(map, options.output);
  return 0;
}

using Work = int (*)(const HeatmapOptions&);

CLI::App* add(CLI::App& parent, Program& program, const std::shared_ptr<HeatmapOptions>& options,
              const char* name, const char* help, Work work) {
  auto* command = parent.add_subcommand(name, help);
  add_array_output(*command, options->output,
                   "the .svg or .png file to write; default: drawn in the terminal");
  command->callback([options, &program, work] {
    program.action = [options, work] {
      const InterruptGuard guard;
      return work(*options);
    };
  });
  return command;
}

CLI::App* add_of_model(CLI::App& parent, Program& program, const std::shared_ptr<HeatmapOptions>& options,
                       const char* name, const char* help, Work work) {
  auto* command = add(parent, program, options, name, help, work);
  add_model_argument(*command, options->model.model)->required();
  add_load_options(*command, options->model);
  add_token_input(*command, options->tokens);
  return command;
}

}  // namespace

void add_heatmap_command(CLI::App& app, Program& program) {
  auto* heatmap = app.add_subcommand("heatmap", "pictures: attention, residual norms, lens, any matrix");
  heatmap->group("See inside")->require_subcommand(1);
  auto options = std::make_shared<HeatmapOptions>();
  auto* of_attention =
      add_of_model(*heatmap, program, options, "attention", "one head's attention pattern", attention);
  of_attention->add_option("--layer", options->layer, "of the block")->capture_default_str();
  of_attention->add_option("--head", options->head, "of the head; negative: from the end")
      ->capture_default_str();
  add_of_model(*heatmap, program, options, "residual", "norms of the residual stream, blocks × positions",
               residual);
  auto* of_lens = add_of_model(*heatmap, program, options, "lens", "what every storey would say", lens);
  of_lens->add_option("--token", options->token, "the probability of this token instead (or id:1234)")
      ->type_name("TEXT");
  of_lens->add_option("--tokens", options->positions, "positions: 3:7, -1, 0,2 (default: all)")
      ->type_name("SLICE");
  auto* of_file =
      add(*heatmap, program, options, "file", "a matrix of an .npy, .npz or .safetensors file", matrix);
  of_file->add_option("FILE", options->file, "the file")->required();
  of_file->add_option("--array", options->array, "its name in the file (default: the first matrix)")
      ->type_name("NAME");
  of_file->add_option("--index", options->index, "of all axes but the last two: 3,0 (default: 0)")
      ->delimiter(',')
      ->type_name("I");
  of_file->add_flag("--diverging", options->diverging, "colours around 0: blue below, red above");
  heatmap->footer(
      "Examples:\n"
      "  liuli heatmap attention smollm2 --raw --prompt 'The cat sat on the mat' --layer 3 --head 2\n"
      "  liuli heatmap lens smollm2 --raw --prompt 'The capital of France is' -o lens.svg\n"
      "  liuli heatmap file sweep.npz --array effect --diverging -o sweep.svg");
}

}  // namespace liuli::cli
