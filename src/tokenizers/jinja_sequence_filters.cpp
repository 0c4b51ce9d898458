// Filters over lists, dicts and other things that can be iterated. All give lists, where the original may be
// lazy.
#include <fmt/format.h>

#include <algorithm>

#include "tokenizers/jinja_builtins.h"
#include "tokenizers/jinja_format.h"
#include "tokenizers/jinja_operators.h"

namespace liuli::jinja {
namespace {

Value length_of(Runtime& rt, const Bound& a) { return length(rt, a[0]); }

Value first(Runtime& rt, const Bound& a) {
  const ListPtr items = iterate(rt, a[0]);
  return items->items.empty() ? Value(Undefined{"first"}) : items->items.front();
}

Value last(Runtime& rt, const Bound& a) {
  const ListPtr items = iterate(rt, a[0]);
  return items->items.empty() ? Value(Undefined{"last"}) : items->items.back();
}

Value list(Runtime& rt, const Bound& a) {
  const ListPtr items = iterate(rt, a[0]);
  return items->is_tuple ? rt.list(items->items) : Value(items);
}

Value items(Runtime& rt, const Bound& a) {
  if (is_undefined(a[0])) return rt.list({});
  if (!is<DictPtr>(a[0])) rt.fail(fmt::format("items: expected a dict, not {}", type_name(a[0])));
  std::vector<Value> pairs;
  for (const auto& [key, value] : dict_of(a[0]).entries) pairs.push_back(rt.list({key, value}, true));
  return rt.list(std::move(pairs));
}

Value join(Runtime& rt, const Bound& a) {
  const ListPtr items = iterate(rt, a[0]);
  const TextPtr separator = a.given(1) ? to_text(rt, a[1]) : std::make_shared<const Text>();
  if (!a.given(2) || is<None>(a[2])) return joined(rt, *separator, items->items);
  std::vector<Value> parts;
  for (const Value& item : items->items) parts.push_back(attribute_path(rt, item, a[2]));
  return joined(rt, *separator, parts);
}

Value reverse(Runtime& rt, const Bound& a) {
  if (is_text(a[0])) return slice(rt, a[0], None{}, None{}, int64_t{-1});
  const ListPtr items = iterate(rt, a[0]);
  return rt.list({items->items.rbegin(), items->items.rend()});
}

// What sorting and comparing without regard to case looks at.
Value sort_key(Runtime& rt, const Value& value, bool case_sensitive) {
  return is_text(value) && !case_sensitive ? in_case(rt, text_of(value), Case::lower) : value;
}

using Keyed = std::pair<Value, Value>;  // key, value

Value sorted(Runtime& rt, std::vector<Keyed> keyed, bool reversed) {
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& x, const Keyed& y) {
    return reversed ? order(rt, y.first, x.first) < 0 : order(rt, x.first, y.first) < 0;
  });
  std::vector<Value> values;
  for (Keyed& pair : keyed) values.push_back(std::move(pair.second));
  return rt.list(std::move(values));
}

Value attribute_or_self(Runtime& rt, const Bound& a, size_t i, const Value& item) {
  return a.given(i) && !is<None>(a[i]) ? attribute_path(rt, item, a[i]) : item;
}

Value sort(Runtime& rt, const Bound& a) {
  std::vector<Keyed> keyed;
  const ListPtr items = iterate(rt, a[0]);
  for (const Value& item : items->items) {
    keyed.emplace_back(sort_key(rt, attribute_or_self(rt, a, 3, item), flag_argument(a, 2, false)), item);
  }
  return sorted(rt, std::move(keyed), flag_argument(a, 1, false));
}

// dictsort(case_sensitive=false, by='key', reverse=false)
Value dictsort(Runtime& rt, const Bound& a) {
  if (!is<DictPtr>(a[0])) rt.fail(fmt::format("dictsort: expected a dict, not {}", type_name(a[0])));
  const std::string by = a.given(2) ? text_argument(rt, a, 2).bytes() : "key";
  if (by != "key" && by != "value") rt.fail(fmt::format("dictsort: by is 'key' or 'value', not '{}'", by));
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : dict_of(a[0]).entries) {
    keyed.emplace_back(sort_key(rt, by == "key" ? key : value, flag_argument(a, 1, false)),
                       rt.list({key, value}, true));
  }
  return sorted(rt, std::move(keyed), flag_argument(a, 3, false));
}

Value unique(Runtime& rt, const Bound& a) {
  std::vector<Value> seen, kept;
  const ListPtr items = iterate(rt, a[0]);
  for (const Value& item : items->items) {
    const Value key = sort_key(rt, attribute_or_self(rt, a, 2, item), flag_argument(a, 1, false));
    const bool is_new =
        std::none_of(seen.begin(), seen.end(), [&](const Value& s) { return equal(rt, s, key); });
    if (!is_new) continue;
    seen.push_back(key);
    kept.push_back(item);
  }
  return rt.list(std::move(kept));
}

Value sum(Runtime& rt, const Bound& a) {
  Value total = a.given(2) ? a[2] : Value(int64_t{0});
  const ListPtr items = iterate(rt, a[0]);
  for (const Value& item : items->items) {
    total = arithmetic(rt, "+", total, attribute_or_self(rt, a, 1, item));
  }
  return total;
}

