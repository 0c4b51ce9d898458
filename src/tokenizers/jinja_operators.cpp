#include "tokenizers/jinja_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tokenizers/jinja_characters.h"
#include "tokenizers/jinja_format.h"

namespace liuli::jinja {
namespace {

[[noreturn]] void cannot_combine(Runtime& runtime, std::string_view op, const Value& a, const Value& b) {
  runtime.fail(fmt::format("cannot compute {} {} {}", type_name(a), op, type_name(b)));
}

int64_t exact(Runtime& runtime, bool overflowed, int64_t result) {
  if (overflowed) runtime.fail("an integer grows beyond 64 bits", ErrorCode::unsupported);
  return result;
}

int64_t integer_power(Runtime& runtime, int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) {
      const bool overflowed = __builtin_mul_overflow(result, base, &result);
      exact(runtime, overflowed, result);
    }
    if (exponent > 1) {
      const bool overflowed = __builtin_mul_overflow(base, base, &base);
      exact(runtime, overflowed, base);
    }
  }
  return result;
}

// Rounds towards minus infinity; the remainder has the divisor's sign.
Value integer_division(Runtime& runtime, std::string_view op, int64_t a, int64_t b) {
  if (b == 0) runtime.fail("division by zero");
  if (b == -1) return op == "%" ? int64_t{0} : exact(runtime, a == INT64_MIN, -(a + (a == INT64_MIN)));
  const bool adjust = a % b != 0 && (a < 0) != (b < 0);
  return op == "%" ? a % b + (adjust ? b : 0) : a / b - adjust;
}

Value integer_arithmetic(Runtime& runtime, std::string_view op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflowed = false;
  if (op == "+") {
    overflowed = __builtin_add_overflow(a, b, &result);
  } else if (op == "-") {
    overflowed = __builtin_sub_overflow(a, b, &result);
  } else if (op == "*") {
    overflowed = __builtin_mul_overflow(a, b, &result);
  } else if (op == "**" && b >= 0) {
    result = integer_power(runtime, a, b);
  } else {
    return integer_division(runtime, op, a, b);
  }
  return exact(runtime, overflowed, result);
}

Value float_arithmetic(Runtime& runtime, std::string_view op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "**") return std::pow(a, b);
  if (b == 0) runtime.fail("division by zero");
  if (op == "/") return a / b;
  const double remainder = std::fmod(a, b);
  if (op == "//") return std::floor(a / b);
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

Value concatenated_lists(Runtime& runtime, const List& a, const List& b) {
  runtime.charge((a.items.size() + b.items.size()) * sizeof(Value));
  std::vector<Value> items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  return runtime.list(std::move(items), a.is_tuple);
}

Value concatenated_texts(Runtime& runtime, const Text& a, const Text& b) {
  runtime.charge(a.footprint() + b.footprint());
  Text both;
  both.reserve(a.size() + b.size());
  both.append(a);
  both.append(b);
  return runtime.text(std::move(both));
}

// "ab" * 3, [0] * 3. Paid for before it is built: the count is the template's.
Value repeated(Runtime& runtime, const Value& value, int64_t count) {
  const auto n = static_cast<size_t>(std::max<int64_t>(count, 0));
  const size_t unit =
      is_text(value) ? text_of(value).footprint() : list_of(value).items.size() * sizeof(Value);
  if (unit == 0) return value;
  if (n > Limits::kWorkBytes / unit) runtime.charge(Limits::kWorkBytes + 1);
  runtime.charge(n * unit);
  if (is_text(value)) {
    Text all;
    for (size_t i = 0; i < n; ++i) all.append(text_of(value));
    return runtime.text(std::move(all));
  }
  std::vector<Value> items;
  for (size_t i = 0; i < n; ++i)
    items.insert(items.end(), list_of(value).items.begin(), list_of(value).items.end());
  return runtime.list(std::move(items), list_of(value).is_tuple);
}

bool is_sequence(const Value& value) { return is_text(value) || is<ListPtr>(value); }

bool equal_lists(Runtime& runtime, const List& a, const List& b) {
  if (a.is_tuple != b.is_tuple || a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!equal(runtime, a.items[i], b.items[i])) return false;
  }
  return true;
}

bool equal_dicts(Runtime& runtime, const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const Value* other = dict_find(runtime, b, key);
    if (!other || !equal(runtime, value, *other)) return false;
  }
  return true;
}

int sign(bool less, bool greater) { return greater - less; }

}  // namespace

