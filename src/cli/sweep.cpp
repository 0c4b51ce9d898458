// liuli sweep: which place in the model carries the answer?
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/sweep_plot.h"
#include "cli/text_table.h"
#include "cli/token_input.h"
#include "core/output_file.h"
#include "liuli/model_file.h"
#include "liuli/sweep.h"

namespace liuli::cli {
namespace {

struct SweepOptions {
  ModelOptions model;
  std::string clean, corrupt, clean_ids, corrupt_ids, pairs;
  std::string metric = "logit_diff";
  std::string layers = "all", positions = "all", heads;
  std::string output, picture;
  SweepSettings settings;
};

// A metric as it is written: logit_diff:" Mary"," John".
struct Metric {
  SweepMetric kind;
  std::vector<std::string> tokens;
};

[[noreturn]] void bad_metric(const std::string& text, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("--metric {}: {}", text, why));
}

// Pieces between commas; quoted ones may hold commas.
std::vector<std::string> split_tokens(const std::string& whole, std::string_view text) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    if (text.front() == '"') {
      const size_t end = text.find('"', 1);
      if (end == std::string_view::npos) bad_metric(whole, "a quote that is not closed");
      pieces.push_back(std::string(text.substr(0, end + 1)));
      text.remove_prefix(end + 1);
    } else {
      pieces.push_back(std::string(text.substr(0, text.find(','))));
      text.remove_prefix(pieces.back().size());
    }
    if (text.starts_with(',')) text.remove_prefix(1);
  }
  return pieces;
}

Metric parse_metric(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  Metric metric{SweepMetric::kl, {}};
  if (colon != std::string::npos)
    metric.tokens = split_tokens(text, std::string_view(text).substr(colon + 1));
  size_t n_tokens = 1;
  if (name == "logit_diff") {
    metric.kind = SweepMetric::logit_difference;
    n_tokens = 2;
  } else if (name == "logit") {
    metric.kind = SweepMetric::logit;
  } else if (name == "prob") {
    metric.kind = SweepMetric::probability;
  } else if (name == "kl") {
    n_tokens = 0;
  } else {
    bad_metric(text, "expected logit_diff, logit, prob or kl");
  }
  if (!metric.tokens.empty() && metric.tokens.size() != n_tokens)
    bad_metric(text, fmt::format("{} tokens, {} takes {}", metric.tokens.size(), name, n_tokens));
  return metric;
}

// A token: its id, or text that is exactly one token.
int token_id(const Engine& engine, std::string text) {
  int id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error == std::errc() && end == text.data() + text.size()) return id;
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  const std::vector<int> ids = engine.tokenize(text, false);
  if (ids.size() == 1) return ids.front();
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format(
          "\"{}\" is {} tokens of this model; the metric looks at one (often one with a space before it)",
          text, ids.size()));
}

std::vector<int> prompt_of(const Engine& engine, const nlohmann::json& json) {
  return json.is_string() ? engine.tokenize(json.get<std::string>(), true, true)
                          : json.get<std::vector<int>>();
}

int token_of(const Engine& engine, const nlohmann::json& json) {
  return json.is_string() ? token_id(engine, "\"" + json.get<std::string>() + "\"") : json.get<int>();
}

SweepPair pair_of_line(const Engine& engine, const std::string& line, const SweepPair& metric_tokens) {
  const auto json = nlohmann::json::parse(line);
  for (const auto& [key, value] : json.items())
    if (key != "clean" && key != "corrupt" && key != "answer" && key != "wrong")
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("no key \"{}\"; expected clean, corrupt, answer, wrong", key));
  SweepPair pair = metric_tokens;
  pair.clean = prompt_of(engine, json.at("clean"));
  pair.corrupt = prompt_of(engine, json.at("corrupt"));
  if (json.contains("answer")) pair.answer = token_of(engine, json["answer"]);
  if (json.contains("wrong")) pair.wrong = token_of(engine, json["wrong"]);
  return pair;
}

