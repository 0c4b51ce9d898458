// liuli heads: where every attention head looks, and which ones copy what followed last time (induction).
#include <algorithm>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "cli/glass_options.h"
#include "cli/interrupt.h"
#include "cli/program.h"
#include "cli/text_table.h"
#include "liuli/attribution.h"

namespace liuli::cli {
namespace {

struct HeadsOptions : GlassOptions {
  int length = 50, repeats = 2, top = 20;
  uint64_t seed = 1;
  std::string sort = "induction";
};

using Score = double HeadSummary::*;
const std::map<std::string, Score>& scores() {
  static const std::map<std::string, Score> table = {
      {"induction", &HeadSummary::induction},  {"prefix_match", &HeadSummary::prefix_match},
      {"duplicate", &HeadSummary::duplicate},  {"first", &HeadSummary::on_first},
      {"previous", &HeadSummary::on_previous}, {"itself", &HeadSummary::on_itself},
      {"entropy", &HeadSummary::entropy},      {"distance", &HeadSummary::distance}};
  return table;
}

nlohmann::ordered_json to_json(const HeadsReport& report, const HeadsOptions& options) {
  nlohmann::ordered_json json = {{"class", report.product_class},
                                 {"isa", active_isa()},
                                 {"sorted_by", options.sort},
                                 {"ids", report.ids},
                                 {"repeated_positions", report.repeated_positions}};
  auto& heads = json["heads"] = nlohmann::ordered_json::array();
  for (const HeadSummary& h : report.heads)
    heads.push_back({{"name", h.name},
                     {"layer", h.layer},
                     {"head", h.head},
                     {"induction", h.induction},
                     {"prefix_match", h.prefix_match},
                     {"duplicate", h.duplicate},
                     {"on_first", h.on_first},
                     {"on_previous", h.on_previous},
                     {"on_itself", h.on_itself},
                     {"entropy", h.entropy},
                     {"distance", h.distance}});
  return json;
}

void print_for_people(const HeadsReport& report, const HeadsOptions& options) {
  TextTable table({{"head"},
                   {"induction", Align::right},
                   {"prefix", Align::right},
                   {"duplicate", Align::right},
                   {"first", Align::right},
                   {"previous", Align::right},
                   {"itself", Align::right},
                   {"entropy", Align::right},
                   {"distance", Align::right}});
  const size_t n =
      options.top > 0 ? std::min(report.heads.size(), static_cast<size_t>(options.top)) : report.heads.size();
  for (size_t i = 0; i < n; i++) {
    const HeadSummary& h = report.heads[i];
    std::vector<std::string> cells = {h.name};
    for (const double v :
         {h.induction, h.prefix_match, h.duplicate, h.on_first, h.on_previous, h.on_itself, h.entropy})
      cells.push_back(fmt::format("{:.3f}", v));
    cells.push_back(fmt::format("{:.1f}", h.distance));
    table.add_row(std::move(cells));
  }
  std::map<int, std::pair<double, int>> sink;
  for (const HeadSummary& h : report.heads) sink[h.layer].first += h.on_first, sink[h.layer].second++;
  std::vector<std::string> by_layer;
  for (const auto& [layer, mean] : sink) by_layer.push_back(fmt::format("{:.2f}", mean.first / mean.second));
  fmt::print("{} heads over {} tokens ({} of them seen before), {} class, sorted by {}\n{}",
             report.heads.size(), report.ids.size(), report.repeated_positions, report.product_class,
             options.sort, table.render());
  fmt::print("Attention to position 0, mean of each layer's heads: {}\n", joined(by_layer, " "));
}

int heads(const HeadsOptions& options, bool json) {
  const InterruptGuard guard;
  Engine engine = load_engine(options.model);
  const TokenInput& given = options.tokens;
  const bool has_text = given.has_ids || given.has_prompt || !given.ids_file.empty();
  const std::vector<int> ids =
      has_text ? read_tokens(given, engine)
               : repeated_random_tokens(engine, options.length, options.repeats, options.seed);
  HeadsReport report = summarize_heads(engine, ids);
  const Score score = scores().at(options.sort);
  std::stable_sort(report.heads.begin(), report.heads.end(),
                   [&](const HeadSummary& a, const HeadSummary& b) { return a.*score > b.*score; });
  if (json)
    fmt::print("{}\n", json_text(to_json(report, options)));
  else
    print_for_people(report, options);
  return 0;
}

}  // namespace

void add_heads_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<HeadsOptions>();
  auto* command = app.add_subcommand("heads", "where every attention head looks; induction scores");
  command->group("See inside");
  add_model_argument(*command, options->model.model)->required();
  add_load_options(*command, options->model);
  add_json_flag(*command, program);
  add_token_input(*command, options->tokens, false);
  command->add_option("--length", options->length, "without a prompt: so many random tokens …")
      ->capture_default_str();
  command->add_option("--repeats", options->repeats, "… so many times")->capture_default_str();
  command->add_option("--seed", options->seed, "of the random tokens")->capture_default_str();
  std::vector<std::string> names;
  for (const auto& [name, unused] : scores()) names.push_back(name);
  command->add_option("--sort", options->sort, "by: " + joined(names, ", "))
      ->check(quiet(CLI::IsMember(names)))
      ->type_name("SCORE")
      ->capture_default_str();
  command->add_option("--top", options->top, "list so many heads; 0: all")->capture_default_str();
  command->footer(
      "Examples:\n"
      "  liuli heads smollm2                     (50 random tokens, twice: induction heads)\n"
      "  liuli heads smollm2 --raw --prompt 'The capital of France is' --sort first\n"
      "induction: mean attention to what followed the token's last earlier occurrence; prefix: … any earlier "
      "occurrence;\n"
      "duplicate: … to the occurrences themselves. first, previous, itself: mean attention to position 0, i "
      "− 1, i.\n"
      "entropy in nats, distance in positions.");
  command->callback([options, &program] {
    program.action = [options, &program] { return heads(*options, program.json); };
  });
}

}  // namespace liuli::cli
