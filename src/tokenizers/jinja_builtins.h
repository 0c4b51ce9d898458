// The functions a template may call: filters, tests, methods of strings, dicts, lists and loops, and global
// functions. Each is a row of a table: name, parameters, function.
#pragma once
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizers/jinja_characters.h"
#include "tokenizers/jinja_runtime.h"

namespace liuli::jinja {

/// Arguments as the template wrote them.
struct Call {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
};

/// Arguments in the order of a builtin's parameters; null where the call gave none.
struct Bound {
  const Builtin& builtin;
  const Call& call;
  std::array<const Value*, 6> values{};

  bool given(size_t i) const { return values[i] != nullptr; }
  const Value& operator[](size_t i) const { return *values[i]; }
};

struct Builtin {
  std::string_view name;
  /// Names, blanks between them; the first is what a filter, test or method is applied to and always given; a
  /// "?" after a name makes it optional; a "*" at the end takes all further arguments, found in Bound::call.
  std::string_view parameters;
  Value (*function)(Runtime&, const Bound&);
};

/// Binds and runs. Errors: invalid_argument (too many, unknown or missing arguments).
Value invoke(Runtime& runtime, const Builtin& builtin, const Call& call);

/// Null for a name that does not exist (or that Liuli does not have).
const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_function(std::string_view name);
/// Errors: unsupported (a method the language has and Liuli has not), invalid_argument (one that would change
/// a list).
const Builtin* find_method(const Runtime& runtime, const Value& self, std::string_view name);

/// Parts of the tables, each in its own file.
struct BuiltinTable {
  const Builtin* begin;
  const Builtin* end;
  const Builtin* find(std::string_view name) const;
};
BuiltinTable text_filters();
BuiltinTable sequence_filters();
BuiltinTable value_filters();
BuiltinTable tests();
BuiltinTable text_methods();

/// Checked access to an argument. Errors: invalid_argument naming builtin, type wanted and type found.
const Text& text_argument(Runtime& runtime, const Bound& bound, size_t i);
int64_t integer_argument(Runtime& runtime, const Bound& bound, size_t i, int64_t otherwise);
bool flag_argument(const Bound& bound, size_t i, bool otherwise);

/// Calls that text filters and text methods share; `limit` counts replacements (negative: all).
Value replaced(Runtime& runtime, const Text& text, const Text& from, const Text& to, int64_t limit);
Value in_case(Runtime& runtime, const Text& text, Case to);
Value capitalized(Runtime& runtime, const Text& text);
/// Strips white space, or the characters of `characters`, at the chosen ends.
Value stripped(Runtime& runtime, const Text& text, const Text* characters, bool left, bool right);
Value joined(Runtime& runtime, const Text& separator, const std::vector<Value>& items);
std::vector<Text> split_lines(Runtime& runtime, const Text& text, bool keep_ends);

}  // namespace liuli::jinja
