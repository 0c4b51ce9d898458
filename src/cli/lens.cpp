// liuli lens: what every storey would say if the model stopped there.
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

constexpr const char* kNormLabel =
    "through ln_final (raw norm: sigma taken anew at every place, its weight as stored)";

struct LensOptions : GlassOptions {
  LensSettings settings;
  std::string token;
};

nlohmann::ordered_json to_json(const LensReport& report, const Engine& engine, const std::vector<int>& ids) {
  nlohmann::ordered_json json = {
      {"norm", kNormLabel}, {"class", report.product_class}, {"isa", active_isa()}};
  auto& positions = json["positions"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < report.positions.size(); i++)
    positions.push_back({{"position", report.positions[i]},
                         {"id", ids[static_cast<size_t>(report.positions[i])]},
                         {"text", engine.token_text(ids[static_cast<size_t>(report.positions[i])])},
                         {"followed", report.followed[i]},
                         {"followed_text", engine.token_text(report.followed[i])},
                         {"final", report.final_token[i]},
                         {"final_text", engine.token_text(report.final_token[i])}});
  auto& rows = json["points"] = nlohmann::ordered_json::array();
  for (const LensRow& row : report.rows) {
    auto cells = nlohmann::ordered_json::array();
    for (const LensCell& cell : row.cells)
      cells.push_back({{"top", cell.top_token},
                       {"top_text", engine.token_text(cell.top_token)},
                       {"top_probability", cell.top_probability},
                       {"followed_probability", cell.followed_probability},
                       {"followed_rank", cell.followed_rank},
                       {"final_rank", cell.final_rank}});
    rows.push_back({{"point", row.point}, {"cells", std::move(cells)}});
  }
  return json;
}

std::vector<NamedArray> arrays(const LensReport& report) {
  const std::vector<int64_t> shape = {static_cast<int64_t>(report.rows.size()),
                                      static_cast<int64_t>(report.positions.size())};
  std::vector<NamedArray> list;
  auto add = [&](const char* name, auto value) {
    NamedArray array{name, shape, {}};
    for (const LensRow& row : report.rows)
      for (const LensCell& cell : row.cells) array.values.push_back(static_cast<float>(value(cell)));
    list.push_back(std::move(array));
  };
  add("followed_probability", [](const LensCell& c) { return c.followed_probability; });
  add("followed_rank", [](const LensCell& c) { return c.followed_rank; });
  add("final_rank", [](const LensCell& c) { return c.final_rank; });
  add("top_token", [](const LensCell& c) { return c.top_token; });
  add("top_probability", [](const LensCell& c) { return c.top_probability; });
  return list;
}

// The last positions, as many as the terminal has room for.
void print_table(const LensReport& report, const Engine& engine, const std::vector<int>& ids, bool follows) {
  constexpr int kFirstColumn = 24, kColumn = 20;
  const size_t n = report.positions.size(),
               shown =
                   std::clamp<size_t>(static_cast<size_t>(terminal_width() - kFirstColumn) / kColumn, 1, n);
  std::vector<TextTable::Column> columns = {{"point"}};
  for (size_t i = n - shown; i < n; i++)
    columns.push_back({position_label(engine, ids, report.positions[i])});
  TextTable table(std::move(columns));
  for (const LensRow& row : report.rows) {
    std::vector<std::string> cells = {row.point};
    for (size_t i = n - shown; i < n; i++) {
      const LensCell& cell = row.cells[i];
      cells.push_back(
          follows ? fmt::format("{:6.2f} %  rank {}", 100 * cell.followed_probability, cell.followed_rank)
                  : fmt::format("{} {:.0f} %", token_label(engine, cell.top_token, 12),
                                100 * cell.top_probability));
    }
    table.add_row(std::move(cells));
  }
  std::vector<std::string> next = {follows ? "followed" : "next token"};
  for (size_t i = n - shown; i < n; i++) next.push_back(token_label(engine, report.followed[i]));
  table.add_row(std::move(next));
  fmt::print("Likeliest next token {}; {} class\n{}", kNormLabel, report.product_class, table.render());
  if (shown < n)
    fmt::print("The last {} of {} positions; --tokens chooses others, --json and -o give all.\n", shown, n);
}

int lens(LensOptions& options, bool json) {
  const InterruptGuard guard;
  Engine engine = load_engine(options.model);
  const std::vector<int> ids = read_tokens(options.tokens, engine);
  if (!options.token.empty()) options.settings.followed = one_token(engine, options.token);
  const LensReport report = logit_lens(engine, ids, options.settings);
  if (!options.output.empty())
    write_arrays(options.output, arrays(report),
                 {{"format", "liuli"},
                  {"schema", "1"},
                  {"model", options.model.model},
                  {"class", report.product_class},
                  {"norm", kNormLabel},
                  {"ids", fmt::format("[{}]", joined(ids, ", "))}});
  if (json)
    fmt::print("{}\n", json_text(to_json(report, engine, ids)));
  else
    print_table(report, engine, ids, !options.token.empty());
  return 0;
}

}  // namespace

void add_lens_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<LensOptions>();
  auto* command = app.add_subcommand("lens", "what every storey would say: the logit lens");
  add_glass_options(*command, *options, program);
  command
      ->add_option("--points", options->settings.points,
                   "values of the stream, with *; default: before the first block, after every attention and "
                   "feed-forward")
      ->delimiter(',')
      ->type_name("POINTS");
  command->add_option("--tokens", options->settings.tokens, "positions: 3:7, -1, 0,2 (default: all)")
      ->type_name("SLICE");
  command->add_option("--token", options->token, "follow this token's probability and rank (or id:1234)")
      ->type_name("TEXT");
  add_array_output(*command, options->output,
                   "also write arrays [points, positions]: .safetensors, .npz, .npy");
  command->footer(
      "Examples:\n"
      "  liuli lens smollm2 --raw --prompt 'The capital of France is'\n"
      "  liuli lens smollm2 --raw --prompt 'The capital of France is' --token ' Paris' --tokens -1");
  command->callback(
      [options, &program] { program.action = [options, &program] { return lens(*options, program.json); }; });
}

}  // namespace liuli::cli
