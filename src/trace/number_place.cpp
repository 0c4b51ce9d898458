#include "trace/number_place.h"

#include <charconv>

#include <fmt/format.h>

#include "liuli/error.h"
#include "trace/point_selection.h"

namespace liuli {
namespace {

[[noreturn]] void refuse(const std::string& text, const std::string& what) {
  throw Error(ErrorCode::invalid_argument, fmt::format("\"{}\": {}", text, what));
}

int64_t parse_index(const std::string& text, std::string_view piece) {
  while (!piece.empty() && piece.front() == ' ') piece.remove_prefix(1);
  while (!piece.empty() && piece.back() == ' ') piece.remove_suffix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(piece.data(), piece.data() + piece.size(), value);
  if (error != std::errc() || end != piece.data() + piece.size() || piece.empty())
    refuse(text, fmt::format("index \"{}\" is not a whole number", piece));
  return value;
}

std::vector<int64_t> parse_indices(const std::string& text, std::string_view list) {
  std::vector<int64_t> index;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    index.push_back(parse_index(text, list.substr(begin, end - begin)));
    begin = end + 1;
  }
  return index;
}

Place parse_place(const ModelConfig& config, const std::string& text, const std::string& name) {
  if (name.find('*') != std::string::npos) refuse(text, "one number is asked for, not a pattern with *");
  return select_places(config, {name}).front();
}

}  // namespace

NumberPlace parse_number_place(const ModelConfig& config, const std::string& text, TokenCounts counts) {
  const size_t open = text.find('[');
  const Place place = parse_place(config, text, text.substr(0, open));
  const std::string shape_line = shape_text(config, place, counts);
  if (open == std::string::npos || text.back() != ']')
    refuse(text, fmt::format("an index in brackets is missing; the shape is {}", shape_line));
  std::vector<int64_t> index =
      parse_indices(text, std::string_view(text).substr(open + 1, text.size() - open - 2));
  const std::vector<int64_t> shape = place_shape(config, place, counts);
  if (index.size() != shape.size())
    refuse(text, fmt::format("{} indices are given, the shape is {}", index.size(), shape_line));
  for (size_t i = 0; i < index.size(); i++) {
    const int64_t given = index[i];
    if (given < 0) index[i] += shape[i];
    if (index[i] < 0 || index[i] >= shape[i])
      refuse(text, fmt::format("index {} is outside the shape {}", given, shape_line));
  }
  return {place, index};
}

std::string number_name(const Place& place, const std::vector<int64_t>& index) {
  std::string text = place.name();
  for (size_t i = 0; i < index.size(); i++) text.append(i == 0 ? "[" : ",").append(std::to_string(index[i]));
  return text.append("]");
}

std::string shape_text(const ModelConfig& config, const Place& place, TokenCounts counts) {
  const std::vector<int64_t> shape = place_shape(config, place, counts);
  const auto axes = point_info(place.point).shape;
  std::string text;
  for (size_t i = 0; i < shape.size(); i++)
    text += fmt::format("{}{} {}", i == 0 ? "[" : ", ", axis_name(axes[i]), shape[i]);
  return text + "]";
}

bool is_score_like(Point point) { return point_info(point).shape.front() == Axis::head; }

}  // namespace liuli
