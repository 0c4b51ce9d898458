// Heatmaps as PNG: a picture with 256 colours, written without compression, which takes no library.
#include <algorithm>
#include <array>
#include <cmath>

#include "liuli/error.h"
#include "report/plot_scale.h"

namespace liuli {
namespace {

// Palette: the scale in kShades steps, then three colours of their own.
constexpr int kShades = 253, kBackground = 253, kFrame = 254, kAbsent = 255;

uint32_t crc32(std::string_view bytes) {
  uint32_t crc = 0xffffffffu;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >> 1) ^ 0xedb88320u : crc >> 1;
  }
  return ~crc;
}

uint32_t adler32(std::string_view bytes) {
  uint32_t a = 1, b = 0;
  for (const char byte : bytes) {
    a = (a + static_cast<uint8_t>(byte)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

void append_big_endian(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

void append_chunk(std::string& out, const std::string& type, const std::string& data) {
  append_big_endian(out, static_cast<uint32_t>(data.size()));
  out += type + data;
  append_big_endian(out, crc32(type + data));
}

// A zlib stream of stored blocks.
std::string stored_stream(const std::string& bytes) {
  constexpr size_t kLongest = 65535;
  std::string out = "\x78\x01";
  for (size_t at = 0; at < bytes.size(); at += kLongest) {
    const size_t n = std::min(kLongest, bytes.size() - at);
    out += at + n == bytes.size() ? '\1' : '\0';
    for (const size_t length : {n, ~n}) {
      out += static_cast<char>(length & 0xff);
      out += static_cast<char>(length >> 8 & 0xff);
    }
    out.append(bytes, at, n);
  }
  append_big_endian(out, adler32(bytes));
  return out;
}

// One picture: the cells in a frame, the colour bar at the right.
class PngHeatmap {
 public:
  explicit PngHeatmap(const Heatmap& map) : map_(map), range_(heatmap_range(map)) {
    cell_width_ = pixels_of(720, map.columns);
    cell_height_ = pixels_of(540, map.rows);
    grid_width_ = cell_width_ * map.columns;
    grid_height_ = cell_height_ * map.rows;
    width_ = 3 * kMargin + grid_width_ + kBar;
    height_ = 2 * kMargin + std::max(grid_height_, kShortestBar);
    line_ = width_ + 1;  // a line begins with its filter: 0, none
    pixels_.assign(static_cast<size_t>(line_ * height_), static_cast<char>(kBackground));
    for (int64_t y = 0; y < height_; y++) pixels_[static_cast<size_t>(y * line_)] = 0;
  }

  std::string draw() {
    fill(kMargin - 1, kMargin - 1, grid_width_ + 2, grid_height_ + 2, kFrame);
    for (int64_t row = 0; row < map_.rows; row++)
      for (int64_t column = 0; column < map_.columns; column++) cell(row, column);
    const int64_t bar = std::max(grid_height_, kShortestBar);
    for (int64_t y = 0; y < bar; y++)
      fill(2 * kMargin + grid_width_, kMargin + y, kBar, 1,
           static_cast<int>((kShades - 1) * (bar - 1 - y) / std::max<int64_t>(1, bar - 1)));
    return file();
  }

 private:
  static constexpr int64_t kMargin = 12, kBar = 16, kShortestBar = 60;
  static int64_t pixels_of(int64_t room, int64_t n) { return std::clamp<int64_t>(room / n, 1, 36); }

  void fill(int64_t x, int64_t y, int64_t width, int64_t height, int colour) {
    for (int64_t row = y; row < y + height; row++)
      std::fill_n(pixels_.begin() + row * line_ + 1 + x, width, static_cast<char>(colour));
  }

  void cell(int64_t row, int64_t column) {
    const auto value = static_cast<double>(map_.values[static_cast<size_t>(row * map_.columns + column)]);
    const int64_t x = kMargin + column * cell_width_, y = kMargin + row * cell_height_;
    if (std::isnan(value)) return fill(x, y, cell_width_, cell_height_, kAbsent);
    const double span = range_.high - range_.low, share = span > 0 ? (value - range_.low) / span : 0;
    const int shade = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * (kShades - 1)));
    const bool is_clipped = value < range_.low || value > range_.high;
    const bool has_room = std::min(cell_width_, cell_height_) >= 3;
    if (!is_clipped || !has_room) return fill(x, y, cell_width_, cell_height_, shade);
    fill(x, y, cell_width_, cell_height_, kFrame);
    fill(x + 1, y + 1, cell_width_ - 2, cell_height_ - 2, shade);
  }

  std::string palette() const {
    std::string colours;
    const auto add = [&](Colour c) {
      for (const int part : {c.red, c.green, c.blue}) colours += static_cast<char>(part);
    };
    const double span = range_.high - range_.low;
    for (int i = 0; i < kShades; i++)
      add(colour_of(map_.scale, range_, range_.low + span * i / (kShades - 1)));
    add({255, 255, 255});
    add({0x22, 0x22, 0x22});
    add({0xee, 0xee, 0xee});
    return colours;
  }

  // What the picture has no letters for: keyword, language and the rest empty, UTF-8 text.
  static std::string text(const std::string& keyword, const std::string& words) {
    std::string data = keyword;
    data.append(5, '\0');
    return data + words;
  }

  std::string file() const {
    std::string header;
    append_big_endian(header, static_cast<uint32_t>(width_));
    append_big_endian(header, static_cast<uint32_t>(height_));
    header.append("\x08\x03\0\0\0", 5);  // 8 bits, palette
    std::string out = "\x89PNG\r\n\x1a\n";
    append_chunk(out, "IHDR", header);
    append_chunk(out, "PLTE", palette());
    append_chunk(out, "iTXt", text("Title", map_.title));
    append_chunk(out, "iTXt",
                 text("Description", "rows: " + map_.y_title + "; columns: " + map_.x_title + "; colours: " +
                                         map_.value_title + " from " + value_text(range_.low) + " to " +
                                         value_text(range_.high) + "; " + clipped_text(map_, range_)));
    append_chunk(out, "IDAT", stored_stream(pixels_));
    append_chunk(out, "IEND", "");
    return out;
  }

  const Heatmap& map_;
  HeatmapRange range_;
  int64_t cell_width_, cell_height_, grid_width_, grid_height_, width_, height_, line_;
  std::string pixels_;
};

}  // namespace

std::string heatmap_png(const Heatmap& map) {
  check_heatmap(map);
  return PngHeatmap(map).draw();
}

std::string heatmap_file(const Heatmap& map, const std::string& path) {
  if (path.ends_with(".svg")) return heatmap_svg(map);
  if (path.ends_with(".png")) return heatmap_png(map);
  throw Error(ErrorCode::invalid_argument, path + ": pictures are written as .svg or .png");
}

}  // namespace liuli
