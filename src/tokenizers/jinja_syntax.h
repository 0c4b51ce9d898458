// The syntax tree of a template, and the parser that builds it.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/jinja_value.h"

namespace liuli::jinja {

struct Builtin;
struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

enum class ExpressionKind : uint8_t {
  constant,     ///< constant
  name,         ///< name
  list,         ///< children: items
  tuple,        ///< children: items
  dict,         ///< children: key, value, key, value …
  attribute,    ///< children[0].name
  item,         ///< children[0][children[1]]
  slice,        ///< children[0][begin : end : step]; absent parts are null
  call,         ///< children[0](children[1…], named…)
  filter,       ///< children[0] | name(children[1…], named…), resolved in builtin
  test,         ///< children[0] is name(children[1…], named…), resolved in builtin
  negate,       ///< -children[0]
  plus,         ///< +children[0]
  logical_not,  ///< not children[0]
  logical_and,  ///< children[0] and children[1]
  logical_or,   ///< children[0] or children[1]
  conditional,  ///< children[0] if children[1] else children[2] (may be null)
  compare,      ///< children[0] operators[0] children[1] operators[1] children[2] …
  arithmetic,   ///< children[0] name children[1], name one of + - * / // % **
  concat,       ///< children[0] ~ children[1] ~ …
};

struct NamedArgument {
  std::string name;
  ExpressionPtr value;
};

struct Expression {
  ExpressionKind kind;
  int line = 0;
  int height = 1;  ///< of this tree; bounded, so that walking it cannot exhaust the stack
  std::string name;
  Value constant = Undefined{};
  std::vector<ExpressionPtr> children;
  std::vector<NamedArgument> named;
  std::vector<std::string> operators;
  const Builtin* builtin = nullptr;
};

/// What set and for assign to: a name, an attribute of a namespace, or parts to unpack into.
struct Target {
  std::string name;
  std::string attribute;
  std::vector<Target> parts;
};

struct Parameter {
  std::string name;
  ExpressionPtr value;  ///< null: none
};

struct Statement;
using Body = std::vector<Statement>;

struct Branch {
  ExpressionPtr condition;  ///< null: else
  Body body;
};

enum class StatementKind : uint8_t {
  text,          ///< constant
  output,        ///< {{ expression }}
  set,           ///< target = expression
  set_block,     ///< target = what body prints, through the filter in expression if there is one
  if_,           ///< branches
  for_,          ///< target in expression, if condition: body; else_body when nothing was iterated
  macro,         ///< name(parameters): body
  call_block,    ///< expression (a call) with caller = the macro (parameters, body)
  filter_block,  ///< body through the filter in expression
  with,          ///< parameters, then body in a scope of its own
  generation,    ///< body (training tools mark the assistant's words with it)
  break_,
  continue_,
};

struct Statement {
  StatementKind kind;
  int line = 0;
  Value constant = Undefined{};
  std::string name;
  Target target;
  ExpressionPtr expression;
  ExpressionPtr condition;
  std::vector<Parameter> parameters;
  std::vector<Branch> branches;
  Body body;
  Body else_body;
};

/// Name of the hole that a filter over a block is applied to: its expression is a chain of filters upon it.
inline constexpr const char* kBlockValue = "(block)";

/// Parses a template. Errors: corrupt_file (syntax), unsupported (a tag, filter or test outside the subset,
/// or nesting beyond 100 levels); both name the line.
Body parse(std::string_view source);

}  // namespace liuli::jinja
