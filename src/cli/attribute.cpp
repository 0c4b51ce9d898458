// liuli attribute, liuli ledger: what each part adds to a logit, and to the residual stream.
#include <algorithm>
#include <cmath>
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

constexpr const char* kFoldedLabel =
    "the final norm's sigma frozen, its weight folded into the direction (folded norm)";

// ---- attribute ----

struct AttributeOptions : GlassOptions {
  AttributionSettings settings;
  std::string token, against;
  int top = 20;
};

std::vector<AttributionTerm> largest(std::vector<AttributionTerm> terms, int top) {
  std::stable_sort(terms.begin(), terms.end(), [](const AttributionTerm& a, const AttributionTerm& b) {
    return std::fabs(a.value) > std::fabs(b.value);
  });
  if (top > 0 && terms.size() > static_cast<size_t>(top)) terms.resize(static_cast<size_t>(top));
  return terms;
}

// "logit( Paris) − logit( London)"
std::string quantity(const AttributionReport& report, const Engine& engine) {
  std::string text = fmt::format("logit({})", token_label(engine, report.token));
  if (report.against >= 0) text += fmt::format(" − logit({})", token_label(engine, report.against));
  return text;
}

std::string term_label(const AttributionTerm& term, const Engine& engine, const std::vector<int>& ids) {
  if (term.name.rfind("token ", 0) != 0) return term.name;
  return "attention to " + position_label(engine, ids, term.index);
}

void print_for_people(const AttributionReport& report, const Engine& engine, const std::vector<int>& ids,
                      int top) {
  const auto shown = largest(report.terms, top);
  double sum = 0;
  TextTable table({{"term"}, {"adds", Align::right}, {"share", Align::right}});
  for (const AttributionTerm& term : shown) {
    table.add_row({term_label(term, engine, ids), fmt::format("{:+.4f}", term.value),
                   fmt::format("{:.1f} %", 100 * term.value / report.sum)});
    sum += term.value;
  }
  if (shown.size() < report.terms.size())
    table.add_row({fmt::format("{} further terms", report.terms.size() - shown.size()),
                   fmt::format("{:+.4f}", report.sum - sum),
                   fmt::format("{:.1f} %", 100 * (1 - sum / report.sum))});
  table.add_row({"sum", fmt::format("{:+.4f}", report.sum), ""});
  fmt::print("{} behind position {}; {}: {:.6g}\n{}", quantity(report, engine),
             position_label(engine, ids, report.position), kFoldedLabel, report.sigma, table.render());
  fmt::print("From the last stream in double: {:+.4f}; the run itself ({} class{}): {:+.4f}\n", report.logit,
             report.product_class, report.soft_cap > 0 ? fmt::format(", soft cap {}", report.soft_cap) : "",
             report.run_logit);
}

nlohmann::ordered_json to_json(const AttributionReport& report, const Engine& engine, int top) {
  nlohmann::ordered_json json = {
      {"token", report.token},       {"token_text", engine.token_text(report.token)},
      {"position", report.position}, {"norm", kFoldedLabel},
      {"sigma", report.sigma},       {"sum", report.sum},
      {"logit", report.logit},       {"run_logit", report.run_logit},
      {"soft_cap", report.soft_cap}, {"class", report.product_class}};
  if (report.against >= 0)
    json["against"] = report.against, json["against_text"] = engine.token_text(report.against);
  json["n_terms"] = report.terms.size();
  auto& terms = json["terms"] = nlohmann::ordered_json::array();
  for (const AttributionTerm& term : largest(report.terms, top)) {
    nlohmann::ordered_json entry = {{"name", term.name}, {"value", term.value}};
    if (term.layer >= 0) entry["layer"] = term.layer;
    if (term.index >= 0) entry["index"] = term.index;
    terms.push_back(std::move(entry));
  }
  return json;
}

