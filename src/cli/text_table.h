// Aligned tables and short forms of numbers for people.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace liuli::cli {

/// Terminal columns that UTF-8 text takes (CJK counts two); invalid bytes count one.
int display_width(std::string_view text);
/// A token as one visible piece: control characters escaped, spaces at its ends shown as ␣, cut to max_width.
std::string visible(std::string_view text, int max_width = 24);
/// "93.8 MiB", "1.04 GiB", "512 B".
std::string size_text(int64_t bytes);
/// "134.5 M", "1.54 B", "576".
std::string count_text(int64_t count);
/// "[576, 49152]".
std::string shape_text(const std::vector<int64_t>& shape);
/// Items with a separator between them. (fmt::join makes GCC 12 see an overflow that is not there.)
template <typename Items>
std::string joined(const Items& items, std::string_view separator) {
  std::string out;
  for (const auto& item : items) out += fmt::format("{}{}", out.empty() ? "" : separator, item);
  return out;
}
/// JSON as text; bytes that are not UTF-8 become U+FFFD instead of an exception. indent −1: one line.
std::string json_text(const nlohmann::ordered_json& json, int indent = 2);
/// Columns of the terminal on stdout; 100 when it is none.
int terminal_width();

enum class Align { left, right };

/// Rows of cells, each column as wide as its widest cell, two spaces between.
class TextTable {
 public:
  struct Column {
    std::string heading;
    Align align = Align::left;
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add_row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string render() const;

 private:
  std::string line(const std::vector<std::string>& cells, const std::vector<int>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace liuli::cli
