// liuli embed: texts as vectors, and how near they are to one another.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/text_table.h"
#include "cli/token_input.h"
#include "liuli/model_file.h"

namespace liuli::cli {
namespace {

struct EmbedOptions {
  ModelOptions model;
  EmbedSettings settings;
  std::vector<std::string> texts, similarity;
  std::string file, output, similar_to, pooling, ids;
  bool no_normalise = false;
  int top = 10;
};

constexpr const char* kHelpFooter =
    "Examples:\n"
    "  liuli embed minilm 'A cat sat on the mat.' 'Ein Haus am See.' > vectors.jsonl\n"
    "  liuli embed minilm --file lines.txt -o vectors.npy\n"
    "  liuli embed minilm --similarity 'a cat' 'a kitten'\n"
    "  liuli embed minilm --similar-to 'why the norm?' --file lines.txt --top 5\n"
    "Pooling, normalising and the longest text follow the model's own files (modules.json, 1_Pooling,\n"
    "sentence_bert_config.json, GGUF's pooling_type); else the mean of all rows for encoders, the last row "
    "for\n"
    "decoders, length 1. A vector depends on its text only, never on what it is computed with.";

// One text per line; the newline at the end of the file begins no further text.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
    at = end + 1;
  }
  return lines;
}

std::vector<std::string> texts_of(const EmbedOptions& options) {
  std::vector<std::string> texts = options.texts;
  const bool piped = texts.empty() && options.file.empty() && standard_input_has_data();
  if (!options.file.empty() || piped) {
    const std::string content =
        piped || options.file == "-" ? read_standard_input() : read_file(options.file);
    for (std::string& line : lines_of(content)) texts.push_back(std::move(line));
  }
  if (texts.empty())
    throw Error(ErrorCode::invalid_argument, "no texts: give some, or a file of lines with --file");
  return texts;
}

EmbedSettings settings_of(const EmbedOptions& options, Progress& progress) {
  EmbedSettings settings = options.settings;
  if (!options.pooling.empty()) settings.pooling = pooling_from(options.pooling);
  if (options.no_normalise) settings.normalise = false;
  settings.on_progress = [&progress](int64_t done, int64_t total) {
    throw_if_interrupted();
    progress.update(done, total);
  };
  return settings;
}

std::vector<Embedding> embed(const EmbedOptions& options, Engine& engine,
                             const std::vector<std::string>& texts) {
  Progress progress("embedding", ProgressUnit::texts);
  std::vector<Embedding> embeddings = engine.embed(texts, settings_of(options, progress));
  progress.clear();
  const auto cut = std::count_if(embeddings.begin(), embeddings.end(), [](const auto& e) { return e.cut; });
  if (cut > 0)
    fmt::print(stderr, "liuli: notice: {} of {} texts were cut to {} tokens\n", cut, texts.size(),
               engine.embed_plan(settings_of(options, progress)).max_tokens);
  return embeddings;
}

// Floats in the fewest digits that give the same float back.
std::string values_text(const std::vector<float>& values, size_t limit) {
  std::string text;
  for (size_t i = 0; i < std::min(values.size(), limit); i++)
    text += fmt::format("{}{}", i == 0 ? "" : ",", values[i]);
  return text;
}

void print_json_lines(const std::vector<std::string>& texts, const std::vector<Embedding>& embeddings) {
  for (size_t i = 0; i < embeddings.size(); i++) {
    const Embedding& e = embeddings[i];
    const std::string text = i < texts.size() ? json_text(texts[i], -1) : "null";
    fmt::print("{{\"index\":{},\"text\":{},\"tokens\":{},\"cut\":{},\"embedding\":[{}]}}\n", i, text,
               e.tokens, e.cut, values_text(e.values, e.values.size()));
  }
}

void print_preview(const std::vector<std::string>& texts, const std::vector<Embedding>& embeddings) {
  TextTable table({{"text"}, {"tokens", Align::right}, {"values"}});
  for (size_t i = 0; i < embeddings.size(); i++) {
    std::string values;
    for (size_t j = 0; j < std::min<size_t>(5, embeddings[i].values.size()); j++)
      values += fmt::format("{:8.4f} ", embeddings[i].values[j]);
    table.add_row({i < texts.size() ? visible(texts[i], 40) : "", fmt::format("{}", embeddings[i].tokens),
                   values + fmt::format("… {} values", embeddings[i].values.size())});
  }
  fmt::print("{}", table.render());
}

void write_vectors(const std::string& path, const std::vector<Embedding>& embeddings) {
  const auto width = static_cast<int64_t>(embeddings.front().values.size());
  std::vector<float> all;
  for (const Embedding& e : embeddings) all.insert(all.end(), e.values.begin(), e.values.end());
  write_npy(path, {static_cast<int64_t>(embeddings.size()), width}, all);
  fmt::print(stderr, "{} vectors of {} values written to {}\n", embeddings.size(), width, path);
}

