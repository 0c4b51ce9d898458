// The report for a terminal, and as JSON.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <utf8proc.h>
#include <nlohmann/json.hpp>

#include "train/lab/experiments.h"
#include "train/lab/plot.h"

namespace liuli {
namespace {

using lab::number;

int columns_of(const std::string& text) {
  int width = 0;
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  auto left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t n = utf8proc_iterate(at, left, &code);
    width += n > 0 ? utf8proc_charwidth(code) : 1;
    at += std::max<utf8proc_ssize_t>(n, 1);
    left -= std::max<utf8proc_ssize_t>(n, 1);
  }
  return width;
}

std::string padded(const std::string& text, int width) {
  return text + std::string(static_cast<size_t>(std::max(0, width - columns_of(text))), ' ');
}

std::string text_table(const LabTable& table, Language language) {
  std::vector<std::vector<std::string>> lines(1);
  for (const BilingualText& c : table.columns) lines[0].push_back(c.in(language));
  for (const auto& row : table.rows) {
    auto& line = lines.emplace_back();
    for (const BilingualText& cell : row) line.push_back(cell.in(language));
  }
  std::vector<int> widths(table.columns.size());
  for (const auto& line : lines)
    for (size_t i = 0; i < line.size(); i++) widths[i] = std::max(widths[i], columns_of(line[i]));
  std::string out = table.title.in(language) + "\n";
  for (const auto& line : lines) {
    out += " ";
    for (size_t i = 0; i < line.size(); i++)
      out.append(" ").append(padded(line[i], i + 1 < line.size() ? widths[i] + 1 : 0));
    out += "\n";
  }
  return out;
}

std::string check_line(const LabCheck& c, Language language) {
  return fmt::format("  {} {}: {} ({} {})\n", c.holds() ? "✓" : "✗", c.what.in(language), number(c.measured),
                     c.at_least ? "≥" : "≤", number(c.threshold));
}

std::string coloured(const std::string& text, Verdict verdict, bool colour) {
  if (!colour) return text;
  constexpr const char* kCodes[] = {"32", "33", "31", "2"};
  return fmt::format("\x1b[1;{}m{}\x1b[0m", kCodes[static_cast<size_t>(verdict)], text);
}

nlohmann::ordered_json json_number(double x) {
  if (std::isnan(x)) return nullptr;
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  return x;
}

nlohmann::ordered_json json_text(const BilingualText& text) {
  if (text.zh == text.en) return text.en;
  return {{"zh", text.zh}, {"en", text.en}};
}

nlohmann::ordered_json json_numbers(const std::vector<double>& values) {
  auto list = nlohmann::ordered_json::array();
  for (const double v : values) list.push_back(json_number(v));
  return list;
}

nlohmann::ordered_json json_table(const LabTable& table) {
  auto columns = nlohmann::ordered_json::array(), rows = nlohmann::ordered_json::array();
  for (const BilingualText& c : table.columns) columns.push_back(json_text(c));
  for (const auto& row : table.rows) {
    auto cells = nlohmann::ordered_json::array();
    for (const BilingualText& cell : row) cells.push_back(json_text(cell));
    rows.push_back(std::move(cells));
  }
  return {{"title", json_text(table.title)}, {"columns", std::move(columns)}, {"rows", std::move(rows)}};
}

nlohmann::ordered_json json_plot(const LabPlot& plot) {
  auto series = nlohmann::ordered_json::array();
  for (const LabSeries& s : plot.series)
    series.push_back({{"label", json_text(s.label)}, {"x", json_numbers(s.x)}, {"y", json_numbers(s.y)}});
  return {{"title", json_text(plot.title)},
          {"x_label", json_text(plot.x_label)},
          {"y_label", json_text(plot.y_label)},
          {"log_x", plot.log_x},
          {"log_y", plot.log_y},
          {"series", std::move(series)}};
}

}  // namespace

std::string render_lab_text(const LabReport& r, Language language, const TextStyle& style) {
  const bool zh = language == Language::zh;
  std::string out = fmt::format(
      "== {}  {} ==\n{}\n\n{}{}\n{}{}\n{}\n", r.name, r.title.in(language), r.question.in(language),
      zh ? "说法:" : "Claim: ", r.claim.in(language),
      zh ? "结论:" : "Verdict: ", coloured(verdict_text(r.verdict).in(language), r.verdict, style.colour),
      r.because.in(language));
  for (const LabCheck& c : r.checks) out += check_line(c, language);
  for (const LabTable& t : r.tables) out.append("\n").append(text_table(t, language));
  for (const LabPlot& p : r.plots) out.append("\n").append(lab::text_plot(p, language, style.width));
  if (!r.notes.empty()) out += "\n";
  for (const BilingualText& note : r.notes) out.append("· ").append(note.in(language)).append("\n");
  return out + fmt::format("({:.1f} s)\n", r.seconds);
}

void to_json(nlohmann::ordered_json& json, const LabReport& r) {
  auto checks = nlohmann::ordered_json::array(), tables = nlohmann::ordered_json::array(),
       plots = nlohmann::ordered_json::array(), notes = nlohmann::ordered_json::array();
  for (const LabCheck& c : r.checks)
    checks.push_back({{"what", json_text(c.what)},
                      {"measured", json_number(c.measured)},
                      {"relation", c.at_least ? ">=" : "<="},
                      {"threshold", json_number(c.threshold)},
                      {"essential", c.essential},
                      {"holds", c.holds()}});
  for (const LabTable& t : r.tables) tables.push_back(json_table(t));
  for (const LabPlot& p : r.plots) plots.push_back(json_plot(p));
  for (const BilingualText& n : r.notes) notes.push_back(json_text(n));
  json = {{"name", r.name},
          {"title", json_text(r.title)},
          {"question", json_text(r.question)},
          {"claim", json_text(r.claim)},
          {"verdict", to_string(r.verdict)},
          {"because", json_text(r.because)},
          {"checks", std::move(checks)},
          {"tables", std::move(tables)},
          {"plots", std::move(plots)},
          {"notes", std::move(notes)},
          {"seconds", r.seconds},
          {"settings", {{"seed", r.seed}, {"quick", r.quick}, {"threads", r.threads}, {"model", r.model}}}};
}

}  // namespace liuli