int attribute(AttributeOptions& options, bool json) {
  const InterruptGuard guard;
  Engine engine = load_engine(options.model);
  const std::vector<int> ids = read_tokens(options.tokens, engine);
  options.settings.token = one_token(engine, options.token);
  if (!options.against.empty()) options.settings.against = one_token(engine, options.against);
  const AttributionReport report = attribute_logit(engine, ids, options.settings);
  if (json)
    fmt::print("{}\n", json_text(to_json(report, engine, options.top)));
  else
    print_for_people(report, engine, ids, options.top);
  return 0;
}

// ---- ledger ----

struct LedgerOptions : GlassOptions {
  LedgerSettings settings;
  int position = -1;
  int top = 12;
};

void print_massive(const LedgerReport& report, const Engine& engine, const std::vector<int>& ids, int top) {
  if (report.massive.empty()) {
    fmt::print("No massive activations.\n");
    return;
  }
  TextTable table({{"position"},
                   {"coordinate", Align::right},
                   {"value", Align::right},
                   {"median |x|", Align::right},
                   {"ratio", Align::right},
                   {"after blocks"},
                   {"peak", Align::right},
                   {"written by"},
                   {""}});
  for (size_t i = 0; i < std::min(report.massive.size(), static_cast<size_t>(top)); i++) {
    const MassiveActivation& m = report.massive[i];
    table.add_row({position_label(engine, ids, m.position), std::to_string(m.coordinate),
                   fmt::format("{:.1f}", m.value), fmt::format("{:.3f}", m.median),
                   fmt::format("{:.0f}", m.ratio), fmt::format("{} … {}", m.first_layer, m.last_layer),
                   std::to_string(m.peak_layer), m.written_by,
                   m.meets_published_bound ? "> 100 and > 1,000 × median" : ""});
  }
  fmt::print("Massive activations ({}):\n{}", report.massive.size(), table.render());
}

size_t shown_position(const LedgerReport& report, int position) {
  const int n = static_cast<int>(report.positions.size());
  const int at =
      position < 0 ? n - 1
                   : static_cast<int>(std::find(report.positions.begin(), report.positions.end(), position) -
                                      report.positions.begin());
  if (at >= n)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("position {} is not among those of the ledger", position));
  return static_cast<size_t>(at);
}

void print_ledger(const LedgerReport& report, const Engine& engine, const std::vector<int>& ids,
                  const LedgerOptions& options) {
  const size_t i = shown_position(report, options.position), n_coordinates = report.coordinates.size();
  std::vector<TextTable::Column> columns = {
      {"term"}, {"norm", Align::right}, {"cosine", Align::right}, {"share", Align::right}};
  for (const int j : report.coordinates) columns.push_back({fmt::format("x[{}]", j), Align::right});
  TextTable table(std::move(columns));
  auto with_coordinates = [&](std::vector<std::string> cells, const std::vector<double>& values) {
    for (size_t j = 0; j < n_coordinates; j++)
      cells.push_back(fmt::format("{:+.4f}", values[i * n_coordinates + j]));
    table.add_row(std::move(cells));
  };
  for (const LedgerTerm& term : report.terms)
    with_coordinates({term.name, fmt::format("{:.3f}", term.norm[i]), fmt::format("{:+.3f}", term.cosine[i]),
                      fmt::format("{:+.1f} %", 100 * term.share[i])},
                     term.coordinates);
  with_coordinates({"= final", fmt::format("{:.3f}", report.final_norm[i]), "", "100 %"},
                   report.final_coordinates);
  fmt::print("Residual ledger of {} ({} class); raw values, no norm applied\n{}",
             position_label(engine, ids, report.positions[i]), report.product_class, table.render());
  fmt::print("Largest |sum of terms − final| over {} positions: {:.3g} (largest |final| {:.1f})\n",
             report.positions.size(), report.largest_difference, report.largest_value);
  print_massive(report, engine, ids, options.top);
}

