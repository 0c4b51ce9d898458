#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "trace/explain_writer.h"

namespace liuli {

const WorkedStep* Explanation::step(std::string_view step_id) const {
  const auto found =
      std::find_if(steps.begin(), steps.end(), [&](const WorkedStep& s) { return s.id == step_id; });
  return found == steps.end() ? nullptr : &*found;
}

const WorkedTable* Explanation::table(std::string_view table_id) const {
  const auto found =
      std::find_if(tables.begin(), tables.end(), [&](const WorkedTable& t) { return t.id == table_id; });
  return found == tables.end() ? nullptr : &*found;
}

namespace {

constexpr int kMinWidth = 40;
constexpr const char* kBold = "\033[1m";
constexpr const char* kFormula = "\033[36m";
constexpr const char* kDim = "\033[2m";
constexpr const char* kReset = "\033[0m";

// A character with the combining marks that follow it (x̂ is x and U+0302), and the columns it takes.
struct Glyph {
  std::string_view bytes;
  int width = 0;
};

std::vector<Glyph> glyphs_of(std::string_view text) {
  std::vector<Glyph> glyphs;
  while (!text.empty()) {
    utf8proc_int32_t code = 0;
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    const utf8proc_ssize_t read = utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size()), &code);
    const size_t length =
        read > 0 ? static_cast<size_t>(read) : 1;  // a byte that is no UTF-8 takes one column
    const int width = read > 0 ? utf8proc_charwidth(code) : 1;
    if (width == 0 && !glyphs.empty()) {
      glyphs.back().bytes = {glyphs.back().bytes.data(), glyphs.back().bytes.size() + length};
    } else {
      glyphs.push_back({text.substr(0, length), width});
    }
    text.remove_prefix(length);
  }
  return glyphs;
}

int width_of(std::string_view text) {
  int width = 0;
  for (const Glyph& glyph : glyphs_of(text)) width += glyph.width;
  return width;
}

std::string spaces(int n) { return std::string(static_cast<size_t>(std::max(n, 0)), ' '); }

// Marks that must not begin a Chinese line.
bool closes(std::string_view bytes) {
  static constexpr std::string_view kClosing[] = {"，", "。", "；", "：", "、", "）", "”"};
  return std::find(std::begin(kClosing), std::end(kClosing), bytes) != std::end(kClosing);
}

// Splits one line at spaces, and between CJK characters, so that no part is wider than `width` if that is
// possible.
std::vector<std::string> wrap(std::string_view line, int width) {
  std::vector<std::string> lines = {""};
  int used = 0, word_width = 0;
  std::string word;
  const auto flush = [&] {
    if (used > 0 && used + word_width > width) {
      lines.back().erase(lines.back().find_last_not_of(' ') + 1);
      lines.emplace_back();
      used = 0;
      if (word == " ") word.clear(), word_width = 0;
    }
    lines.back() += word;
    used += word_width;
    word.clear();
    word_width = 0;
  };
  for (const Glyph& glyph : glyphs_of(line)) {
    const bool breakable = glyph.bytes == " " || (glyph.width == 2 && !closes(glyph.bytes));
    if (breakable) flush();
    word += glyph.bytes;
    word_width += glyph.width;
    if (glyph.bytes == " ") flush();
  }
  flush();
  return lines;
}

class TextRenderer {
 public:
  explicit TextRenderer(const TextStyle& style) : style_(style), width_(std::max(style.width, kMinWidth)) {}

  std::string render(const Explanation& e) {
    explanation(e);
    return std::move(out_);
  }

 private:
  void explanation(const Explanation& e) {
    paragraph(e.title, "", "", kBold);
    for (size_t i = 0; i < e.steps.size(); ++i) step(e.steps[i], i + 1);
    for (const WorkedTable& t : e.tables) table(t);
    if (!e.plot.empty()) out_ += "\n" + e.plot;
    if (!e.notes.empty()) out_ += "\n";
    for (const std::string& note : e.notes) paragraph(note, "· ", "  ", kDim);
    for (const Explanation& part : e.parts) {
      out_ += "\n";
      explanation(part);
    }
  }

  void step(const WorkedStep& s, size_t number) {
    out_ += "\n";
    paragraph(s.name, std::to_string(number) + ". ", "   ", kBold);
    paragraph(s.formula, "   ", "     ", kFormula);
    paragraph(s.numbers, "   ", "     ", "");
  }