int vectors(const EmbedOptions& options, bool json) {
  std::vector<std::string> texts;
  std::vector<Embedding> embeddings;
  if (options.ids.empty()) {
    texts = texts_of(options);
    Engine engine = load_engine(options.model);
    embeddings = embed(options, engine, texts);
  } else {
    Engine engine = load_engine(options.model);
    Progress progress("embedding", ProgressUnit::texts);
    const std::vector<std::vector<int>> ids = {parse_ids(options.ids)};
    embeddings = engine.embed_ids(ids, settings_of(options, progress));
  }
  if (!options.output.empty()) write_vectors(options.output, embeddings);
  if (json || (options.output.empty() && isatty(STDOUT_FILENO) == 0))
    print_json_lines(texts, embeddings);
  else if (options.output.empty())
    print_preview(texts, embeddings);
  return 0;
}

int similarity(const EmbedOptions& options, bool json) {
  Engine engine = load_engine(options.model);
  const auto embeddings = embed(options, engine, options.similarity);
  const double cosine = cosine_similarity(embeddings[0].values, embeddings[1].values);
  if (json)
    fmt::print("{}\n", json_text({{"similarity", cosine}}, -1));
  else
    fmt::print("{:.4f}\n", cosine);
  return 0;
}

int ranking(const EmbedOptions& options, bool json) {
  std::vector<std::string> texts = texts_of(options);
  Engine engine = load_engine(options.model);
  texts.insert(texts.begin(), options.similar_to);
  const auto embeddings = embed(options, engine, texts);
  std::vector<double> cosines;
  for (const Embedding& e : embeddings) cosines.push_back(cosine_similarity(embeddings[0].values, e.values));
  std::vector<size_t> order(texts.size() - 1);
  std::iota(order.begin(), order.end(), size_t{1});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return cosines[a] > cosines[b]; });
  order.resize(std::min(order.size(), static_cast<size_t>(options.top)));
  TextTable table({{"cosine", Align::right}, {"line", Align::right}, {"text"}});
  for (const size_t i : order) {
    if (json)
      fmt::print("{}\n", json_text({{"line", i}, {"similarity", cosines[i]}, {"text", texts[i]}}, -1));
    else
      table.add_row({fmt::format("{:.4f}", cosines[i]), fmt::format("{}", i), visible(texts[i], 80)});
  }
  if (!json) fmt::print("{}", table.render());
  return 0;
}

int run(const EmbedOptions& options, bool json) {
  const InterruptGuard guard;
  if (!options.similarity.empty()) return similarity(options, json);
  return options.similar_to.empty() ? vectors(options, json) : ranking(options, json);
}

void add_inputs(CLI::App& command, EmbedOptions& options) {
  command.add_option("TEXT", options.texts, "the texts; none: the lines of --file or standard input");
  command.add_option("-f,--file", options.file, "a file with one text per line; -: standard input")
      ->type_name("FILE");
  command.add_option("--ids", options.ids, "one text as token ids: 1,2,3")->type_name("IDS");
  command.add_option("--similarity", options.similarity, "only the cosine of two texts")
      ->expected(2)
      ->type_name("A B");
  command.add_option("--similar-to", options.similar_to, "rank the texts by their cosine to this one")
      ->type_name("TEXT");
  command.add_option("--top", options.top, "how many of the ranking to show")
      ->check(quiet(CLI::Range(1, 1 << 30)))
      ->capture_default_str();
}

}  // namespace

void add_embed_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<EmbedOptions>();
  auto* command = app.add_subcommand("embed", "texts as vectors; similarity and ranking");
  command->group("Use a model");
  add_model_argument(*command, options->model.model)->required();
  add_inputs(*command, *options);
  command
      ->add_option("--pooling", options->pooling,
                   "mean, cls (the first row) or last; default: the model's own")
      ->check(quiet(CLI::IsMember({"mean", "cls", "last"})))
      ->type_name("NAME");
  command->add_flag("--no-normalize", options->no_normalise, "leave the vectors' lengths as they are");
  command
      ->add_option("--max-tokens", options->settings.max_tokens,
                   "cut longer texts, keeping the closing token; 0: the model's own limit")
      ->check(quiet(CLI::Range(0, 1 << 30)))
      ->capture_default_str();
  command->add_option("-o,--out", options->output, "write the vectors as one array [texts, d_model]")
      ->type_name("FILE.npy");
  add_load_options(*command, options->model);
  add_json_flag(*command, program, "JSON lines, also on a terminal");
  command->footer(kHelpFooter);
  command->callback(
      [options, &program] { program.action = [options, &program] { return run(*options, program.json); }; });
}

}  // namespace liuli::cli
