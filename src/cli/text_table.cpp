#include "cli/text_table.h"

#include <algorithm>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

namespace liuli::cli {
namespace {

// The character at text[i]: its code point (−1 for an invalid byte) and how many bytes it takes.
std::pair<int32_t, size_t> character_at(std::string_view text, size_t i) {
  utf8proc_int32_t code_point = -1;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data() + i);
  const utf8proc_ssize_t used =
      utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size() - i), &code_point);
  if (used <= 0) return {-1, 1};
  return {code_point, static_cast<size_t>(used)};
}

std::string visible_character(int32_t code_point, std::string_view bytes) {
  if (code_point < 0) return "\uFFFD";
  if (code_point == '\n') return "\\n";
  if (code_point == '\t') return "\\t";
  if (code_point == '\r') return "\\r";
  if (code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0))
    return fmt::format("\\x{:02x}", code_point);
  return std::string(bytes);
}

}  // namespace

int display_width(std::string_view text) {
  int width = 0;
  for (size_t i = 0; i < text.size();) {
    const auto [code_point, bytes] = character_at(text, i);
    width += code_point < 0 ? 1 : std::max(0, utf8proc_charwidth(code_point));
    i += bytes;
  }
  return width;
}

std::string visible(std::string_view text, int max_width) {
  std::string out;
  int width = 0;
  for (size_t i = 0; i < text.size();) {
    const auto [code_point, bytes] = character_at(text, i);
    const bool at_end = i == 0 || i + bytes == text.size();
    const std::string piece =
        code_point == ' ' && at_end ? "␣" : visible_character(code_point, text.substr(i, bytes));
    width += display_width(piece);
    if (width > max_width) return out + "…";
    out += piece;
    i += bytes;
  }
  return out;
}

std::string size_text(int64_t bytes) {
  const double size = static_cast<double>(bytes);
  if (bytes < 1024) return fmt::format("{} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", size / 1024);
  if (bytes < int64_t{10} << 30) return fmt::format("{:.1f} MiB", size / (1024 * 1024));
  return fmt::format("{:.1f} GiB", size / (1024.0 * 1024 * 1024));
}

std::string count_text(int64_t count) {
  const double n = static_cast<double>(count);
  if (count < 100'000) return fmt::format("{}", count);
  if (count < 1'000'000) return fmt::format("{:.1f} K", n / 1e3);
  if (count < 1'000'000'000) return fmt::format("{:.1f} M", n / 1e6);
  return fmt::format("{:.2f} B", n / 1e9);
}

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("[{}]", joined(shape, ", ")); }

std::string json_text(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

int terminal_width() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 100;
}

std::string TextTable::render() const {
  std::vector<int> widths;
  std::vector<std::string> headings;
  for (size_t c = 0; c < columns_.size(); ++c) {
    int width = display_width(columns_[c].heading);
    for (const auto& row : rows_) width = std::max(width, display_width(row.at(c)));
    widths.push_back(width);
    headings.push_back(columns_[c].heading);
  }
  std::string out = line(headings, widths);
  for (const auto& row : rows_) out += line(row, widths);
  return out;
}

std::string TextTable::line(const std::vector<std::string>& cells, const std::vector<int>& widths) const {
  std::string out;
  for (size_t c = 0; c < cells.size(); ++c) {
    const std::string padding(static_cast<size_t>(widths[c] - display_width(cells[c])), ' ');
    if (c > 0) out += "  ";
    out += columns_[c].align == Align::right ? padding + cells[c] : cells[c] + padding;
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return out + "\n";
}

}  // namespace liuli::cli
