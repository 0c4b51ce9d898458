// liuli bench: prompt and generation speed, load time, time to the first token, memory.
#include <chrono>
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "cli/bench_measure.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/program.h"
#include "cli/text_table.h"

namespace liuli::cli {
namespace {

struct BenchOptions {
  ModelOptions model;
  std::vector<int> prompts = {512}, generations = {128}, batches = {1};
  int depth = 0;
  int repetitions = 5;
};

struct BenchResult {
  BenchCase bench_case;
  BenchSamples samples;
};

std::vector<BenchCase> cases_of(const BenchOptions& options) {
  std::vector<BenchCase> cases;
  for (const int tokens : options.prompts) {
    if (tokens > 0) cases.push_back({BenchKind::prompt, tokens, options.depth, 1});
  }
  for (const int batch : options.batches) {
    for (const int tokens : options.generations) {
      if (tokens > 0) cases.push_back({BenchKind::generation, tokens, options.depth, batch});
    }
  }
  return cases;
}

const char* name_of(BenchKind kind) { return kind == BenchKind::prompt ? "prompt" : "generation"; }

nlohmann::ordered_json to_json(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

nlohmann::ordered_json to_json(const BenchResult& result) {
  nlohmann::ordered_json json = {{"test", name_of(result.bench_case.kind)},
                                 {"tokens", result.bench_case.tokens},
                                 {"depth", result.bench_case.depth},
                                 {"batch", result.bench_case.batch},
                                 {"tokens_per_second", to_json(spread_of(result.samples.rates))},
                                 {"seconds", to_json(spread_of(result.samples.seconds))},
                                 {"samples", result.samples.rates}};
  // The logits after the prompt are what the first new token is drawn from.
  if (result.bench_case.kind == BenchKind::prompt) {
    json["first_token_seconds"] = spread_of(result.samples.seconds).median;
  }
  return json;
}

void print_json(const BenchOptions& options, const Engine& engine, double load_seconds,
                const std::vector<BenchResult>& results) {
  auto tests = nlohmann::ordered_json::array();
  for (const BenchResult& result : results) tests.push_back(to_json(result));
  fmt::print("{}\n",
             json_text({{"model", options.model.model},
                        {"name", engine.config().name},
                        {"isa", active_isa()},
                        {"threads", engine.threads()},
                        {"class", options.model.settings.exact ? "exact" : options.model.product_class},
                        {"repetitions", options.repetitions},
                        {"load_seconds", load_seconds},
                        {"peak_memory_bytes", peak_memory()},
                        {"tests", std::move(tests)}}));
}

void print_table(const Engine& engine, double load_seconds, const std::vector<BenchResult>& results) {
  fmt::print("{}, {}, {} threads\n\n", engine.config().name, active_isa(), engine.threads());
  TextTable table({{"test"},
                   {"tokens", Align::right},
                   {"depth", Align::right},
                   {"batch", Align::right},
                   {"tokens/s", Align::right},
                   {"min … max", Align::right},
                   {"time", Align::right}});
  for (const BenchResult& result : results) {
    const BenchCase& c = result.bench_case;
    const Spread rate = spread_of(result.samples.rates);
    table.add_row({name_of(c.kind), fmt::format("{}", c.tokens), fmt::format("{}", c.depth),
                   fmt::format("{}", c.batch), fmt::format("{:.1f}", rate.median),
                   fmt::format("{:.1f} … {:.1f}", rate.min, rate.max),
                   fmt::format("{:.3f} s", spread_of(result.samples.seconds).median)});
  }
  fmt::print("{}\nload {:.3f} s · peak memory {} · a prompt's time is the time to the first new token\n",
             table.render(), load_seconds, size_text(peak_memory()));
}

int bench(const BenchOptions& options, bool json) {
  const InterruptGuard guard;
  const auto start = std::chrono::steady_clock::now();
  Engine engine = load_engine(options.model);
  const double load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::vector<BenchResult> results;
  for (const BenchCase& bench_case : cases_of(options)) {
    results.push_back({bench_case, measure(engine, bench_case, options.repetitions)});
  }
  if (json) {
    print_json(options, engine, load_seconds, results);
  } else {
    print_table(engine, load_seconds, results);
  }
  return 0;
}

void add_list(CLI::App& command, const char* name, std::vector<int>& values, const CLI::Validator& check,
              const char* help) {
  command.add_option(name, values, help)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(quiet(check))
      ->type_name("N[,N…]")
      ->capture_default_str();
}

}  // namespace

void add_bench_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<BenchOptions>();
  auto* command = app.add_subcommand("bench", "speed of prompts and of generation, load time, memory");
  command->group("Numbers");
  add_model_argument(*command, options->model.model)->required();
  add_list(*command, "-p,--prompt", options->prompts, CLI::Range(0, 1 << 24), "prompt lengths; 0: none");
  add_list(*command, "-n,--generate", options->generations, CLI::Range(0, 1 << 24),
           "tokens to generate; 0: none");
  add_list(*command, "-b,--batch", options->batches, CLI::Range(1, 256), "sequences generated together");
  command->add_option("-d,--depth,-D", options->depth, "tokens already in the cache")
      ->check(quiet(CLI::NonNegativeNumber))
      ->capture_default_str();
  command->add_option("-r,--repetitions", options->repetitions, "timed runs per line, after one untimed")
      ->check(quiet(CLI::Range(1, 1000)))
      ->capture_default_str();
  add_load_options(*command, options->model);
  add_json_flag(*command, program);
  command->footer("Example:\n  liuli bench smollm2.gguf -p 128,512 -n 128 -b 1,4,8 --json");
  command->callback([options, &program] {
    program.action = [options, &program] { return bench(*options, program.json); };
  });
}

}  // namespace liuli::cli