std::vector<SweepPair> read_pairs(const SweepOptions& options, const Engine& engine,
                                  const SweepPair& metric_tokens) {
  const std::string text = read_file(options.pairs);
  std::vector<SweepPair> pairs;
  int number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    number++;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      pairs.push_back(pair_of_line(engine, line, metric_tokens));
    } catch (const nlohmann::json::exception& e) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}, line {}: {}", options.pairs, number, e.what()));
    } catch (const Error& e) {
      throw Error(e.code(), fmt::format("{}, line {}: {}", options.pairs, number, e.what()));
    }
  }
  return pairs;
}

std::vector<SweepPair> make_pairs(const SweepOptions& options, const Engine& engine, const Metric& metric) {
  SweepPair pair;
  if (!metric.tokens.empty()) pair.answer = token_id(engine, metric.tokens[0]);
  if (metric.tokens.size() > 1) pair.wrong = token_id(engine, metric.tokens[1]);
  if (!options.pairs.empty()) return read_pairs(options, engine, pair);
  const auto prompt = [&](const std::string& text, const std::string& ids, const char* name) {
    if (text.empty() == ids.empty())
      throw Error(ErrorCode::invalid_argument, fmt::format("give --{0} or --{0}-ids (or --pairs)", name));
    return ids.empty() ? engine.tokenize(text, true, true) : parse_ids(ids);
  };
  pair.clean = prompt(options.clean, options.clean_ids, "clean");
  pair.corrupt = prompt(options.corrupt, options.corrupt_ids, "corrupt");
  return {pair};
}

std::vector<int> indices(const std::string& text) {
  return text == "all" ? std::vector<int>{} : parse_ids(text);
}

nlohmann::ordered_json result_json(const SweepOptions& options, const SweepResult& r) {
  return {{"model", options.model.model},
          {"point", options.settings.point},
          {"metric", options.metric},
          {"into", options.settings.into_clean ? "clean" : "corrupt"},
          {"pairs", r.n_pairs},
          {"layers", r.layers},
          {"positions", r.positions},
          {"heads", r.heads},
          {"clean", r.clean},
          {"corrupt", r.corrupt},
          {"values", r.values},
          {"mean_value", r.mean_value},
          {"effect", r.effect},
          {"patches", r.patches},
          {"known", r.known},
          {"resumed", r.resumed},
          {"seconds", r.seconds}};
}

