#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/markup.h"
#include "report/plot_scale.h"

namespace liuli {
namespace {

std::string hex(Colour c) { return fmt::format("#{:02x}{:02x}{:02x}", c.red, c.green, c.blue); }

size_t longest(const std::vector<std::string>& labels) {
  size_t n = 3;
  for (const std::string& label : labels) n = std::max(n, label.size());
  return n;
}

// One picture; lengths are in pixels.
class SvgHeatmap {
 public:
  explicit SvgHeatmap(const Heatmap& map) : map_(map), range_(heatmap_range(map)) {
    const bool has_text = !map.cell_labels.empty();
    const double label = 6.2;  // the width of an average character at 11 px
    cell_width_ = has_text ? std::max(48.0, label * static_cast<double>(longest(map.cell_labels)) + 8)
                           : std::clamp(720.0 / static_cast<double>(map.columns), 3.0, 36.0);
    cell_height_ = has_text ? 18 : std::clamp(540.0 / static_cast<double>(map.rows), 3.0, 22.0);
    left_ = 34 + label * static_cast<double>(longest(map.y_labels));
    bottom_ = 40 + 0.87 * label * static_cast<double>(longest(map.x_labels));
    width_ = left_ + grid_width() + 110;
    height_ = kTop + grid_height() + bottom_ + (range_.clipped.empty() ? 0 : 18);
  }

  std::string draw() {
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
        "{0:.0f} "
        "{1:.0f}\" font-family=\"sans-serif\" font-size=\"11\" fill=\"#222\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        width_, height_);
    text(left_, 20, map_.title, "start", 0, 14);
    cells();
    axes();
    colour_bar();
    if (!range_.clipped.empty()) text(8, height_ - 8, clipped_text(map_, range_));
    return out_ + "</svg>\n";
  }

 private:
  static constexpr double kTop = 34;
  double grid_width() const { return cell_width_ * static_cast<double>(map_.columns); }
  double grid_height() const { return cell_height_ * static_cast<double>(map_.rows); }
  double x_of(double column) const { return left_ + cell_width_ * column; }
  double y_of(double row) const { return kTop + cell_height_ * row; }

  void text(double x, double y, const std::string& words, const char* anchor = "start", double turn = 0,
            int size = 11, const char* fill = "#222") {
    const std::string turned =
        turn != 0 ? fmt::format(" transform=\"rotate({} {:.1f} {:.1f})\"", turn, x, y) : "";
    out_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\" fill=\"{}\"{}>{}</text>\n", x, y,
        anchor, size, fill, turned, escaped(words));
  }

  void cells() {
    out_ += "<g shape-rendering=\"crispEdges\">\n";  // no hairlines between cells of fractional size
    for (int64_t row = 0; row < map_.rows; row++)
      for (int64_t column = 0; column < map_.columns; column++) cell(row, column);
    out_ += "</g>\n";
  }

  void cell(int64_t row, int64_t column) {
    const auto at = static_cast<size_t>(row * map_.columns + column);
    const auto value = static_cast<double>(map_.values[at]);
    if (std::isnan(value)) return;
    const Colour colour = colour_of(map_.scale, range_, value);
    const bool is_clipped = value < range_.low || value > range_.high;
    const double x = x_of(static_cast<double>(column)), y = y_of(static_cast<double>(row));
    out_ += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"{}><title>{}, {}: "
        "{}</title></rect>\n",
        x, y, cell_width_, cell_height_, hex(colour),
        is_clipped ? " stroke=\"#000\" stroke-dasharray=\"2\"" : "", escaped(row_label(map_, row)),
        escaped(column_label(map_, column)), value_text(value));
    if (!map_.cell_labels.empty())
      text(x + cell_width_ / 2, y + cell_height_ - 5, map_.cell_labels[at], "middle", 0, 11,
           colour.is_dark() ? "#fff" : "#111");
  }

  // Every label where there is room, else every second, fifth, tenth …
  static int64_t label_step(double cell, double room) {
    for (const int64_t step : {1, 2, 5, 10, 20, 50, 100, 200, 500})
      if (static_cast<double>(step) * cell >= room) return step;
    return 1000;
  }

  void axes() {
    for (int64_t row = 0; row < map_.rows; row += label_step(cell_height_, 11))
      text(left_ - 5, y_of(static_cast<double>(row) + 0.5) + 4, row_label(map_, row), "end");
    const double below = kTop + grid_height();
    for (int64_t column = 0; column < map_.columns; column += label_step(cell_width_, 12))
      text(x_of(static_cast<double>(column) + 0.5) + 4, below + 12, column_label(map_, column), "end", -60);
    out_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" "
        "stroke=\"#888\"/>\n",
        left_, kTop, grid_width(), grid_height());
    text(left_ + grid_width() / 2, below + bottom_ - 10, map_.x_title, "middle", 0, 12);
    text(14, kTop + grid_height() / 2, map_.y_title, "middle", -90, 12);
  }

  void colour_bar() {
    constexpr int kSteps = 32, kTicks = 5;
    const double x = left_ + grid_width() + 24, height = std::clamp(grid_height(), 60.0, 240.0);
    const double span = range_.high - range_.low;
    for (int i = 0; i < kSteps; i++)
      out_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.2f}\" width=\"14\" height=\"{:.2f}\" fill=\"{}\"/>\n", x,
                          kTop + height * (kSteps - 1 - i) / kSteps, height / kSteps + 0.5,
                          hex(colour_of(map_.scale, range_, range_.low + span * (i + 0.5) / kSteps)));
    for (int i = 0; i < kTicks; i++)
      text(x + 18, kTop + height * (kTicks - 1 - i) / (kTicks - 1) + 4,
           value_text(range_.low + span * i / (kTicks - 1)));
    text(x, kTop - 8, map_.value_title);
  }

  const Heatmap& map_;
  HeatmapRange range_;
  double cell_width_, cell_height_, left_, bottom_, width_, height_;
  std::string out_;
};

}  // namespace

std::string heatmap_svg(const Heatmap& map) {
  check_heatmap(map);
  return SvgHeatmap(map).draw();
}

}  // namespace liuli
