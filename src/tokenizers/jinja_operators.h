// Operators of the template language, with Python's meaning.
#pragma once
#include <string_view>
#include <vector>

#include "tokenizers/jinja_runtime.h"

namespace liuli::jinja {

/// a op b, op one of + - * / // % **. Errors: invalid_argument (types that do not combine, division by zero),
/// unsupported (integers beyond 64 bits).
Value arithmetic(Runtime& runtime, std::string_view op, const Value& a, const Value& b);
Value negated(Runtime& runtime, const Value& value);

bool equal(Runtime& runtime, const Value& a, const Value& b);
/// < 0, 0 or > 0. Errors: invalid_argument when the types have no order.
int order(Runtime& runtime, const Value& a, const Value& b);
/// a op b, op one of == != < > <= >= in, not in.
bool compare(Runtime& runtime, std::string_view op, const Value& a, const Value& b);
bool contains(Runtime& runtime, const Value& container, const Value& item);

/// a.name and a[key]: Undefined when missing. Errors: invalid_argument when `a` itself is undefined.
Value attribute(Runtime& runtime, const Value& object, std::string_view name);
Value item(Runtime& runtime, const Value& object, const Value& key);
/// a[begin:end:step]; None for an absent part.
Value slice(Runtime& runtime, const Value& object, const Value& begin, const Value& end, const Value& step);
/// "a.b.0" of a value: the attribute= of map, join, sort …
Value attribute_path(Runtime& runtime, const Value& object, const Value& path);

/// What iterating gives: items, keys, characters. Errors: invalid_argument (None, numbers …).
ListPtr iterate(Runtime& runtime, const Value& value);
int64_t length(Runtime& runtime, const Value& value);

/// First value whose key equals; null if none.
const Value* dict_find(Runtime& runtime, const Dict& dict, const Value& key);
/// Sets or adds.
void dict_set(Runtime& runtime, std::vector<std::pair<Value, Value>>& entries, Value key, Value value);

}  // namespace liuli::jinja