// .npy: the effects [layers, positions(, heads)]; .json: everything.
void write_result(const SweepOptions& options, const SweepResult& r) {
  if (options.output.empty()) return;
  if (options.output.ends_with(".npy")) {
    std::vector<int64_t> shape = {static_cast<int64_t>(r.layers.size()),
                                  static_cast<int64_t>(r.positions.size())};
    if (options.settings.by_head) shape.push_back(static_cast<int64_t>(r.heads.size()));
    return write_npy(options.output, shape, std::vector<float>(r.effect.begin(), r.effect.end()));
  }
  OutputFile file(options.output);
  file.write(json_text(result_json(options, r)) + "\n");
  file.commit();
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

void show(const SweepOptions& options, const Engine& engine, const std::vector<SweepPair>& pairs,
          const SweepResult& r) {
  std::vector<std::string> tokens;
  if (pairs.size() == 1)
    for (const int position : r.positions) {
      const auto n = static_cast<int>(pairs.front().clean.size());
      tokens.push_back(visible(
          engine.token_text(pairs.front().clean[static_cast<size_t>(position < 0 ? position + n : position)]),
          12));
    }
  const std::string title =
      fmt::format("{} patched into the {} run; 0: corrupt answer, 1: clean answer", options.settings.point,
                  options.settings.into_clean ? "clean" : "corrupt");
  const HeatMap map = heat_map(r, title, tokens);
  if (!options.picture.empty()) {
    OutputFile file(options.picture);
    file.write(options.picture.ends_with(".png") ? heat_map_png(map) : heat_map_svg(map));
    file.commit();
  }
  const bool colour = isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  fmt::print("{}", heat_map_text(map, colour, terminal_width()));
  fmt::print("{}: clean {:.4f}, corrupt {:.4f}{}\n", options.metric, mean_of(r.clean), mean_of(r.corrupt),
             r.n_pairs > 1 ? fmt::format(" (means of {} pairs)", r.n_pairs) : "");
  const auto run = r.patches - r.known - r.resumed;
  fmt::print(stderr, "[{} patches in {:.2f} s: {} run, {} change no bit, {} resumed]\n", r.patches, r.seconds,
             run, r.known, r.resumed);
}

int run_sweep(const SweepOptions& given, bool json) {
  const InterruptGuard guard;
  SweepOptions options = given;
  const Metric metric = parse_metric(options.metric);
  SweepSettings& settings = options.settings;
  settings.metric = metric.kind;
  settings.layers = indices(options.layers);
  settings.positions = indices(options.positions);
  settings.by_head = !options.heads.empty();
  if (settings.by_head) settings.heads = indices(options.heads);
  if (!options.output.empty() && !options.output.ends_with(".npy") && !options.output.ends_with(".json"))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected a name that ends in .npy or .json", options.output));
  Engine engine = load_engine(options.model);
  const std::vector<SweepPair> pairs = make_pairs(options, engine, metric);
  Progress progress("sweep", ProgressUnit::patches);
  settings.on_progress = [&](int64_t done, int64_t total) {
    throw_if_interrupted();
    progress.update(done, total);
  };
  const SweepResult result = sweep(engine, pairs, settings);
  progress.clear();
  write_result(options, result);
  if (json)
    fmt::print("{}\n", json_text(result_json(options, result)));
  else
    show(options, engine, pairs, result);
  return 0;
}

void add_what(CLI::App& command, SweepOptions& o) {
  command.add_option("--clean", o.clean, "the prompt with the answer, as it is")->type_name("TEXT");
  command.add_option("--corrupt", o.corrupt, "a prompt of as many tokens without it")->type_name("TEXT");
  command.add_option("--clean-ids", o.clean_ids, "… as token ids")->type_name("IDS");
  command.add_option("--corrupt-ids", o.corrupt_ids, "… as token ids")->type_name("IDS");
  command
      .add_option("--pairs", o.pairs,
                  "many pairs, one JSON object per line: clean, corrupt (text or ids), answer, wrong")
      ->type_name("FILE");
  command
      .add_option("--metric", o.metric,
                  "logit_diff:\" Mary\",\" John\"; logit:TOKEN; prob:TOKEN; kl (tokens: text or id; --pairs "
                  "may name them)")
      ->type_name("METRIC");
  command.add_option("--over", o.settings.point, "what to patch: a point of a block, without its blocks.N.")
      ->type_name("POINT")
      ->capture_default_str();
  command.add_option("--layers", o.layers, "all, or a list")->type_name("LIST");
  command.add_option("--positions", o.positions, "all, or a list; −1 is the last token")->type_name("LIST");
  command.add_option("--heads", o.heads, "one head at a time: all, or a list")->type_name("LIST");
  command.add_flag("--into-clean", o.settings.into_clean,
                   "patch the corrupt values into the clean run instead");
}

}  // namespace

void add_sweep_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<SweepOptions>();
  auto* command =
      app.add_subcommand("sweep", "patch one place after another and see where the answer comes back");
  command->group("Numbers");
  add_model_argument(*command, options->model.model)->required();
  add_what(*command, *options);
  command->add_option("-o,--output", options->output, "write .npy (the effects) or .json (everything)")
      ->type_name("FILE");
  command->add_option("--picture,--svg", options->picture, "write the heat-map as .svg or .png")
      ->type_name("FILE");
  command
      ->add_option("--resume", options->settings.journal,
                   "keep finished patches in a file, and go on from it")
      ->type_name("FILE");
  command
      ->add_option("--batch-rows", options->settings.batch_rows,
                   "rows through a block together; changes no bit; 0: as the class likes it")
      ->check(quiet(CLI::Range(0, 1 << 20)))
      ->capture_default_str();
  command->add_flag("--one-by-one", options->settings.one_by_one,
                    "every patch as a whole run with a hook: the same bits, slow");
  add_load_options(*command, options->model);
  add_json_flag(*command, program);
  command->footer(
      "Example:\n"
      "  liuli sweep smollm2.gguf --clean 'The capital of France is' --corrupt 'The capital of Italy is' \\\n"
      "    --metric 'logit_diff:\" Paris\",\" Rome\"' --over resid_pre --picture sweep.png");
  command->callback([options, &program] {
    program.action = [options, &program] { return run_sweep(*options, program.json); };
  });
}

}  // namespace liuli::cli
