// Values of a template program. Containers are immutable (as in the sandbox that templates are written for),
// so values share them freely and the only thing that can change is a namespace.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tokenizers/jinja_text.h"

namespace liuli::jinja {

class Runtime;
struct Bound;
struct Builtin;
struct Statement;
struct Scope;
struct List;
struct Dict;
struct Namespace;
struct Loop;
struct Callable;

/// A missing variable, attribute or item: prints nothing, is false, iterates over nothing; its attributes are
/// errors.
struct Undefined {
  std::string_view name;  ///< what was asked for; points into the program or a literal

  friend bool operator==(const Undefined&, const Undefined&) { return true; }
};
struct None {
  friend bool operator==(None, None) { return true; }
};

using TextPtr = std::shared_ptr<const Text>;
using ListPtr = std::shared_ptr<const List>;
using DictPtr = std::shared_ptr<const Dict>;

/// One value. Namespaces belong to the interpreter (they may refer to themselves); all else is shared and
/// acyclic.
using Value = std::variant<Undefined, None, bool, int64_t, double, TextPtr, ListPtr, DictPtr, Namespace*,
                           std::shared_ptr<Loop>, std::shared_ptr<const Callable>>;

struct List {
  std::vector<Value> items;
  bool is_tuple = false;
  int depth = 1;  ///< nesting of containers, bounded so that walking a value cannot exhaust the stack
};

/// In insertion order, as Python's: templates print tools key by key.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  int depth = 1;

  const Value* find(std::string_view key) const;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;

  const Value* find(std::string_view name) const;
  void set(std::string_view name, Value value);
};

/// The variable `loop` of one running for statement.
struct Loop {
  ListPtr items;
  size_t index = 0;
};

/// A macro with the scope it was defined in, a builtin function, or a method bound to its value.
struct Callable {
  const Statement* macro = nullptr;
  Scope* scope = nullptr;
  uint64_t scope_id = 0;  ///< scopes die before values do; a call checks that this one still lives
  const Builtin* builtin = nullptr;
  Value self = Undefined{};
  bool has_self = false;
};

/// "string", "list", "None" …: the type as an error message names it.
const char* type_name(const Value& value);
bool is_true(const Value& value);
/// Container nesting below a value: 0 for a number or a text.
int depth_of(const Value& value);

template <typename T>
bool is(const Value& value) {
  return std::holds_alternative<T>(value);
}
inline bool is_undefined(const Value& v) { return is<Undefined>(v); }
inline bool is_text(const Value& v) { return is<TextPtr>(v); }
inline bool is_number(const Value& v) { return is<bool>(v) || is<int64_t>(v) || is<double>(v); }
inline const Text& text_of(const Value& v) { return *std::get<TextPtr>(v); }
inline const List& list_of(const Value& v) { return *std::get<ListPtr>(v); }
inline const Dict& dict_of(const Value& v) { return *std::get<DictPtr>(v); }
/// Python counts a bool as an integer; integer_of requires is_integral.
inline bool is_integral(const Value& v) { return is<bool>(v) || is<int64_t>(v); }
inline int64_t integer_of(const Value& v) { return is<bool>(v) ? std::get<bool>(v) : std::get<int64_t>(v); }
/// Any number as a double; requires is_number.
double double_of(const Value& value);

}  // namespace liuli::jinja
