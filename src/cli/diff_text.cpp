#include "cli/diff_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/text_table.h"

namespace liuli::cli {
namespace {

constexpr int64_t kContextTokens = 8;  // shown before a bad position

std::string top_text(const std::vector<TokenProbability>& top, const Engine& engine) {
  std::string out;
  for (const TokenProbability& t : top)
    out += fmt::format("{}{} {:.1f} %", out.empty() ? "" : "   ", visible(engine.token_text(t.token), 16),
                       100 * t.probability);
  return out;
}

// The last tokens up to and including a position, within its window.
std::string context_before(const DiffReport& report, const DiffSides& sides, int64_t position) {
  const int64_t window = position / report.context * report.context;
  const int64_t first = std::max(window, position + 1 - kContextTokens);
  const std::vector<int> ids(sides.ids.begin() + first, sides.ids.begin() + position + 1);
  return (first > window ? "…" : "") + visible(sides.engine.detokenize(ids), 70);
}

std::string summary_text(const DiffReport& r, const DiffSides& sides) {
  std::string out = fmt::format("A          {}  (class {})\nreference  {}  (class {})\n", sides.name,
                                sides.product_class, sides.reference_name, sides.reference_class);
  out += r.windows == 1 ? fmt::format("text       {} tokens\n\n", r.positions)
                        : fmt::format("text       {} tokens in {} windows of {}, each run from nothing\n\n",
                                      r.positions, r.windows, r.context);
  out += fmt::format("KL(reference ‖ A), nats  mean {:.4g}  median {:.4g}  p99 {:.4g}  max {:.4g}\n",
                     r.mean_kl, r.median_kl, r.p99_kl, r.max_kl);
  out += fmt::format(
      "likeliest token          the same at {:.2f} % of positions; of the top 5, {:.1f} % in common\n",
      100 * r.top1_agreement, 100 * r.top5_overlap);
  if (r.predicted_tokens == 0) return out;
  return out + fmt::format(
                   "perplexity               A {:.4f}  reference {:.4f}  Δ {:+.4f}  (mean −ln p {:+.5f} ± "
                   "{:.5f} over {} tokens)\n",
                   r.perplexity, r.reference_perplexity, r.perplexity - r.reference_perplexity,
                   r.nll_difference, r.nll_difference_error, r.predicted_tokens);
}

std::string worst_text(const DiffReport& report, const DiffSides& sides) {
  if (report.worst.empty()) return "";
  std::string out = "\npositions that differ most\n";
  for (const PositionDiff& w : report.worst) {
    out += fmt::format("  {}  KL {:.4g}  after \"{}\"", w.position, w.kl,
                       context_before(report, sides, w.position));
    if (w.next >= 0) out += fmt::format(", followed by {}", visible(sides.engine.token_text(w.next)));
    out += fmt::format("\n      A          {}\n      reference  {}\n", top_text(w.top, sides.engine),
                       top_text(w.reference_top, sides.engine));
  }
  return out;
}

std::string in_block_name(const PointDiff& point) {
  const size_t prefix = point.name.find("blocks.");
  return point.name.substr(point.name.find('.', prefix + 7) + 1);
}

// "blocks.3", also of a name like "decoder.blocks.3.attn.q".
std::string block_name(const PointDiff& point) {
  return point.name.substr(0, point.name.size() - in_block_name(point).size() - 1);
}

std::string layer_table(const DiffReport& report, const std::vector<std::string>& names) {
  std::vector<TextTable::Column> columns = {{"block"}};
  for (const std::string& name : names) {
    columns.push_back({name, Align::right});
    columns.push_back({"one position", Align::right});
    columns.push_back({"at", Align::right});
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> rows;
  for (const PointDiff& point : report.points) {
    if (point.layer < 0) continue;
    const auto column = std::find(names.begin(), names.end(), in_block_name(point));
    if (column == names.end()) continue;
    if (rows.empty() || rows.back().first != block_name(point)) {
      rows.emplace_back(block_name(point), std::vector<std::string>(columns.size()));
      rows.back().second[0] = block_name(point);
    }
    const auto at = static_cast<size_t>(column - names.begin()) * 3 + 1;
    std::vector<std::string>& cells = rows.back().second;
    cells[at] = fmt::format("{:.2e}", point.error);
    cells[at + 1] = fmt::format("{:.2e}", point.position_error);
    cells[at + 2] = point.position_error > 0 ? fmt::format("{}", point.worst_position) : "";
  }
  TextTable table(columns);
  for (auto& [block, cells] : rows) table.add_row(std::move(cells));
  return table.render();
}

std::string divergence_text(const DiffReport& report) {
  if (!report.first_divergence) {
    return fmt::format("\nno point differs by more than {:.3g} (threshold)\n", report.threshold);
  }
  const size_t index = *report.first_divergence;
  const PointDiff& point = report.points[index];
  std::string out = fmt::format(
      "\nfirst point that differs by more than {:.3g} (threshold)\n"
      "  {}  {:.3g}   = {}\n"
      "  largest difference at {}: A {:.6g}, reference {:.6g}\n",
      report.threshold, point.name, point.error, point.formula, shape_text(point.coordinate), point.value,
      point.reference);
  if (index > 0)
    out += fmt::format("  the point before it, {}: {:.3g}\n", report.points[index - 1].name,
                       report.points[index - 1].error);
  return out;
}

std::string points_text(const DiffReport& report, const std::vector<std::string>& columns) {
  if (!report.not_traced.empty())
    return fmt::format("\ninner values are not compared: {}\n", report.not_traced);
  const bool all = report.traced_positions == report.positions;
  const std::string which = all ? fmt::format("all {} positions", report.positions)
                                : fmt::format("the first {} of {} positions; --trace-positions takes more",
                                              report.traced_positions, report.positions);
  return fmt::format("\nrelative error ‖a − b‖ / ‖b‖ of inner values ({})\n", which) +
         layer_table(report, columns) + divergence_text(report);
}

nlohmann::ordered_json top_json(const std::vector<TokenProbability>& top, const Engine& engine) {
  auto array = nlohmann::ordered_json::array();
  for (const TokenProbability& t : top)
    array.push_back(
        {{"token", t.token}, {"text", engine.token_text(t.token)}, {"probability", t.probability}});
  return array;
}

nlohmann::ordered_json worst_json(const DiffReport& report, const DiffSides& sides) {
  auto array = nlohmann::ordered_json::array();
  for (const PositionDiff& w : report.worst) {
    nlohmann::ordered_json entry = {{"position", w.position},
                                    {"kl", w.kl},
                                    {"token", w.token},
                                    {"text", sides.engine.token_text(w.token)},
                                    {"context", context_before(report, sides, w.position)},
                                    {"next", nullptr},
                                    {"top", top_json(w.top, sides.engine)},
                                    {"reference_top", top_json(w.reference_top, sides.engine)}};
    if (w.next >= 0) entry["next"] = w.next;
    array.push_back(std::move(entry));
  }
  return array;
}

nlohmann::ordered_json point_json(const PointDiff& point) {
  return {{"name", point.name},
          {"error", point.error},
          {"position_error", point.position_error},
          {"worst_position", point.worst_position},
          {"coordinate", point.coordinate},
          {"value", point.value},
          {"reference", point.reference}};
}

}  // namespace

std::string diff_text(const DiffReport& report, const DiffSides& sides,
                      const std::vector<std::string>& columns) {
  return summary_text(report, sides) + worst_text(report, sides) + points_text(report, columns);
}

nlohmann::ordered_json diff_json(const DiffReport& r, const DiffSides& sides) {
  nlohmann::ordered_json json = {
      {"a", {{"model", sides.name}, {"class", sides.product_class}}},
      {"reference", {{"model", sides.reference_name}, {"class", sides.reference_class}}},
      {"positions", r.positions},
      {"windows", r.windows},
      {"context", r.context},
      {"kl", {{"mean", r.mean_kl}, {"median", r.median_kl}, {"p99", r.p99_kl}, {"max", r.max_kl}}},
      {"top1_agreement", r.top1_agreement},
      {"top5_overlap", r.top5_overlap},
      {"predicted_tokens", r.predicted_tokens},
      {"perplexity", nullptr},
      {"reference_perplexity", nullptr},
      {"nll_difference", r.nll_difference},
      {"nll_difference_standard_error", r.nll_difference_error},
      {"worst", worst_json(r, sides)},
      {"traced_positions", r.traced_positions},
      {"not_traced", nullptr},
      {"threshold", r.threshold},
      {"first_divergence", nullptr},
      {"points", nlohmann::ordered_json::array()}};
  if (r.predicted_tokens > 0) {
    json["perplexity"] = r.perplexity;
    json["reference_perplexity"] = r.reference_perplexity;
  }
  if (!r.not_traced.empty()) json["not_traced"] = r.not_traced;
  if (r.first_divergence) json["first_divergence"] = point_json(r.points[*r.first_divergence]);
  for (const PointDiff& point : r.points) json["points"].push_back(point_json(point));
  return json;
}

}  // namespace liuli::cli
