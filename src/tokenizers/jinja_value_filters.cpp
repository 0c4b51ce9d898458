// Filters over single values: defaults, numbers, attributes.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "tokenizers/jinja_builtins.h"
#include "tokenizers/jinja_operators.h"

namespace liuli::jinja {
namespace {

// default(value='', boolean=false): for the undefined; with boolean also for what is false.
Value default_value(Runtime& rt, const Bound& a) {
  const bool use = is_undefined(a[0]) || (flag_argument(a, 2, false) && !is_true(a[0]));
  if (!use) return a[0];
  return a.given(1) ? a[1] : rt.text("", false);
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = strip_left(text);
  return text.substr(begin, std::max(strip_right(text, text.size()), begin) - begin);
}

std::optional<int64_t> parse_integer(std::string_view text, int base) {
  text = trimmed(text);
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (base == 16 && text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == 'x') text.remove_prefix(2);
  if (text.empty() || text[0] == '-') return std::nullopt;
  int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return negative ? -value : value;
}

std::optional<double> parse_float(std::string_view text) {
  text = trimmed(text);
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

std::optional<int64_t> truncated(Runtime& rt, double value) {
  if (!std::isfinite(value)) return std::nullopt;
  if (std::abs(value) >= 0x1p63) rt.fail("an integer grows beyond 64 bits", ErrorCode::unsupported);
  return static_cast<int64_t>(value);
}

// int(default=0, base=10): "42", "3.9" and 3.9 are read; what cannot be gives the default.
Value to_int(Runtime& rt, const Bound& a) {
  const int64_t base = integer_argument(rt, a, 2, 10);
  if (base < 2 || base > 36) rt.fail(fmt::format("int: base {} is not between 2 and 36", base));
  if (is_undefined(a[0])) rt.fail("int: the value is undefined");
  std::optional<int64_t> result;
  if (is<double>(a[0])) result = truncated(rt, std::get<double>(a[0]));
  if (is_integral(a[0])) result = integer_of(a[0]);
  if (is_text(a[0])) {
    rt.charge(text_of(a[0]).size());
    result = parse_integer(text_of(a[0]).bytes(), static_cast<int>(base));
    const auto number = result ? std::nullopt : parse_float(text_of(a[0]).bytes());
    if (number) result = truncated(rt, *number);
  }
  if (result) return *result;
  return a.given(1) ? a[1] : Value(int64_t{0});
}

Value to_float(Runtime& rt, const Bound& a) {
  if (is_undefined(a[0])) rt.fail("float: the value is undefined");
  if (is_number(a[0])) return double_of(a[0]);
  if (is_text(a[0])) {
    rt.charge(text_of(a[0]).size());
    if (const auto value = parse_float(text_of(a[0]).bytes())) return *value;
  }
  return a.given(1) ? a[1] : Value(0.0);
}

void need_number(Runtime& rt, const Bound& a) {
  if (!is_number(a[0]))
    rt.fail(fmt::format("{}: expected a number, not {}", a.builtin.name, type_name(a[0])));
}

Value absolute(Runtime& rt, const Bound& a) {
  need_number(rt, a);
  if (is<double>(a[0])) return std::abs(std::get<double>(a[0]));
  const int64_t value = integer_of(a[0]);
  return value < 0 ? negated(rt, value) : Value(value);
}

// round(precision=0, method='common'|'ceil'|'floor'); common rounds a half to the even neighbour.
Value round(Runtime& rt, const Bound& a) {
  need_number(rt, a);
  const int64_t precision = integer_argument(rt, a, 1, 0);
  const std::string method = a.given(2) ? text_argument(rt, a, 2).bytes() : "common";
  if (precision < -300 || precision > 300)
    rt.fail(fmt::format("round: precision {} is out of range", precision));
  const double scale = std::pow(10.0, static_cast<double>(precision)), value = double_of(a[0]);
  if (method == "ceil") return std::ceil(value * scale) / scale;
  if (method == "floor") return std::floor(value * scale) / scale;
  if (method != "common") rt.fail(fmt::format("round: unknown method '{}'", method));
  if (is_integral(a[0]) && precision >= 0) return integer_of(a[0]);
  if (precision < 0 || !std::isfinite(value)) return std::nearbyint(value * scale) / scale;
  // Decimal text rounds the number that is written, where value * scale would already have rounded once.
  return std::strtod(fmt::format("{:.{}f}", value, precision).c_str(), nullptr);
}

Value attr(Runtime& rt, const Bound& a) {
  const Text& name = text_argument(rt, a, 1);
  if (is<DictPtr>(a[0])) return Undefined{"attr"};  // keys are not attributes
  return item(rt, a[0], rt.text(name));
}

constexpr Builtin kFilters[] = {
    {"default", "value default_value? boolean?", default_value},
    {"d", "value default_value? boolean?", default_value},
    {"int", "value default? base?", to_int},
    {"float", "value default?", to_float},
    {"abs", "x", absolute},
    {"round", "value precision? method?", round},
    {"attr", "obj name", attr},
};

}  // namespace

BuiltinTable value_filters() { return {std::begin(kFilters), std::end(kFilters)}; }

}  // namespace liuli::jinja
