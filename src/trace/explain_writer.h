// Turns numbers into the text of a calculation, and never lets a rounded number look exact.
#pragma once
#include <fmt/format.h>

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/explain_arithmetic.h"
#include "trace/explain_texts.h"

namespace liuli::worked {

/// A printed number or expression, and whether a number in it was rounded for printing.
struct Piece {
  Piece(std::string t, bool r = false) : text(std::move(t)), rounded(r) {}
  Piece(const char* t) : text(t) {}
  std::string text;
  bool rounded = false;
};

/// x with up to so many decimals: exact and without trailing zeros if that is possible, else rounded to all
/// of them; with an exponent where fewer than two digits would be left (1.234e-7) or from 1e9 on. A double
/// within 4 ulp of a decimal that short counts as that decimal: 0.1 + 0.2 prints as 0.3.
Piece number(double x, int digits);

/// One column of a table: all cells have the same number of decimals; empty for NaN.
struct ColumnText {
  std::vector<std::string> cells;
  bool rounded = false;
};
ColumnText column(std::span<const double> values, int digits);

Piece join(std::initializer_list<Piece> pieces);
/// "lhs = a ≈ b": each sign is = only if both of its sides are printed exactly.
std::string chain(const std::string& lhs, const std::vector<Piece>& pieces);
/// "x₁₂"
std::string subscript(std::string_view name, size_t index);
/// "1.5¹⁰" needs this: "¹⁰"
std::string superscript(size_t exponent);

constexpr size_t kShortRow = 8;   ///< rows up to this length are printed whole
constexpr size_t kHeadTerms = 3;  ///< of a longer row: the first
constexpr size_t kTopTerms = 3;   ///< and the largest

/// Which elements of a row are printed: the first ones in order, then the largest of the others.
struct Selection {
  std::vector<size_t> head, top;
  size_t left_out = 0;
};
Selection select(std::span<const double> values, size_t head, size_t top);

/// Language and number of decimals of one explanation.
class Writer {
 public:
  /// Errors: invalid_argument unless 1 ≤ digits ≤ 17.
  Writer(Language language, int digits);

  template <class... Args>
  std::string text(Text id, const Args&... args) const {
    return fmt::format(fmt::runtime(worked::text(id, language_)), args...);
  }
  int digits() const { return digits_; }
  Language language() const { return language_; }

  Piece number(double x) const { return worked::number(x, digits_); }
  /// In parentheses when negative, as after × or −.
  Piece operand(double x) const;
  /// "0.5" or "≈ 0.543431": a number in a sentence.
  std::string quoted(double x) const;
  /// "= 0.5" or "≈ 0.543431": the end of a statement.
  std::string equals(double x) const;

  /// "a + b + … + z": every element of a short row, else the first three and the last.
  template <class F>
  Piece listed(size_t n, std::string_view separator, F&& element) const {
    Piece all("");
    for (size_t i = 0; i < n; ++i) {
      const bool left_out = n > kShortRow && i == kHeadTerms;
      if (left_out) i = n - 1;
      const Piece piece = element(i);
      if (i > 0) all.text += separator;
      if (left_out) all.text.append("…").append(separator);
      all.text += piece.text;
      all.rounded |= piece.rounded;
    }
    return all;
  }
  /// "[a, b, …, z]"
  Piece vector(std::span<const double> values) const;

  /// One line per printed element: all of a short row, else its first three, a line for those left out, and
  /// the three largest |values|.
  template <class F>
  std::string element_lines(std::span<const double> values, F&& line) const {
    const Selection shown = select(values, kHeadTerms, kTopTerms);
    std::string lines;
    for (size_t i : shown.head) lines += line(i) + "\n";
    if (shown.left_out > 0) lines += text(Text::lines_left_out, shown.left_out, shown.top.size()) + "\n";
    for (size_t i : shown.top) lines += line(i) + "\n";
    if (!lines.empty()) lines.pop_back();
    return lines;
  }

  /// "largest difference to the recorded values: …", or nothing when observed is empty.
  void note_observed(Explanation& e, std::span<const double> computed,
                     std::span<const double> observed) const;

 private:
  Language language_;
  int digits_;
};

/// A column of text over n rows of a table: adds the rows of a selection with "…" between head and top.
void add_rows(WorkedTable& table, const Selection& shown, const auto& make_row) {
  for (size_t i : shown.head) table.rows.push_back(make_row(i));
  if (shown.left_out > 0) table.rows.push_back({"…", {}, {}});
  for (size_t i : shown.top) table.rows.push_back(make_row(i));
}

/// Throws invalid_argument "<place>: …" naming what disagrees.
[[noreturn]] void refuse(std::string_view place, const std::string& what);
void require_finite(std::string_view place, std::string_view name, std::span<const double> values);
/// a and b are the lengths of what the names say.
void require_same_length(std::string_view place, std::string_view name_a, size_t a, std::string_view name_b,
                         size_t b);

/// The errors of explain_norm: those of its inputs, and those that only the values show (σ = 0, overflow).
void check_norm_inputs(const NormInputs& inputs);
void check_norm_values(const NormInputs& inputs, const NormValues& values);

}  // namespace liuli::worked