Value arithmetic(Runtime& runtime, std::string_view op, const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) {
    const bool integers = is_integral(a) && is_integral(b) && op != "/";
    if (integers && !(op == "**" && integer_of(b) < 0)) {
      return integer_arithmetic(runtime, op, integer_of(a), integer_of(b));
    }
    return float_arithmetic(runtime, op, double_of(a), double_of(b));
  }
  if (op == "+" && is_text(a) && is_text(b)) return concatenated_texts(runtime, text_of(a), text_of(b));
  if (op == "+" && is<ListPtr>(a) && is<ListPtr>(b) && list_of(a).is_tuple == list_of(b).is_tuple) {
    return concatenated_lists(runtime, list_of(a), list_of(b));
  }
  if (op == "*" && is_sequence(a) && is_integral(b)) return repeated(runtime, a, integer_of(b));
  if (op == "*" && is_integral(a) && is_sequence(b)) return repeated(runtime, b, integer_of(a));
  if (op == "%" && is_text(a)) return percent_format(runtime, text_of(a), b);
  cannot_combine(runtime, op, a, b);
}

Value negated(Runtime& runtime, const Value& value) {
  if (is<double>(value)) return -std::get<double>(value);
  if (is_integral(value)) return integer_arithmetic(runtime, "-", 0, integer_of(value));
  runtime.fail(fmt::format("cannot negate {}", type_name(value)));
}

bool equal(Runtime& runtime, const Value& a, const Value& b) {
  runtime.charge(1);
  if (is_integral(a) && is_integral(b)) return integer_of(a) == integer_of(b);
  if (is_number(a) && is_number(b)) return double_of(a) == double_of(b);
  if (a.index() != b.index()) return false;
  if (is_undefined(a) || is<None>(a)) return true;
  if (is_text(a)) {
    if (text_of(a).size() != text_of(b).size()) return false;
    runtime.charge(text_of(a).size());
    return text_of(a).bytes() == text_of(b).bytes();
  }
  if (is<ListPtr>(a)) return equal_lists(runtime, list_of(a), list_of(b));
  if (is<DictPtr>(a)) return equal_dicts(runtime, dict_of(a), dict_of(b));
  return a == b;  // namespaces, loops, functions: the same object
}

int order(Runtime& runtime, const Value& a, const Value& b) {
  runtime.charge(1);
  if (is_integral(a) && is_integral(b))
    return sign(integer_of(a) < integer_of(b), integer_of(a) > integer_of(b));
  if (is_number(a) && is_number(b)) return sign(double_of(a) < double_of(b), double_of(a) > double_of(b));
  if (is_text(a) && is_text(b)) {
    runtime.charge(std::min(text_of(a).size(), text_of(b).size()));
    const int difference = text_of(a).bytes().compare(text_of(b).bytes());
    return sign(difference<0, difference> 0);
  }
  if (is<ListPtr>(a) && is<ListPtr>(b)) {
    const auto &x = list_of(a).items, &y = list_of(b).items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!equal(runtime, x[i], y[i])) return order(runtime, x[i], y[i]);
    }
    return sign(x.size() < y.size(), x.size() > y.size());
  }
  runtime.fail(fmt::format("{} and {} have no order", type_name(a), type_name(b)));
}

bool compare(Runtime& runtime, std::string_view op, const Value& a, const Value& b) {
  if (op == "==") return equal(runtime, a, b);
  if (op == "!=") return !equal(runtime, a, b);
  if (op == "in") return contains(runtime, b, a);
  if (op == "not in") return !contains(runtime, b, a);
  if (is_number(a) && is_number(b) && (std::isnan(double_of(a)) || std::isnan(double_of(b)))) return false;
  const int c = order(runtime, a, b);
  if (op == "<") return c < 0;
  if (op == ">") return c > 0;
  return op == "<=" ? c <= 0 : c >= 0;
}

bool contains(Runtime& runtime, const Value& container, const Value& wanted) {
  if (is_text(container)) {
    if (!is_text(wanted))
      runtime.fail(fmt::format("'in' a string needs a string, not {}", type_name(wanted)));
    runtime.charge(text_of(container).size() + text_of(wanted).size());
    return find_text(text_of(container).bytes(), text_of(wanted).bytes(), 0) != std::string::npos;
  }
  if (is<DictPtr>(container)) return dict_find(runtime, dict_of(container), wanted) != nullptr;
  const ListPtr items = iterate(runtime, container);
  for (const Value& candidate : items->items) {
    if (equal(runtime, candidate, wanted)) return true;
  }
  return false;
}

const Value* dict_find(Runtime& runtime, const Dict& dict, const Value& key) {
  runtime.charge(dict.entries.size());
  if (is_text(key)) return dict.find(text_of(key).bytes());
  for (const auto& [k, v] : dict.entries) {
    if (equal(runtime, k, key)) return &v;
  }
  return nullptr;
}

void dict_set(Runtime& runtime, std::vector<std::pair<Value, Value>>& entries, Value key, Value value) {
  if (is<ListPtr>(key) && !list_of(key).is_tuple) runtime.fail("a list cannot be a key");
  if (is<DictPtr>(key)) runtime.fail("a dict cannot be a key");
  for (auto& [k, v] : entries) {
    if (!equal(runtime, k, key)) continue;
    v = std::move(value);
    return;
  }
  entries.emplace_back(std::move(key), std::move(value));
}

}  // namespace liuli::jinja
