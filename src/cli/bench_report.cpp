#include "cli/bench_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/text_table.h"

namespace liuli::cli {
namespace {

struct Cells {
  std::vector<TextTable::Column> columns;
  std::vector<std::vector<std::string>> rows;
};

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.0f} %", 100 * part / whole) : "";
}

double median_seconds(const BenchResult& result) { return spread_of(result.seconds).median; }
double median_rate(const BenchResult& result) { return spread_of(result.rates).median; }

Cells cells_of(const BenchReport& report) {
  const bool limits = report.limits.threads > 0, peer = !report.peer.path.empty();
  Cells cells;
  cells.columns = {{"test"},
                   {"tokens", Align::right},
                   {"depth", Align::right},
                   {"batch", Align::right},
                   {"tokens/s", Align::right},
                   {"min … max", Align::right},
                   {"time", Align::right}};
  if (limits)
    cells.columns.insert(cells.columns.end(), {{"of stream", Align::right}, {"of peak", Align::right}});
  if (peer) cells.columns.insert(cells.columns.end(), {{"peer", Align::right}, {"ratio", Align::right}});
  for (const BenchResult& result : report.results) {
    const BenchCase& c = result.bench_case;
    const Spread rate = spread_of(result.rates), other = spread_of(result.peer_rates);
    std::vector<std::string> row = {name_of(c.kind),
                                    fmt::format("{}", c.tokens),
                                    fmt::format("{}", c.depth),
                                    fmt::format("{}", c.batch),
                                    fmt::format("{:.1f}", rate.median),
                                    fmt::format("{:.1f} … {:.1f}", rate.min, rate.max),
                                    fmt::format("{:.3f} s", median_seconds(result))};
    if (limits) {
      row.push_back(percent(bytes_per_second(result), report.limits.read_bytes_per_second));
      row.push_back(percent(ops_per_second(result), arithmetic_limit(report, c)));
    }
    if (peer) {
      row.push_back(other.median > 0 ? fmt::format("{:.1f}", other.median) : "–");
      row.push_back(other.median > 0 ? fmt::format("{:.2f}", rate.median / other.median) : "–");
    }
    cells.rows.push_back(std::move(row));
  }
  return cells;
}

std::string markdown_table(const Cells& cells) {
  std::string out = "|", rule = "|";
  for (const auto& column : cells.columns) {
    out += fmt::format(" {} |", column.heading);
    rule += column.align == Align::right ? "---:|" : "---|";
  }
  out += "\n" + rule + "\n";
  for (const auto& row : cells.rows) {
    out += "|";
    for (const auto& cell : row) out += fmt::format(" {} |", cell);
    out += "\n";
  }
  return out;
}

std::string limits_line(const MachineLimits& limits) {
  std::string line = fmt::format("limits: read {:.1f} GB/s", limits.read_bytes_per_second / 1e9);
  for (const ArithmeticPeak& peak : limits.peaks)
    line += fmt::format(" · {} ({}) {:.2f} T/s", peak.name, peak.isa, peak.ops_per_second / 1e12);
  return line + "\n";
}

// Load and the first prompt: what a person waits for.
std::string first_token_line(const BenchReport& report) {
  const auto prompt =
      std::find_if(report.results.begin(), report.results.end(), [](const BenchResult& result) {
        return result.bench_case.kind == BenchKind::prompt && result.bench_case.depth == 0;
      });
  if (prompt == report.results.end()) return "";
  const double ours = report.load_seconds + median_seconds(*prompt);
  std::string line = fmt::format(" · load and a prompt of {} {:.3f} s", prompt->bench_case.tokens, ours);
  if (report.peer.first_token_seconds > 0)
    line += fmt::format(" (peer {:.3f} s)", report.peer.first_token_seconds);
  return line;
}

