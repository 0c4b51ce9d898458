#include "cli/sweep_plot.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/text_table.h"
#include "core/markup.h"
#include "liuli/plot.h"

namespace liuli::cli {
namespace {

struct Colour {
  int red, green, blue;
};

// White at 0, red at 1, blue at −1.
Colour colour_of(double value) {
  if (std::isnan(value)) return {160, 160, 160};
  const double v = std::clamp(value, -1.0, 1.0);
  const auto fade = [&](int to) { return static_cast<int>(std::lround(255 + (to - 255) * std::fabs(v))); };
  return v >= 0 ? Colour{fade(197), fade(27), fade(46)} : Colour{fade(33), fade(90), fade(180)};
}

std::string cell_text(double value, bool colour) {
  const std::string number = fmt::format("{:6.2f}", value);
  if (!colour) return number;
  const Colour c = colour_of(value);
  const int ink = c.red + c.green + c.blue > 420 ? 16 : 231;
  return fmt::format("\033[48;2;{};{};{}m\033[38;5;{}m{}\033[0m", c.red, c.green, c.blue, ink, number);
}

}  // namespace

HeatMap heat_map(const SweepResult& result, const std::string& title,
                 const std::vector<std::string>& tokens) {
  HeatMap map;
  map.title = title;
  for (const int layer : result.layers) map.rows.push_back(fmt::format("{}", layer));
  const size_t n_positions = result.positions.size(), n_heads = result.heads.size();
  const bool by_head = result.heads.front() >= 0;
  map.column_title = by_head ? "head" : "position";
  for (size_t i = 0; i < (by_head ? n_heads : n_positions); i++)
    map.columns.push_back(
        by_head ? fmt::format("{}", result.heads[i])
                : fmt::format("{} {}", result.positions[i], i < tokens.size() ? tokens[i] : ""));
  for (size_t layer = 0; layer < result.layers.size(); layer++)
    for (size_t column = 0; column < map.columns.size(); column++) {
      const auto at = [&](size_t position, size_t head) {
        return result.effect[(layer * n_positions + position) * n_heads + head];
      };
      double value = by_head ? at(0, column) : at(column, 0);
      for (size_t position = 0; by_head && position < n_positions; position++)
        if (std::fabs(at(position, column)) > std::fabs(value)) value = at(position, column);
      map.values.push_back(value);
    }
  return map;
}

std::string heat_map_text(const HeatMap& map, bool colour, int width) {
  constexpr int kCell = 6, kMargin = 7;
  std::string text = map.title + "\n";
  const auto per_line = static_cast<size_t>(std::max(1, (width - kMargin) / kCell));
  for (size_t first = 0; first < map.columns.size(); first += per_line) {
    const size_t last = std::min(map.columns.size(), first + per_line);
    text += fmt::format("{:>6} ", "layer");
    for (size_t column = first; column < last; column++)
      text += fmt::format("{:>6}", map.columns[column].substr(0, map.columns[column].find(' ')));
    text += fmt::format("   {}\n", map.column_title);
    for (size_t row = 0; row < map.rows.size(); row++) {
      text += fmt::format("{:>6} ", map.rows[row]);
      for (size_t column = first; column < last; column++)
        text += cell_text(map.values[row * map.columns.size() + column], colour);
      text += "\n";
    }
  }
  return text;
}

std::string heat_map_svg(const HeatMap& map) {
  constexpr int kCell = 34, kLeft = 60, kTop = 40, kBottom = 130;
  const auto n_rows = static_cast<int>(map.rows.size()), n_columns = static_cast<int>(map.columns.size());
  const int width = kLeft + n_columns * kCell + 20, height = kTop + n_rows * kCell + kBottom;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<text x=\"8\" y=\"20\" font-size=\"13\">{2}</text>\n",
      width, height, escaped(map.title));
  for (int row = 0; row < n_rows; row++) {
    const int y = kTop + (n_rows - 1 - row) * kCell;  // the first layer below, as in the tower
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kLeft - 6, y + 21,
                       escaped(map.rows[static_cast<size_t>(row)]));
    for (int column = 0; column < n_columns; column++) {
      const double value = map.values[static_cast<size_t>(row * n_columns + column)];
      const Colour c = colour_of(value);
      const int x = kLeft + column * kCell;
      svg += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
          "fill=\"rgb({},{},{})\"><title>{:.4f}</title></rect>"
          "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"10\">{:.2f}</text>\n",
          x, y, kCell - 1, kCell - 1, c.red, c.green, c.blue, value, x + kCell / 2, y + 21, value);
    }
  }
  for (int column = 0; column < n_columns; column++) {
    const int x = kLeft + column * kCell + kCell / 2 + 4, y = kTop + n_rows * kCell + 8;
    svg += fmt::format(
        "<text x=\"{0}\" y=\"{1}\" text-anchor=\"end\" transform=\"rotate(-60 {0} {1})\">{2}</text>\n", x, y,
        escaped(map.columns[static_cast<size_t>(column)]));
  }
  return svg + "</svg>\n";
}

std::string heat_map_png(const HeatMap& map) {
  Heatmap picture;
  picture.title = map.title;
  picture.x_title = map.column_title;
  picture.y_title = "layer";
  picture.value_title = "share of the clean answer";
  picture.rows = static_cast<int64_t>(map.rows.size());
  picture.columns = static_cast<int64_t>(map.columns.size());
  picture.values.assign(map.values.begin(), map.values.end());
  picture.scale = ColourScale::diverging;
  picture.low = -1, picture.high = 1;
  return heatmap_png(picture);
}

}  // namespace liuli::cli