  // Every line of the text, the first part of each after `first`, the wrapped rest after `rest`.
  void paragraph(std::string_view text, const std::string& first, const std::string& rest,
                 const char* colour) {
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      bool is_first = true;
      for (const std::string& line : wrap(text.substr(0, end), width_ - width_of(rest))) {
        out_ += (is_first ? first : rest) + painted(line, colour) + "\n";
        is_first = false;
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  std::string painted(const std::string& text, const char* colour) const {
    return style_.colour && *colour != '\0' ? colour + text + kReset : text;
  }

  static std::string padded(const std::string& cell, int width, bool right) {
    const std::string gap = spaces(width - width_of(cell));
    return right ? gap + cell : cell + gap;
  }

  // One column: its heading (≈ if a number below is rounded) and a cell per row.
  static std::vector<std::string> number_cells(const WorkedTable& t, size_t c) {
    std::vector<double> values;
    for (const WorkedTable::Row& row : t.rows)
      values.push_back(c < row.values.size() ? row.values[c] : std::nan(""));
    worked::ColumnText column = worked::column(values, t.digits);
    for (size_t r = 0; r < t.rows.size(); ++r) {
      if (t.rows[r].values.empty()) column.cells[r] = "…";
    }
    column.cells.insert(column.cells.begin(), (column.rounded ? "≈ " : "") + t.columns[c]);
    return column.cells;
  }

  void table(const WorkedTable& t) {
    out_ += "\n";
    paragraph(t.title, "", "  ", kBold);
    std::vector<std::vector<std::string>> columns = {{t.label_heading}};
    for (const WorkedTable::Row& row : t.rows) columns[0].push_back(row.label);
    for (size_t c = 0; c < t.columns.size(); ++c) columns.push_back(number_cells(t, c));
    if (!t.remark_heading.empty()) {
      columns.push_back({t.remark_heading});
      for (const WorkedTable::Row& row : t.rows) columns.back().push_back(row.remark);
    }
    for (size_t r = 0; r <= t.rows.size(); ++r) table_line(columns, r, 1 + t.columns.size());
  }

  // Labels and remarks (from column `numbers_end` on) stand left, numbers right.
  void table_line(const std::vector<std::vector<std::string>>& columns, size_t r, size_t numbers_end) {
    std::string line = " ";
    for (size_t c = 0; c < columns.size(); ++c) {
      int width = 0;
      for (const std::string& cell : columns[c]) width = std::max(width, width_of(cell));
      line += " " + padded(columns[c][r], width, c > 0 && c < numbers_end) + " ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out_ += (r == 0 ? painted(line, kDim) : line) + "\n";
  }

  TextStyle style_;
  int width_;
  std::string out_;
};

nlohmann::json number_json(double x) {
  if (std::isnan(x)) return nullptr;
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";  // JSON has no infinity
  return x;
}

nlohmann::json numbers_json(const std::vector<double>& values) {
  nlohmann::json all = nlohmann::json::array();
  for (double x : values) all.push_back(number_json(x));
  return all;
}

nlohmann::json step_json(const WorkedStep& s) {
  nlohmann::json values = nlohmann::json::object();
  if (s.is_vector) {
    values[s.value_names[0]] = numbers_json(s.values);
  } else {
    for (size_t i = 0; i < s.value_names.size(); ++i) values[s.value_names[i]] = number_json(s.values[i]);
  }
  return {{"id", s.id}, {"name", s.name}, {"formula", s.formula}, {"numbers", s.numbers}, {"values", values}};
}

nlohmann::json table_json(const WorkedTable& t) {
  nlohmann::json rows = nlohmann::json::array();
  for (const WorkedTable::Row& row : t.rows) {
    rows.push_back({{"label", row.label}, {"values", numbers_json(row.values)}, {"remark", row.remark}});
  }
  return {{"id", t.id}, {"title", t.title}, {"columns", t.columns}, {"keys", t.keys}, {"rows", rows}};
}

}  // namespace

std::string render_text(const Explanation& explanation, const TextStyle& style) {
  return TextRenderer(style).render(explanation);
}

void to_json(nlohmann::json& json, const Explanation& e) {
  json = {{"id", e.id}, {"title", e.title}, {"notes", e.notes}};
  json["steps"] = nlohmann::json::array();
  for (const WorkedStep& s : e.steps) json["steps"].push_back(step_json(s));
  json["tables"] = nlohmann::json::array();
  for (const WorkedTable& t : e.tables) json["tables"].push_back(table_json(t));
  if (!e.plot.empty()) json["plot"] = e.plot;
  if (!e.svg.empty()) json["svg"] = e.svg;
  if (!e.parts.empty()) json["parts"] = e.parts;
}

std::string render_json(const Explanation& explanation) {
  // Text that is no UTF-8 (a byte token's label) becomes U+FFFD instead of an exception.
  return nlohmann::json(explanation).dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace liuli