Value extreme(Runtime& rt, const Bound& a, int wanted) {
  Value best = Undefined{"item"}, best_key = Undefined{"item"};
  bool found = false;
  const ListPtr items = iterate(rt, a[0]);
  for (const Value& item : items->items) {
    Value key = sort_key(rt, attribute_or_self(rt, a, 2, item), flag_argument(a, 1, false));
    if (found && order(rt, key, best_key) != wanted) continue;
    best = item;
    best_key = std::move(key);
    found = true;
  }
  return best;
}

Value min(Runtime& rt, const Bound& a) { return extreme(rt, a, -1); }
Value max(Runtime& rt, const Bound& a) { return extreme(rt, a, 1); }

// Arguments i… of a call, handed on to the filter or test it names, applied to `subject`.
Call handed_on(const Bound& a, size_t i, Value subject) {
  Call call;
  call.positional.push_back(std::move(subject));
  for (; i < a.call.positional.size(); ++i) call.positional.push_back(a.call.positional[i]);
  call.named = a.call.named;
  return call;
}

const Value* named(const Bound& a, std::string_view name) {
  for (const auto& [given, value] : a.call.named) {
    if (given == name) return &value;
  }
  return nullptr;
}

const Builtin& by_name(Runtime& rt, const Bound& a, size_t i, const Builtin* (*find)(std::string_view)) {
  if (i >= a.call.positional.size() || !is_text(a.call.positional[i])) {
    rt.fail(fmt::format("{}: expected the name of a filter or test", a.builtin.name));
  }
  const std::string& name = text_of(a.call.positional[i]).bytes();
  const Builtin* found = find(name);
  if (!found) {
    rt.fail(fmt::format("{}: unknown filter or test '{}'", a.builtin.name, name.substr(0, 40)),
            ErrorCode::unsupported);
  }
  return *found;
}

// map(attribute='a.b', default=…) or map('filter', arguments…)
Value map(Runtime& rt, const Bound& a) {
  std::vector<Value> mapped;
  const Value* path = named(a, "attribute");
  const Value* otherwise = named(a, "default");
  const ListPtr items = iterate(rt, a[0]);
  const Builtin* filter = path ? nullptr : &by_name(rt, a, 1, find_filter);
  for (const Value& item : items->items) {
    rt.step();
    Value value = path ? attribute_path(rt, item, *path) : invoke(rt, *filter, handed_on(a, 2, item));
    if (path && otherwise && is_undefined(value)) value = *otherwise;
    mapped.push_back(std::move(value));
  }
  return rt.list(std::move(mapped));
}

// Items for which the test named at argument i (none: truth) of the item, or of its attribute, is `wanted`.
Value chosen(Runtime& rt, const Bound& a, bool by_attribute, bool wanted) {
  const size_t i = by_attribute ? 2 : 1;
  if (by_attribute && a.call.positional.size() < 2) {
    rt.fail(fmt::format("{}: expected the name of an attribute", a.builtin.name));
  }
  const Builtin* test = a.call.positional.size() > i ? &by_name(rt, a, i, find_test) : nullptr;
  std::vector<Value> kept;
  const ListPtr items = iterate(rt, a[0]);
  for (const Value& item : items->items) {
    rt.step();
    const Value subject = by_attribute ? attribute_path(rt, item, a.call.positional[1]) : item;
    const bool holds = test ? is_true(invoke(rt, *test, handed_on(a, i + 1, subject))) : is_true(subject);
    if (holds == wanted) kept.push_back(item);
  }
  return rt.list(std::move(kept));
}

Value select(Runtime& rt, const Bound& a) { return chosen(rt, a, false, true); }
Value reject(Runtime& rt, const Bound& a) { return chosen(rt, a, false, false); }
Value selectattr(Runtime& rt, const Bound& a) { return chosen(rt, a, true, true); }
Value rejectattr(Runtime& rt, const Bound& a) { return chosen(rt, a, true, false); }

constexpr Builtin kFilters[] = {
    {"length", "obj", length_of},
    {"count", "obj", length_of},
    {"first", "seq", first},
    {"last", "seq", last},
    {"list", "value", list},
    {"items", "value", items},
    {"join", "value d? attribute?", join},
    {"reverse", "value", reverse},
    {"sort", "value reverse? case_sensitive? attribute?", sort},
    {"dictsort", "value case_sensitive? by? reverse?", dictsort},
    {"unique", "value case_sensitive? attribute?", unique},
    {"sum", "iterable attribute? start?", sum},
    {"min", "value case_sensitive? attribute?", min},
    {"max", "value case_sensitive? attribute?", max},
    {"map", "value *", map},
    {"select", "value *", select},
    {"reject", "value *", reject},
    {"selectattr", "value *", selectattr},
    {"rejectattr", "value *", rejectattr},
};

}  // namespace

BuiltinTable sequence_filters() { return {std::begin(kFilters), std::end(kFilters)}; }

}  // namespace liuli::jinja
