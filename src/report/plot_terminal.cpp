#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/plot_scale.h"

namespace liuli {
namespace {

// Characters of a label, not bytes: continuation bytes of UTF-8 do not count.
size_t characters(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string padded_left(const std::string& text, size_t width) {
  const size_t n = characters(text);
  return n < width ? std::string(width - n, ' ') + text : text;
}

std::string cell_text(const Heatmap& map, const HeatmapRange& range, double value, bool colour, int width) {
  const auto columns = static_cast<size_t>(width);
  if (std::isnan(value)) return std::string(columns, ' ');
  if (!colour) {
    constexpr std::string_view kShades = ".:-=+*#%@";
    const double t = std::clamp((value - range.low) / (range.high - range.low), 0.0, 1.0);
    return std::string(columns, kShades[static_cast<size_t>(std::lround(t * (kShades.size() - 1)))]);
  }
  const Colour c = colour_of(map.scale, range, value);
  return fmt::format("\x1b[48;2;{};{};{}m{}\x1b[0m", c.red, c.green, c.blue, std::string(columns, ' '));
}

}  // namespace

std::string heatmap_terminal(const Heatmap& map, const TerminalStyle& style) {
  check_heatmap(map);
  const HeatmapRange range = heatmap_range(map);
  size_t label = 0;
  for (int64_t row = 0; row < map.rows; row++) label = std::max(label, characters(row_label(map, row)));
  const int64_t room = std::max<int64_t>(8, style.width - static_cast<int64_t>(label) - 1);
  const int cell = 2 * map.columns <= room ? 2 : 1;
  const int64_t shown = std::min(map.columns, room / cell), first = map.columns - shown;
  std::string out = map.title + "\n";
  for (int64_t row = 0; row < map.rows; row++) {
    out += padded_left(row_label(map, row), label) + " ";
    for (int64_t column = first; column < map.columns; column++)
      out += cell_text(map, range,
                       static_cast<double>(map.values[static_cast<size_t>(row * map.columns + column)]),
                       style.colour, cell);
    out += "\n";
  }
  out += fmt::format("{} {} … {}  {}\n", padded_left("", label), column_label(map, first),
                     column_label(map, map.columns - 1), map.x_title);
  if (first > 0) out += fmt::format("the last {} of {} columns\n", shown, map.columns);
  out += fmt::format("{} ", map.value_title);
  for (int i = 0; i <= 8; i++)
    out += cell_text(map, range, range.low + (range.high - range.low) * i / 8, style.colour, 2);
  out += fmt::format(" {} … {}\n", value_text(range.low), value_text(range.high));
  if (const std::string clipped = clipped_text(map, range); !clipped.empty()) out += clipped + "\n";
  return out;
}

}  // namespace liuli
