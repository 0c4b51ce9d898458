#include "trace/slices.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "liuli/error.h"

namespace liuli {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    pieces.push_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return pieces;
}

// One axis of a known length, for messages.
struct SlicedAxis {
  const std::string& what;
  int64_t size;

  [[noreturn]] void refuse(std::string_view piece) const {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("\"{}\" selects nothing of {}: expected an index of 0 … {}, or begin:end:step",
                            piece, what, size - 1));
  }
  std::optional<int64_t> number(std::string_view piece, std::string_view whole) const {
    if (piece.empty()) return std::nullopt;
    int64_t value = 0;
    const auto [end, error] = std::from_chars(piece.data(), piece.data() + piece.size(), value);
    if (error != std::errc() || end != piece.data() + piece.size()) refuse(whole);
    return value;
  }
  // Python's rule for the ends of a range: counted from the end when negative, then cut to the axis.
  int64_t end_of_range(int64_t at) const { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); }

  void add(std::string_view piece, std::vector<int64_t>& kept) const {
    const auto parts = split(piece, ':');
    if (parts.size() == 1) {
      const auto index = number(piece, piece);
      if (!index || *index < -size || *index >= size) refuse(piece);
      kept.push_back(*index < 0 ? *index + size : *index);
      return;
    }
    const int64_t step = parts.size() > 2 ? number(parts[2], piece).value_or(1) : 1;
    if (parts.size() > 3 || step < 1) refuse(piece);
    const int64_t begin = end_of_range(number(parts[0], piece).value_or(0)),
                  end = end_of_range(number(parts[1], piece).value_or(size));
    if (begin >= end) refuse(piece);
    for (int64_t i = begin; i < end; i += step) kept.push_back(i);
  }
};

}  // namespace

std::vector<int64_t> parse_slice(std::string_view text, int64_t size, const std::string& what) {
  std::vector<int64_t> kept;
  for (const std::string_view piece : split(text, ',')) SlicedAxis{what, size}.add(piece, kept);
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  return kept;
}

std::vector<std::string> split_outside_brackets(std::string_view text) {
  std::vector<std::string> pieces(1);
  int depth = 0;
  for (const char c : text) {
    depth += (c == '[') - (c == ']');
    if (c == ',' && depth == 0)
      pieces.emplace_back();
    else
      pieces.back() += c;
  }
  for (std::string& piece : pieces) piece = std::string(trimmed(piece));
  std::erase(pieces, "");
  return pieces;
}

}  // namespace liuli
