#include <cmath>
#include <limits>

#include "trace/explain_plot.h"
#include "trace/explain_writer.h"

namespace liuli {
namespace {

using namespace worked;

constexpr std::string_view kPlace = "explain explosion";
constexpr int kSearchSteps = 1'000'000;  // how long a lane is followed until it is said not to overflow
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Format {
  const char* name;
  int mantissa_bits;  // with the hidden one
  double largest;     // the largest finite number
};
// f16: (2 − 2⁻¹⁰)·2¹⁵ = 65504; bf16 has f32's exponent but 8 bits.
const Format kFormats[] = {{"f16", 11, 65504.0},
                           {"bf16", 8, std::ldexp(255.0, 120)},
                           {"f32", 24, std::numeric_limits<float>::max()}};

void check(const ExplosionInputs& in) {
  const double numbers[] = {in.factor, in.shift, in.start};
  const char* names[] = {"factor", "shift", "start"};
  for (size_t i = 0; i < 3; ++i) {
    if (!std::isfinite(numbers[i]))
      refuse(kPlace, fmt::format("{} is {}, but must be finite", names[i], numbers[i]));
  }
  if (in.steps < 1 || in.steps > 1000)
    refuse(kPlace, fmt::format("{} steps, but 1 to 1000 are possible", in.steps));
}

std::vector<double> iterate(const ExplosionInputs& in) {
  std::vector<double> x = {in.start};
  for (int n = 0; n < in.steps; ++n) x.push_back(in.factor * x.back() + in.shift);
  return x;
}

struct Overflow {
  int step = -1;         // −1: not found
  double last = 0;       // the last finite value, in the format
  bool settles = false;  // x no longer changes
};

// Follows the lane in the format itself: operands, product and sum are each rounded to its bits.
Overflow find_overflow(const ExplosionInputs& in, const Format& format) {
  const double factor = round_bits(in.factor, format.mantissa_bits),
               shift = round_bits(in.shift, format.mantissa_bits);
  double x = round_bits(in.start, format.mantissa_bits);
  if (std::fabs(x) > format.largest) return {0, x, false};
  for (int step = 1; step <= kSearchSteps; ++step) {
    const double product = round_bits(factor * x, format.mantissa_bits);
    const double next = round_bits(product + shift, format.mantissa_bits);
    if (std::fabs(product) > format.largest || std::fabs(next) > format.largest) return {step, x, false};
    if (next == x) return {-1, x, true};
    x = next;
  }
  return {-1, x, false};
}

WorkedStep iterate_step(const ExplosionInputs& in, const std::vector<double>& x, const Writer& w) {
  const auto line = [&](size_t n) {
    const Piece next = join({w.number(in.factor), " × ", w.operand(x[n - 1]), " + ", w.operand(in.shift)});
    return chain(subscript("x", n), {next, w.number(x[n])});
  };
  std::string lines = chain("x₀", {w.number(x[0])});
  constexpr size_t kAllLines = 12;
  for (size_t n = 1; n < x.size(); ++n) {
    if (x.size() > kAllLines + 1 && n == kHeadTerms + 1) {
      n = x.size() - 1;
      lines += "\n…";
    }
    lines.append("\n").append(line(n));
  }
  return {"iterate",
          w.text(Text::step_iterate),
          fmt::format("xₙ₊₁ = {} × xₙ + {}", w.number(in.factor).text, w.operand(in.shift).text),
          lines,
          {"x"},
          x,
          true};
}

WorkedStep closed_form_step(const ExplosionInputs& in, const Writer& w) {
  const auto n = static_cast<size_t>(in.steps);
  if (in.factor == 1) {
    const double value = in.start + in.steps * in.shift;
    const Piece sum = join({w.number(in.start), " + ", std::to_string(n), " × ", w.operand(in.shift)});
    return {"closed_form",     w.text(Text::step_closed_form),
            "xₙ = x₀ + n × b", chain(subscript("x", n), {sum, w.number(value)}),
            {"closed_form"},   {value}};
  }
  const double c = in.shift / (in.factor - 1), value = std::pow(in.factor, in.steps) * (in.start + c) - c;
  const Piece quotient = join({w.operand(in.shift), " / (", w.number(in.factor), " - 1)"});
  const Piece power = join({w.operand(in.factor), superscript(n), " × (", w.number(in.start), " + ",
                            w.operand(c), ") - ", w.operand(c)});
  return {"closed_form",
          w.text(Text::step_closed_form),
          "xₙ = aⁿ × (x₀ + c) - c,  c = b / (a - 1)",
          chain("c", {quotient, w.number(c)}) + "\n" + chain(subscript("x", n), {power, w.number(value)}),
          {"closed_form"},
          {value}};
}

WorkedTable overflow_table(const ExplosionInputs& in, const Writer& w) {
  WorkedTable t{
      "overflow",
      w.text(Text::table_overflow),
      w.text(Text::column_format),
      {w.text(Text::column_largest), w.text(Text::column_overflow_step), w.text(Text::column_last_finite)},
      {"largest_finite", "overflow_step", "last_finite"},
      w.text(Text::column_result),
      {},
      w.digits()};
  for (const Format& format : kFormats) {
    const Overflow found = find_overflow(in, format);
    const Text remark = found.step >= 0 ? Text::overflow_found
                        : found.settles ? Text::overflow_settles
                                        : Text::overflow_not_found;
    t.rows.push_back({format.name,
                      {format.largest, found.step >= 0 ? found.step : kNaN, found.last},
                      w.text(remark, kSearchSteps)});
  }
  return t;
}

}  // namespace

Explanation explain_explosion(const ExplosionInputs& inputs, Language language, int digits) {
  const Writer w(language, digits);
  check(inputs);
  const std::vector<double> x = iterate(inputs);
  Explanation e;
  e.id = "explosion";
  e.title =
      w.text(Text::explosion_title, w.number(inputs.factor).text, w.operand(inputs.shift).text, inputs.steps);
  e.steps = {iterate_step(inputs, x, w), closed_form_step(inputs, w)};
  e.tables = {overflow_table(inputs, w)};
  e.plot = bar_plot(x, w);
  e.svg = curve_svg(x, e.title, w);
  e.notes.push_back(w.text(Text::note_explosion_growth, w.equals(x.back() / x.front()), inputs.steps));
  if (x.front() == 0) e.notes.pop_back();  // growth from 0 has no factor
  e.notes.push_back(w.text(Text::note_overflow_method));
  return e;
}

}  // namespace liuli
