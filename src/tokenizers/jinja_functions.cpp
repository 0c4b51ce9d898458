// Global functions, and the methods of dicts, lists and loops.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "tokenizers/jinja_builtins.h"
#include "tokenizers/jinja_format.h"
#include "tokenizers/jinja_operators.h"

namespace liuli::jinja {
namespace {

Value get(Runtime& rt, const Bound& a) {
  const Value* found = dict_find(rt, dict_of(a[0]), a[1]);
  if (found) return *found;
  return a.given(2) ? a[2] : Value(None{});
}

Value items(Runtime& rt, const Bound& a) { return invoke(rt, *find_filter("items"), {{a[0]}, {}}); }
Value keys(Runtime& rt, const Bound& a) { return iterate(rt, a[0]); }

Value values(Runtime& rt, const Bound& a) {
  std::vector<Value> all;
  for (const auto& entry : dict_of(a[0]).entries) all.push_back(entry.second);
  return rt.list(std::move(all));
}

Value copy(Runtime&, const Bound& a) { return a[0]; }

Value index(Runtime& rt, const Bound& a) {
  const auto& all = list_of(a[0]).items;
  const auto found = std::find_if(all.begin(), all.end(), [&](const Value& v) { return equal(rt, v, a[1]); });
  if (found == all.end()) rt.fail("index: the item is not in the list");
  return static_cast<int64_t>(found - all.begin());
}

Value count(Runtime& rt, const Bound& a) {
  const auto& all = list_of(a[0]).items;
  return static_cast<int64_t>(
      std::count_if(all.begin(), all.end(), [&](const Value& v) { return equal(rt, v, a[1]); }));
}

Value cycle(Runtime& rt, const Bound& a) {
  const auto& choices = a.call.positional;  // [0] is the loop
  if (choices.size() < 2) rt.fail("loop.cycle: nothing to cycle through");
  return choices[1 + std::get<std::shared_ptr<Loop>>(a[0])->index % (choices.size() - 1)];
}

Value range(Runtime& rt, const Bound& a) {
  int64_t begin = integer_argument(rt, a, 0, 0), end = integer_argument(rt, a, 1, 0);
  const int64_t step = integer_argument(rt, a, 2, 1);
  if (!a.given(1)) std::swap(begin, end);
  if (step == 0) rt.fail("range: the step is zero");
  std::vector<Value> numbers;
  while (step > 0 ? begin < end : begin > end) {
    rt.charge(sizeof(Value));
    numbers.emplace_back(begin);
    if (__builtin_add_overflow(begin, step, &begin)) break;
  }
  return rt.list(std::move(numbers));
}

Value dict(Runtime& rt, const Bound& a) {
  const auto& positional = a.call.positional;
  if (positional.size() > 1 || (positional.size() == 1 && !is<DictPtr>(positional[0]))) {
    rt.fail("dict: expected named arguments or one dict");
  }
  std::vector<std::pair<Value, Value>> entries;
  if (!positional.empty()) {
    rt.charge(dict_of(positional[0]).entries.size() * sizeof(Value));
    entries = dict_of(positional[0]).entries;
  }
  for (const auto& [name, value] : a.call.named)
    dict_set(rt, entries, rt.text(std::string(name), false), value);
  return rt.dict(std::move(entries));
}

Value make_namespace(Runtime& rt, const Bound& a) {
  Namespace* space = rt.make_namespace();
  for (const Value& initial : a.call.positional) {
    if (!is<DictPtr>(initial)) rt.fail(fmt::format("namespace: expected a dict, not {}", type_name(initial)));
    for (const auto& [key, value] : dict_of(initial).entries) {
      rt.set_attribute(*space, to_text(rt, key)->bytes(), value);
    }
  }
  for (const auto& [name, value] : a.call.named) rt.set_attribute(*space, name, value);
  return space;
}

Value raise_exception(Runtime& rt, const Bound& a) {
  std::string words = to_text(rt, a[0])->bytes().substr(0, 1000);
  std::replace(words.begin(), words.end(), '\n', ' ');
  rt.fail(words);
}

// The local date, by strftime's conversions that only look at the date and the time.
Value strftime_now(Runtime& rt, const Bound& a) {
  const std::string pattern = text_argument(rt, a, 0).bytes().substr(0, 1000);
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      out += pattern[i];
      continue;
    }
    char conversion[] = {'%', ++i < pattern.size() ? pattern[i] : '\0', '\0'};
    if (conversion[1] == '\0' ||
        std::string_view("aAbBcdDeFHIjmMnpRStTuUVwWxXyYZ%").find(conversion[1]) == std::string::npos) {
      rt.fail(
          fmt::format("strftime_now: conversion '%{}' is not supported", conversion[1] ? conversion + 1 : ""),
          ErrorCode::unsupported);
    }
    char piece[100];
    out.append(piece, std::strftime(piece, sizeof piece, conversion, &local));
  }
  return rt.text(std::move(out), text_argument(rt, a, 0).from_user());
}

constexpr Builtin kDictMethods[] = {
    {"get", "self key default?", get}, {"items", "self", items}, {"keys", "self", keys},
    {"values", "self", values},        {"copy", "self", copy},
};
constexpr Builtin kListMethods[] = {
    {"index", "self value", index},
    {"count", "self value", count},
    {"copy", "self", copy},
};
constexpr Builtin kLoopMethods[] = {{"cycle", "self *", cycle}};

constexpr Builtin kFunctions[] = {
    {"range", "start stop? step?", range},    {"dict", "*", dict},
    {"namespace", "*", make_namespace},       {"raise_exception", "message", raise_exception},
    {"strftime_now", "format", strftime_now},
};

// Methods that exist but would change the object: the sandbox refuses them.
constexpr std::string_view kDictMutators[] = {"pop", "clear", "update", "popitem", "setdefault"};
constexpr std::string_view kListMutators[] = {"append", "extend", "insert", "pop",
                                              "remove", "clear",  "sort",   "reverse"};
constexpr std::string_view kUnsupported[] = {
    "center",  "encode", "expandtabs", "format_map", "isascii",  "isidentifier", "isprintable",
    "istitle", "ljust",  "rindex",     "rjust",      "swapcase", "translate"};

template <size_t n>
bool is_one_of(std::string_view name, const std::string_view (&names)[n]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

const Builtin* find_function(std::string_view name) {
  return BuiltinTable{std::begin(kFunctions), std::end(kFunctions)}.find(name);
}

const Builtin* find_method(const Runtime& runtime, const Value& self, std::string_view name) {
  if (is_text(self)) {
    if (is_one_of(name, kUnsupported)) {
      runtime.fail(fmt::format("the string method '{}' is not supported", std::string(name)),
                   ErrorCode::unsupported);
    }
    return text_methods().find(name);
  }
  if (is<std::shared_ptr<Loop>>(self))
    return BuiltinTable{std::begin(kLoopMethods), std::end(kLoopMethods)}.find(name);
  const bool is_dict = is<DictPtr>(self);
  if (!is_dict && !is<ListPtr>(self)) return nullptr;
  // A dict with a key of that name gives the key: friendlier than the sandbox, and changes nothing either.
  const bool mutates =
      is_dict ? is_one_of(name, kDictMutators) && !dict_of(self).find(name) : is_one_of(name, kListMutators);
  if (mutates) runtime.fail(fmt::format("'{}' would change a {}", std::string(name), type_name(self)));
  return is_dict ? BuiltinTable{std::begin(kDictMethods), std::end(kDictMethods)}.find(name)
                 : BuiltinTable{std::begin(kListMethods), std::end(kListMethods)}.find(name);
}

}  // namespace liuli::jinja
