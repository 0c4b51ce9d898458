// Tests: what may stand behind `is`.
#include <fmt/format.h>

#include <cmath>

#include "tokenizers/jinja_builtins.h"
#include "tokenizers/jinja_operators.h"

namespace liuli::jinja {
namespace {

bool is_container(const Value& v) { return is<ListPtr>(v) || is<DictPtr>(v) || is_text(v); }

Value defined(Runtime&, const Bound& a) { return !is_undefined(a[0]); }
Value undefined(Runtime&, const Bound& a) { return is_undefined(a[0]); }
Value none(Runtime&, const Bound& a) { return is<None>(a[0]); }
Value string(Runtime&, const Bound& a) { return is_text(a[0]); }
Value mapping(Runtime&, const Bound& a) { return is<DictPtr>(a[0]); }
Value sequence(Runtime&, const Bound& a) { return is_container(a[0]) || is_undefined(a[0]); }
Value number(Runtime&, const Bound& a) { return is_number(a[0]); }
Value integer(Runtime&, const Bound& a) { return is<int64_t>(a[0]); }
Value floating(Runtime&, const Bound& a) { return is<double>(a[0]); }
Value boolean(Runtime&, const Bound& a) { return is<bool>(a[0]); }
Value true_test(Runtime&, const Bound& a) { return is<bool>(a[0]) && std::get<bool>(a[0]); }
Value false_test(Runtime&, const Bound& a) { return is<bool>(a[0]) && !std::get<bool>(a[0]); }
Value callable(Runtime&, const Bound& a) { return is<std::shared_ptr<const Callable>>(a[0]); }

Value iterable(Runtime&, const Bound& a) {
  return is_container(a[0]) || is_undefined(a[0]) || is<std::shared_ptr<Loop>>(a[0]);
}

Value remainder_is(Runtime& rt, const Bound& a, const Value& divisor, int64_t wanted) {
  return equal(rt, arithmetic(rt, "%", a[0], divisor), wanted);
}
Value odd(Runtime& rt, const Bound& a) { return remainder_is(rt, a, int64_t{2}, 1); }
Value even(Runtime& rt, const Bound& a) { return remainder_is(rt, a, int64_t{2}, 0); }
Value divisible(Runtime& rt, const Bound& a) { return remainder_is(rt, a, a[1], 0); }

Value equal_to(Runtime& rt, const Bound& a) { return equal(rt, a[0], a[1]); }
Value not_equal(Runtime& rt, const Bound& a) { return !equal(rt, a[0], a[1]); }
Value less(Runtime& rt, const Bound& a) { return compare(rt, "<", a[0], a[1]); }
Value at_most(Runtime& rt, const Bound& a) { return compare(rt, "<=", a[0], a[1]); }
Value greater(Runtime& rt, const Bound& a) { return compare(rt, ">", a[0], a[1]); }
Value at_least(Runtime& rt, const Bound& a) { return compare(rt, ">=", a[0], a[1]); }
Value in(Runtime& rt, const Bound& a) { return contains(rt, a[1], a[0]); }

// Python's `is`: the same object. Small values are one object each; strings and lists are compared by place.
Value same_as(Runtime&, const Bound& a) {
  if (a[0].index() != a[1].index()) return false;
  return a[0] == a[1];
}

bool cased_as(Runtime& rt, const Value& value, bool (*wanted)(uint32_t), bool (*unwanted)(uint32_t)) {
  if (!is_text(value)) rt.fail(fmt::format("a test of case needs a string, not {}", type_name(value)));
  const std::string& bytes = text_of(value).bytes();
  rt.charge(bytes.size());
  bool any = false;
  for (size_t i = 0; i < bytes.size(); i += character_size(bytes, i)) {
    if (unwanted(code_point(bytes, i))) return false;
    any = any || wanted(code_point(bytes, i));
  }
  return any;
}
Value upper(Runtime& rt, const Bound& a) { return cased_as(rt, a[0], is_upper, is_lower); }
Value lower(Runtime& rt, const Bound& a) { return cased_as(rt, a[0], is_lower, is_upper); }

Value filter(Runtime& rt, const Bound& a) { return find_filter(text_argument(rt, a, 0).bytes()) != nullptr; }
Value test(Runtime& rt, const Bound& a) { return find_test(text_argument(rt, a, 0).bytes()) != nullptr; }

constexpr Builtin kTests[] = {
    {"defined", "value", defined},
    {"undefined", "value", undefined},
    {"none", "value", none},
    {"string", "value", string},
    {"mapping", "value", mapping},
    {"iterable", "value", iterable},
    {"sequence", "value", sequence},
    {"number", "value", number},
    {"integer", "value", integer},
    {"float", "value", floating},
    {"boolean", "value", boolean},
    {"true", "value", true_test},
    {"false", "value", false_test},
    {"callable", "value", callable},
    {"odd", "value", odd},
    {"even", "value", even},
    {"divisibleby", "value num", divisible},
    {"equalto", "a b", equal_to},
    {"eq", "a b", equal_to},
    {"ne", "a b", not_equal},
    {"lt", "a b", less},
    {"lessthan", "a b", less},
    {"le", "a b", at_most},
    {"gt", "a b", greater},
    {"greaterthan", "a b", greater},
    {"ge", "a b", at_least},
    {"==", "a b", equal_to},
    {"!=", "a b", not_equal},
    {"<", "a b", less},
    {"<=", "a b", at_most},
    {">", "a b", greater},
    {">=", "a b", at_least},
    {"in", "value seq", in},
    {"sameas", "value other", same_as},
    {"upper", "value", upper},
    {"lower", "value", lower},
    {"filter", "value", filter},
    {"test", "value", test},
};

}  // namespace

BuiltinTable tests() { return {std::begin(kTests), std::end(kTests)}; }

}  // namespace liuli::jinja
