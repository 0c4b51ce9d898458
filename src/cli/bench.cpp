// liuli bench: prompt and generation speed beside the machine's limits and beside llama.cpp, load time, memory.
#include <chrono>
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "cli/bench_peer.h"
#include "cli/bench_report.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/program.h"
#include "cli/text_table.h"
#include "core/output_file.h"

namespace liuli::cli {
namespace {

struct BenchOptions {
  ModelOptions model;
  std::vector<int> prompts = {512}, generations = {128}, batches = {1}, depths = {0};
  int repetitions = 5;
  std::string peer, svg;
  bool markdown = false, no_limits = false;
};

std::vector<BenchResult> cases_of(const BenchOptions& options, const Engine& engine) {
  std::vector<BenchResult> results;
  const auto add = [&](const BenchCase& c) {
    if (c.tokens > 0) results.push_back({c, work_of(engine, c), {}, {}, {}});
  };
  for (const int depth : options.depths) {
    for (const int tokens : options.prompts) add({BenchKind::prompt, tokens, depth, 1});
    for (const int batch : options.batches) {
      for (const int tokens : options.generations) add({BenchKind::generation, tokens, depth, batch});
    }
  }
  return results;
}

BenchPeer peer_of(const BenchOptions& options, const Engine& engine) {
  const std::string& type = options.model.cache_type;
  return {options.peer, resolve_model(options.model.model), engine.threads(), type == "auto" ? "" : type};
}

// Rounds of one run per case, then the peer's: a slow moment of the machine hits both.
void measure(const BenchOptions& options, Engine& engine, BenchReport& report) {
  BenchRunner runner(engine);
  const BenchPeer peer = peer_of(options, engine);
  for (const BenchResult& result : report.results) runner.seconds(result.bench_case);  // untimed
  for (int round = 0; round < options.repetitions; ++round) {
    for (BenchResult& result : report.results) {
      const BenchCase& c = result.bench_case;
      result.seconds.push_back(runner.seconds(c));
      result.rates.push_back(static_cast<double>(c.tokens) * c.batch / result.seconds.back());
    }
    if (!peer.path.empty())
      report.peer.peak_memory = std::max(report.peer.peak_memory, run_peer(peer, report.results));
    throw_if_interrupted();
  }
  if (!peer.path.empty() && !options.prompts.empty() && options.prompts.front() > 0)
    report.peer.first_token_seconds = peer_first_token_seconds(peer, options.prompts.front());
}

BenchReport make_report(const BenchOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Engine engine = load_engine(options.model);
  BenchReport report;
  report.load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report.model = options.model.model;
  report.name = engine.config().name;
  report.isa = active_isa();
  report.product_class = options.model.settings.exact ? "exact" : options.model.product_class;
  const ModelPlan plan = engine.plan(1);
  report.cache_type = plan.cache_type;
  report.prompt_products = plan.prompt_products;
  report.panel_file = plan.panel_file;
  report.threads = engine.threads();
  report.repetitions = options.repetitions;
  report.peer.path = options.peer;
  report.results = cases_of(options, engine);
  const OtherLoad others;
  measure(options, engine, report);
  report.other_load = others.share();
  report.peak_memory = peak_memory();  // before the limits take memory of their own
  if (!options.no_limits) report.limits = measure_machine_limits(engine.threads());
  return report;
}

int bench(const BenchOptions& options, bool json) {
  if (!options.svg.empty() && options.no_limits)
    throw Error(ErrorCode::invalid_argument, "--svg draws the limits: leave --no-limits out");
  const InterruptGuard guard;
  const BenchReport report = make_report(options);
  if (!options.svg.empty()) {
    OutputFile file(options.svg);
    file.write(bench_roofline(report));
    file.commit();
  }
  if (json) {
    fmt::print("{}\n", json_text(bench_json(report)));
  } else {
    fmt::print("{}", bench_table(report, options.markdown));
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

void add_output_options(CLI::App& command, BenchOptions& options, Program& program) {
  command
      .add_option("--peer", options.peer,
                  "llama.cpp's llama-bench: runs turn and turn about on the same file, medians and ratios")
      ->type_name("PATH");
  command.add_flag("--no-limits", options.no_limits, "do not measure what the machine can do at most");
  command.add_flag("--markdown", options.markdown, "the table as markdown");
  command.add_option("--svg", options.svg, "draw the tests below the machine's limits (roofline)")
      ->type_name("FILE");
  add_json_flag(command, program);
}

}  // namespace

void add_bench_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<BenchOptions>();
  auto* command = app.add_subcommand(
      "bench",
      "speed of prompts and of generation beside the machine's limits and llama.cpp, load time, memory");
  command->group("Numbers");
  add_model_argument(*command, options->model.model)->required();
  add_list(*command, "-p,--prompt", options->prompts, CLI::Range(0, 1 << 24), "prompt lengths; 0: none");
  add_list(*command, "-n,--generate", options->generations, CLI::Range(0, 1 << 24),
           "tokens to generate; 0: none");
  add_list(*command, "-b,--batch", options->batches, CLI::Range(1, 256), "sequences generated together");
  add_list(*command, "-d,--depth,-D", options->depths, CLI::Range(0, 1 << 24), "tokens already in the cache");
  command->add_option("-r,--repetitions", options->repetitions, "timed runs per line, after one untimed")
      ->check(quiet(CLI::Range(1, 1000)))
      ->capture_default_str();
  add_load_options(*command, options->model);
  add_output_options(*command, *options, program);
  command->footer(
      "Examples:\n"
      "  liuli bench smollm2.gguf -p 128,512 -n 128 -b 1,4,8 --json\n"
      "  liuli bench smollm2.gguf -p 512 -n 64 -d 0,4096 --peer PATH/llama-bench --svg roofline.svg\n"
      "of stream: the bytes that must be read, by what all threads read at most; of peak: multiplications "
      "and additions, by\n"
      "the fastest float instruction (prompts) or int8 one (generated tokens, int8 prompts). Both are "
      "measured after the "
      "tests.\n"
      "A --cache-type holds for the peer too, which then runs with flash attention (-fa 1).");
  command->callback([options, &program] {
    program.action = [options, &program] { return bench(*options, program.json); };
  });
}

}  // namespace liuli::cli