nlohmann::ordered_json to_json(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

nlohmann::ordered_json to_json(const BenchReport& report, const BenchResult& result) {
  const BenchCase& c = result.bench_case;
  nlohmann::ordered_json json = {{"test", name_of(c.kind)},
                                 {"tokens", c.tokens},
                                 {"depth", c.depth},
                                 {"batch", c.batch},
                                 {"tokens_per_second", to_json(spread_of(result.rates))},
                                 {"seconds", to_json(spread_of(result.seconds))},
                                 {"samples", result.rates},
                                 {"bytes_per_second", bytes_per_second(result)},
                                 {"ops_per_second", ops_per_second(result)},
                                 {"ops_per_byte", result.work.ops / result.work.bytes}};
  // The logits after the prompt are what the first new token is drawn from.
  if (c.kind == BenchKind::prompt) json["first_token_seconds"] = median_seconds(result);
  if (report.limits.threads > 0) {
    json["stream_fraction"] = bytes_per_second(result) / report.limits.read_bytes_per_second;
    json["peak_fraction"] = ops_per_second(result) / arithmetic_limit(report, c);
  }
  if (!result.peer_rates.empty()) {
    const Spread peer = spread_of(result.peer_rates);
    json["peer_tokens_per_second"] = to_json(peer);
    json["ratio"] = median_rate(result) / peer.median;
  }
  return json;
}

nlohmann::ordered_json to_json(const MachineLimits& limits) {
  auto peaks = nlohmann::ordered_json::array();
  for (const ArithmeticPeak& peak : limits.peaks)
    peaks.push_back({{"name", peak.name}, {"isa", peak.isa}, {"ops_per_second", peak.ops_per_second}});
  return {{"threads", limits.threads},
          {"read_bytes_per_second", limits.read_bytes_per_second},
          {"peaks", std::move(peaks)}};
}

}  // namespace

double arithmetic_limit(const BenchReport& report, const BenchCase& c) {
  const bool integer = c.kind == BenchKind::generation
                           ? report.product_class == "auto" || report.product_class == "decode"
                           : report.prompt_products == "int8";
  const double limit = report.limits.highest(integer);
  return limit > 0 ? limit : report.limits.highest(false);
}

double bytes_per_second(const BenchResult& result) { return result.work.bytes / median_seconds(result); }
double ops_per_second(const BenchResult& result) { return result.work.ops / median_seconds(result); }

std::string label_of(const BenchCase& c) {
  std::string label = fmt::format("{} {}", name_of(c.kind), c.tokens);
  if (c.depth > 0) label += fmt::format(", depth {}", c.depth);
  if (c.batch > 1) label += fmt::format(", batch {}", c.batch);
  return label;
}

std::string bench_table(const BenchReport& report, bool markdown) {
  const Cells cells = cells_of(report);
  const std::string products = report.prompt_products == "int8" ? ", int8 prompts" : "";
  std::string out = fmt::format("{}, {}, {} threads{}, {} cache, {} runs\n\n", report.name, report.isa,
                                report.threads, products, report.cache_type, report.repetitions);
  if (markdown) {
    out += markdown_table(cells);
  } else {
    TextTable table(cells.columns);
    for (const auto& row : cells.rows) table.add_row(row);
    out += table.render();
  }
  const char* mapped = report.panel_file.empty() ? "" : " (panels mapped)";
  out += fmt::format("\nload {:.3f} s{}{} · peak memory {}", report.load_seconds, mapped,
                     first_token_line(report), size_text(report.peak_memory));
  if (report.peer.peak_memory > 0) out += fmt::format(" (peer {})", size_text(report.peer.peak_memory));
  out += fmt::format(" · other processes {:.0f} % of the machine\n", 100 * report.other_load);
  if (report.limits.threads > 0) out += limits_line(report.limits);
  return out;
}

nlohmann::ordered_json bench_json(const BenchReport& report) {
  auto tests = nlohmann::ordered_json::array();
  for (const BenchResult& result : report.results) tests.push_back(to_json(report, result));
  nlohmann::ordered_json json = {{"model", report.model},
                                 {"name", report.name},
                                 {"isa", report.isa},
                                 {"threads", report.threads},
                                 {"class", report.product_class},
                                 {"prompt_products", report.prompt_products},
                                 {"cache_type", report.cache_type},
                                 {"repetitions", report.repetitions},
                                 {"load_seconds", report.load_seconds},
                                 {"panel_file", report.panel_file},
                                 {"peak_memory_bytes", report.peak_memory},
                                 {"other_load", report.other_load},
                                 {"tests", std::move(tests)}};
  if (report.limits.threads > 0) json["limits"] = to_json(report.limits);
  if (!report.peer.path.empty())
    json["peer"] = {{"path", report.peer.path},
                    {"peak_memory_bytes", report.peer.peak_memory},
                    {"load_and_first_token_seconds", report.peer.first_token_seconds}};
  return json;
}

}  // namespace liuli::cli
