#include "trace/explain_writer.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstdlib>

#include "liuli/error.h"

namespace liuli::worked {
namespace {

constexpr double kFixedLimit = 1e9;        // rounded numbers from here on are printed with an exponent
constexpr double kExactFixedLimit = 1e15;  // exact ones (integers) stay readable longer

bool is_exact(const std::string& text, double x) {
  // The operands are decimals that somebody typed: the last bits of a double result are not news to the
  // reader.
  return std::fabs(std::strtod(text.c_str(), nullptr) - x) <= 4 * DBL_EPSILON * std::fabs(x);
}

std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

// "1.234000e-07" → "1.234e-7" (zeros of an exact mantissa only).
Piece with_exponent(double x, int digits) {
  const std::string text = fmt::format("{:.{}e}", x, digits);
  const bool exact = is_exact(text, x);
  const size_t e = text.find('e');
  const std::string mantissa = text.substr(0, e);
  return {fmt::format("{}e{}", exact ? without_trailing_zeros(mantissa) : mantissa,
                      std::stoi(text.substr(e + 1))),
          !exact};
}

size_t decimals_of(const std::string& text) {
  const size_t point = text.find('.');
  return point == std::string::npos ? 0 : text.size() - point - 1;
}

bool is_fixed(const std::string& text) { return text.find_first_not_of("-0123456789.") == std::string::npos; }

std::string digits_as(size_t n, const std::array<const char*, 10>& glyphs) {
  std::string text;
  for (char c : std::to_string(n)) text += glyphs[static_cast<size_t>(c - '0')];
  return text;
}

}  // namespace

Piece number(double x, int digits) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "∞" : "-∞";
  if (x == 0) return "0";
  const double size = std::fabs(x);
  if (size < kExactFixedLimit) {
    const std::string fixed = fmt::format("{:.{}f}", x, digits);
    if (is_exact(fixed, x)) return without_trailing_zeros(fixed);
    if (size >= std::pow(10.0, 1 - digits) && size < kFixedLimit) return {fixed, true};
  }
  return with_exponent(x, digits);
}

ColumnText column(std::span<const double> values, int digits) {
  ColumnText text;
  size_t decimals = 0;
  for (double x : values) {
    Piece piece = std::isnan(x) ? Piece("") : number(x, digits);
    text.rounded |= piece.rounded;
    if (is_fixed(piece.text)) decimals = std::max(decimals, decimals_of(piece.text));
    text.cells.push_back(std::move(piece.text));
  }
  for (std::string& cell : text.cells) {
    if (cell.empty() || !is_fixed(cell) || decimals_of(cell) == decimals) continue;
    if (decimals_of(cell) == 0) cell += '.';
    cell.append(decimals - decimals_of(cell), '0');
  }
  return text;
}

Piece join(std::initializer_list<Piece> pieces) {
  Piece all("");
  for (const Piece& piece : pieces) {
    all.text += piece.text;
    all.rounded |= piece.rounded;
  }
  return all;
}

std::string chain(const std::string& lhs, const std::vector<Piece>& pieces) {
  std::string line = lhs;
  bool before = false;
  for (const Piece& piece : pieces) {
    line += before || piece.rounded ? " ≈ " : " = ";
    line += piece.text;
    before = piece.rounded;
  }
  return line;
}

std::string subscript(std::string_view name, size_t index) {
  return std::string(name) + digits_as(index, {"₀", "₁", "₂", "₃", "₄", "₅", "₆", "₇", "₈", "₉"});
}

std::string superscript(size_t exponent) {
  return digits_as(exponent, {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"});
}

Selection select(std::span<const double> values, size_t head, size_t top) {
  Selection shown;
  const size_t n = values.size();
  const size_t first = n <= std::max(kShortRow, head + top) ? n : head;
  for (size_t i = 0; i < first; ++i) shown.head.push_back(i);
  if (first == n) return shown;
  for (size_t i : largest(values.subspan(first), top)) shown.top.push_back(first + i);
  shown.left_out = n - first - shown.top.size();
  return shown;
}

Writer::Writer(Language language, int digits) : language_(language), digits_(digits) {
  if (digits < 1 || digits > 17)
    refuse("explain", fmt::format("{} digits, but 1 to 17 can be printed", digits));
}

Piece Writer::operand(double x) const {
  Piece piece = number(x);
  if (piece.text.starts_with('-')) piece.text = "(" + piece.text + ")";
  return piece;
}

std::string Writer::quoted(double x) const {
  const Piece piece = number(x);
  return piece.rounded ? "≈ " + piece.text : piece.text;
}

std::string Writer::equals(double x) const { return (number(x).rounded ? "" : "= ") + quoted(x); }

Piece Writer::vector(std::span<const double> values) const {
  return join({"[", listed(values.size(), ", ", [&](size_t i) { return number(values[i]); }), "]"});
}

void Writer::note_observed(Explanation& e, std::span<const double> computed,
                           std::span<const double> observed) const {
  if (observed.empty()) return;
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < computed.size(); ++i) {
    const double difference = std::fabs(computed[i] - observed[i]);
    if (difference > worst) worst = difference, at = i;
  }
  e.notes.push_back(worst == 0 ? text(Text::observed_equal, observed.size())
                               : text(Text::observed_difference, observed.size(), quoted(worst), at));
}

void refuse(std::string_view place, const std::string& what) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", place, what));
}

void require_finite(std::string_view place, std::string_view name, std::span<const double> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      refuse(place, fmt::format("{}[{}] is {}, but a finite number is needed", name, i, values[i]));
    }
  }
}

void require_same_length(std::string_view place, std::string_view name_a, size_t a, std::string_view name_b,
                         size_t b) {
  if (a != b) refuse(place, fmt::format("{} has {} numbers, but {} has {}", name_a, a, name_b, b));
}

}  // namespace liuli::worked
