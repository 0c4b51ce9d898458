// liuli plan: which kernel and layout each weight uses, what it costs in memory, and why.
#include <algorithm>
#include <cctype>
#include <memory>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/program.h"
#include "cli/text_table.h"

namespace liuli::cli {
namespace {

struct PlanOptions {
  ModelOptions model;
  int context = 0;
  bool require_fast = false;
};

// "blk.12.ffn_up.weight" → "blk.*.ffn_up.weight": the same weight of every layer reads as one line.
std::string generic_name(const std::string& name) {
  std::string out;
  for (size_t i = 0; i < name.size();) {
    const size_t digits_begin = i;
    while (i < name.size() && std::isdigit(static_cast<unsigned char>(name[i]))) ++i;
    const bool whole_part = i > digits_begin && digits_begin > 0 && name[digits_begin - 1] == '.' &&
                            i < name.size() && name[i] == '.';
    out += whole_part ? "*" : name.substr(digits_begin, i - digits_begin);
    if (i < name.size()) out += name[i++];
  }
  return out;
}

// Equal weights of different layers, counted and added up.
struct WeightGroup {
  PlannedWeight first;
  std::string name;
  int count = 0;
  int64_t run_bytes = 0;
};

bool belongs(const WeightGroup& group, const PlannedWeight& weight, const std::string& name) {
  const auto key = [](const PlannedWeight& w) {
    return std::tie(w.type, w.shape, w.layout, w.kernel, w.fast, w.why);
  };
  return group.name == name && key(group.first) == key(weight);
}

std::vector<WeightGroup> group_weights(const std::vector<PlannedWeight>& weights) {
  std::vector<WeightGroup> groups;
  for (const PlannedWeight& weight : weights) {
    const std::string name = generic_name(weight.name);
    auto group = groups.begin();
    while (group != groups.end() && !belongs(*group, weight, name)) ++group;
    if (group == groups.end()) group = groups.insert(groups.end(), WeightGroup{weight, name, 0, 0});
    group->count++;
    group->run_bytes += weight.run_bytes;
  }
  return groups;
}

// Reasons are long and few: the table holds their numbers, the lines below it their words.
void print_weights(const ModelPlan& plan) {
  TextTable table({{"", Align::right},
                   {"weight"},
                   {"stored"},
                   {"shape", Align::right},
                   {"layout"},
                   {"kernel"},
                   {"fast"},
                   {"memory", Align::right},
                   {"why"}});
  std::vector<std::string> reasons;
  for (const WeightGroup& group : group_weights(plan.weights)) {
    const PlannedWeight& weight = group.first;
    auto reason = std::find(reasons.begin(), reasons.end(), weight.why);
    if (reason == reasons.end()) reason = reasons.insert(reasons.end(), weight.why);
    table.add_row({fmt::format("{} ×", group.count), group.count > 1 ? group.name : weight.name, weight.type,
                   shape_text(weight.shape), weight.layout, weight.kernel, weight.fast ? "yes" : "NO",
                   size_text(group.run_bytes), fmt::format("[{}]", reason - reasons.begin() + 1)});
  }
  fmt::print("{}", table.render());
  for (size_t i = 0; i < reasons.size(); ++i) fmt::print("[{}] {}\n", i + 1, reasons[i]);
  fmt::print("\n");
}

void print_for_people(const ModelPlan& plan) {
  fmt::print("instruction set   {} (available: {}; LIULI_ISA chooses)\n", plan.isa,
             joined(available_isas(), ", "));
  fmt::print("threads           {}\n", plan.threads);
  const std::string products = plan.prompt_products == "int8" ? ", int8 products" : "";
  fmt::print("prompt            {} class{}, {}\n", plan.prompt_class, products, plan.prompt_kernel);
  fmt::print("generated tokens  {} class\n", plan.generated_class);
  fmt::print("attention         {}\n\n", plan.attention_kernel);
  print_weights(plan);
  const std::string mapped = plan.panel_file.empty() ? "" : ", mapped from " + plan.panel_file;
  fmt::print("weights           {}{}\n", size_text(plan.weight_bytes), mapped);
  fmt::print("cache             {}, {} per token, {} for a context of {}\n", plan.cache_type,
             size_text(plan.cache_bytes_per_token), size_text(plan.cache_bytes), plan.context);
  fmt::print("a prompt's pass   {} tokens, {} at most\n", plan.prompt_chunk, size_text(plan.pass_bytes));
  fmt::print("together          {}\n", size_text(plan.weight_bytes + plan.cache_bytes + plan.pass_bytes));
}

nlohmann::ordered_json to_json(const PlannedWeight& weight) {
  return {{"name", weight.name},
          {"type", weight.type},
          {"shape", weight.shape},
          {"layout", weight.layout},
          {"kernel", weight.kernel},
          {"fast", weight.fast},
          {"file_bytes", weight.file_bytes},
          {"run_bytes", weight.run_bytes},
          {"why", weight.why}};
}

nlohmann::ordered_json to_json(const ModelPlan& plan) {
  auto weights = nlohmann::ordered_json::array();
  for (const PlannedWeight& weight : plan.weights) weights.push_back(to_json(weight));
  return {{"isa", plan.isa},
          {"available_isas", available_isas()},
          {"threads", plan.threads},
          {"prompt_class", plan.prompt_class},
          {"prompt_kernel", plan.prompt_kernel},
          {"prompt_products", plan.prompt_products},
          {"generated_class", plan.generated_class},
          {"attention_kernel", plan.attention_kernel},
          {"cache_type", plan.cache_type},
          {"weight_bytes", plan.weight_bytes},
          {"panel_file", plan.panel_file},
          {"cache_bytes_per_token", plan.cache_bytes_per_token},
          {"context", plan.context},
          {"cache_bytes", plan.cache_bytes},
          {"prompt_chunk", plan.prompt_chunk},
          {"pass_bytes", plan.pass_bytes},
          {"weights", std::move(weights)}};
}

void check_fast(const ModelPlan& plan) {
  for (const PlannedWeight& weight : plan.weights) {
    if (weight.fast) continue;
    throw Error(ErrorCode::unsupported,
                fmt::format("{} ({}) has no fast kernel on {}: it uses {} ({})", weight.name, weight.type,
                            plan.isa, weight.kernel, weight.why));
  }
}

int plan(const PlanOptions& options, bool json) {
  const InterruptGuard guard;
  const Engine engine = load_engine(options.model);
  const ModelPlan planned = engine.plan(options.context);
  if (json) {
    fmt::print("{}\n", json_text(to_json(planned)));
  } else {
    print_for_people(planned);
  }
  if (options.require_fast) check_fast(planned);
  return 0;
}

}  // namespace

void add_plan_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<PlanOptions>();
  auto* command = app.add_subcommand("plan", "which kernel and layout each weight uses, memory, and why");
  command->group("See inside");
  add_model_argument(*command, options->model.model)->required();
  command->add_option("--context", options->context, "count the cache for so many tokens; 0: the model's own")
      ->check(quiet(CLI::NonNegativeNumber))
      ->capture_default_str();
  command->add_flag("--require-fast", options->require_fast,
                    "fail (exit code 5) if a weight would go through scalar code or expansion");
  add_load_options(*command, options->model);
  add_json_flag(*command, program);
  command->footer(
      "Examples:\n  liuli plan smollm2.gguf --context 4096\n  LIULI_ISA=scalar liuli plan smollm2.gguf "
      "--require-fast");
  command->callback(
      [options, &program] { program.action = [options, &program] { return plan(*options, program.json); }; });
}

}  // namespace liuli::cli
