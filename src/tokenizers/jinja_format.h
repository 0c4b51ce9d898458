// Values as text: what {{ }} prints, Python's repr inside lists, JSON.
#pragma once
#include <string>

#include "tokenizers/jinja_runtime.h"

namespace liuli::jinja {

/// str(value): appends what {{ value }} prints. Bytes of user strings stay marked, also inside lists and
/// dicts.
void print(Runtime& runtime, const Value& value, Text& out);
/// str(value) as a text of its own; the value itself if it is one.
TextPtr to_text(Runtime& runtime, const Value& value);

/// Python's json.dumps.
struct JsonStyle {
  std::string indent;  ///< of one level; only with pretty
  bool pretty = false;
  bool ascii = false;      ///< escape everything beyond ASCII
  bool sort_keys = false;  ///< else in order of insertion
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
/// Errors: invalid_argument (undefined, functions and namespaces have no JSON).
void write_json(Runtime& runtime, const Value& value, const JsonStyle& style, Text& out);

/// "…" % values with %s %d %i %r %%. Errors: unsupported (other conversions), invalid_argument (count or
/// type).
Value percent_format(Runtime& runtime, const Text& pattern, const Value& values);

/// Python's str(float): shortest digits that read back the same, "1.0", "1e+16", "inf".
std::string float_text(double value);

}  // namespace liuli::jinja