nlohmann::ordered_json to_json(const LedgerReport& report) {
  nlohmann::ordered_json json = {{"class", report.product_class},
                                 {"positions", report.positions},
                                 {"coordinates", report.coordinates},
                                 {"final_norm", report.final_norm},
                                 {"final_coordinates", report.final_coordinates},
                                 {"largest_difference", report.largest_difference},
                                 {"largest_value", report.largest_value}};
  auto& terms = json["terms"] = nlohmann::ordered_json::array();
  for (const LedgerTerm& t : report.terms)
    terms.push_back({{"name", t.name},
                     {"layer", t.layer},
                     {"norm", t.norm},
                     {"cosine", t.cosine},
                     {"share", t.share},
                     {"coordinates", t.coordinates}});
  auto& massive = json["massive"] = nlohmann::ordered_json::array();
  for (const MassiveActivation& m : report.massive)
    massive.push_back({{"position", m.position},
                       {"coordinate", m.coordinate},
                       {"value", m.value},
                       {"median", m.median},
                       {"ratio", m.ratio},
                       {"first_layer", m.first_layer},
                       {"last_layer", m.last_layer},
                       {"peak_layer", m.peak_layer},
                       {"written_by", m.written_by},
                       {"meets_published_bound", m.meets_published_bound}});
  return json;
}

int ledger(const LedgerOptions& options, bool json) {
  const InterruptGuard guard;
  Engine engine = load_engine(options.model);
  const std::vector<int> ids = read_tokens(options.tokens, engine);
  const LedgerReport report = residual_ledger(engine, ids, options.settings);
  if (json)
    fmt::print("{}\n", json_text(to_json(report)));
  else
    print_ledger(report, engine, ids, options);
  return 0;
}

}  // namespace

void add_attribute_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<AttributeOptions>();
  auto* command = app.add_subcommand("attribute", "what each layer, head, neuron or token adds to a logit");
  add_glass_options(*command, *options, program);
  command->add_option("--token", options->token, "the token whose logit it is (or id:1234)")
      ->type_name("TEXT")
      ->required();
  command->add_option("--against", options->against, "attribute the difference to this token's logit instead")
      ->type_name("TEXT");
  const std::map<std::string, AttributeBy> kinds = {{"layer", AttributeBy::layer},
                                                    {"head", AttributeBy::head},
                                                    {"neuron", AttributeBy::neuron},
                                                    {"token", AttributeBy::token}};
  command->add_option("--by", options->settings.by, "layer, head, neuron or token (default: layer)")
      ->transform(CLI::CheckedTransformer(kinds).description(""))
      ->type_name("WHAT");
  command->add_option("--position", options->settings.position, "whose next token; negative: from the end")
      ->capture_default_str();
  command->add_option("--top", options->top, "list so many of the largest terms; 0: all")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  liuli attribute smollm2 --raw --prompt 'The capital of France is' --token ' Paris' --by head\n"
      "  liuli attribute smollm2 --raw --prompt 'The capital of France is' --token ' Paris' --against ' "
      "Rome'\n"
      "Every term of the residual stream is multiplied with the direction that makes this logit: the terms "
      "add up to it.");
  command->callback([options, &program] {
    program.action = [options, &program] { return attribute(*options, program.json); };
  });
}

void add_ledger_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<LedgerOptions>();
  auto* command = app.add_subcommand(
      "ledger", "the residual stream as the sum of what was added, and what stands out in it");
  add_glass_options(*command, *options, program);
  command->add_option("--position", options->position, "print this position's ledger (default: the last)");
  command
      ->add_option("--coordinate", options->settings.coordinates, "also list these coordinates term by term")
      ->delimiter(',')
      ->type_name("J");
  command
      ->add_option("--tokens", options->settings.tokens, "positions to look at: 3:7, -1, 0,2 (default: all)")
      ->type_name("SLICE");
  command
      ->add_option("--ratio", options->settings.massive_ratio,
                   "massive: |value| at least so many times the row's median |value|")
      ->check(quiet(CLI::PositiveNumber))
      ->capture_default_str();
  command->add_option("--top", options->top, "list so many massive activations")->capture_default_str();
  command->footer(
      "Examples:\n"
      "  liuli ledger smollm2 --raw --prompt 'The capital of France is'\n"
      "  liuli ledger smollm2 --raw --prompt 'The capital of France is' --position 0 --coordinate 10,20");
  command->callback([options, &program] {
    program.action = [options, &program] { return ledger(*options, program.json); };
  });
}

}  // namespace liuli::cli
