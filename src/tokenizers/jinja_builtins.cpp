#include "tokenizers/jinja_builtins.h"

#include <fmt/format.h>

#include <algorithm>

#include "tokenizers/jinja_format.h"
#include "tokenizers/jinja_operators.h"

namespace liuli::jinja {
namespace {

// Steps through "value chars? indent?": calls visit(index, name, optional) and tells whether a "*" ends the
// list.
template <typename Visit>
bool visit_parameters(std::string_view parameters, Visit visit) {
  size_t index = 0;
  while (!parameters.empty()) {
    const size_t blank = std::min(parameters.find(' '), parameters.size());
    std::string_view name = parameters.substr(0, blank);
    parameters.remove_prefix(std::min(blank + 1, parameters.size()));
    if (name == "*") return true;
    const bool optional = name.back() == '?';
    if (optional) name.remove_suffix(1);
    visit(index++, name, optional);
  }
  return false;
}

[[noreturn]] void wrong_arguments(Runtime& runtime, const Builtin& builtin, const std::string& what) {
  runtime.fail(fmt::format("{}: {}", builtin.name, what));
}

Bound bind(Runtime& runtime, const Builtin& builtin, const Call& call) {
  Bound bound{builtin, call};
  size_t named_used = 0, n_parameters = 0;
  const bool takes_more =
      visit_parameters(builtin.parameters, [&](size_t i, std::string_view name, bool optional) {
        n_parameters = i + 1;
        if (i < call.positional.size()) {
          bound.values[i] = &call.positional[i];
          return;
        }
        for (const auto& [given, value] : call.named) {
          if (given != name) continue;
          bound.values[i] = &value;
          ++named_used;
          return;
        }
        if (!optional)
          wrong_arguments(runtime, builtin, fmt::format("argument '{}' is missing", std::string(name)));
      });
  if (takes_more) return bound;
  if (call.positional.size() > n_parameters) {
    wrong_arguments(runtime, builtin,
                    fmt::format("{} arguments given, it takes {}", call.positional.size(), n_parameters));
  }
  if (named_used < call.named.size()) {
    wrong_arguments(runtime, builtin,
                    fmt::format("takes '{}'; a named argument is unknown or given twice",
                                std::string(builtin.parameters)));
  }
  return bound;
}

}  // namespace

Value invoke(Runtime& runtime, const Builtin& builtin, const Call& call) {
  return builtin.function(runtime, bind(runtime, builtin, call));
}

const Builtin* BuiltinTable::find(std::string_view name) const {
  const Builtin* found = std::find_if(begin, end, [&](const Builtin& b) { return b.name == name; });
  return found == end ? nullptr : found;
}

const Builtin* find_filter(std::string_view name) {
  for (const BuiltinTable& table : {text_filters(), sequence_filters(), value_filters()}) {
    if (const Builtin* found = table.find(name)) return found;
  }
  return nullptr;
}

const Builtin* find_test(std::string_view name) { return tests().find(name); }

const Text& text_argument(Runtime& runtime, const Bound& bound, size_t i) {
  if (!is_text(bound[i])) {
    wrong_arguments(runtime, bound.builtin, fmt::format("expected a string, not {}", type_name(bound[i])));
  }
  return text_of(bound[i]);
}

int64_t integer_argument(Runtime& runtime, const Bound& bound, size_t i, int64_t otherwise) {
  if (!bound.given(i)) return otherwise;
  if (!is_integral(bound[i])) {
    wrong_arguments(runtime, bound.builtin, fmt::format("expected an integer, not {}", type_name(bound[i])));
  }
  return integer_of(bound[i]);
}

bool flag_argument(const Bound& bound, size_t i, bool otherwise) {
  return bound.given(i) ? is_true(bound[i]) : otherwise;
}

}  // namespace liuli::jinja
