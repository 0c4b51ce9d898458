// Expressions of a running template.
#include <fmt/format.h>

#include "tokenizers/jinja_format.h"
#include "tokenizers/jinja_interpreter.h"
#include "tokenizers/jinja_operators.h"

namespace liuli::jinja {

Value Interpreter::evaluate(const Expression& e) {
  const Runtime::Level level(runtime_);
  runtime_.step();
  runtime_.set_line(e.line);
  const auto child = [&](size_t i) { return evaluate(*e.children[i]); };
  switch (e.kind) {
    case ExpressionKind::constant:
      return e.constant;
    case ExpressionKind::name:
      return lookup(e.name);
    case ExpressionKind::list:
    case ExpressionKind::tuple:
      return sequence(e);
    case ExpressionKind::dict:
      return dict(e);
    case ExpressionKind::attribute:
      return attribute(runtime_, child(0), e.name);
    case ExpressionKind::item: {
      const Value object = child(0);
      return item(runtime_, object, child(1));
    }
    case ExpressionKind::slice:
      return slice_of(e);
    case ExpressionKind::call:
      return call(e);
    case ExpressionKind::filter:
    case ExpressionKind::test:
      return invoke(runtime_, *e.builtin, arguments(e, child(0), true));
    case ExpressionKind::negate:
      return negated(runtime_, child(0));
    case ExpressionKind::plus:
      return negated(runtime_, negated(runtime_, child(0)));
    case ExpressionKind::logical_not:
      return !is_true(child(0));
    case ExpressionKind::logical_and: {
      Value left = child(0);
      return is_true(left) ? child(1) : left;
    }
    case ExpressionKind::logical_or: {
      Value left = child(0);
      return is_true(left) ? left : child(1);
    }
    case ExpressionKind::conditional:
      return conditional(e);
    case ExpressionKind::compare:
      return comparison(e);
    case ExpressionKind::arithmetic: {
      const Value left = child(0);
      return arithmetic(runtime_, e.name, left, child(1));
    }
    case ExpressionKind::concat:
      return concatenation(e);
  }
  return Undefined{};
}

// Variables first: a template may set a name that a function has too.
Value Interpreter::lookup(std::string_view name) {
  for (const Scope* scope = scope_; scope; scope = scope->parent) {
    const auto found = scope->variables.find(name);
    if (found != scope->variables.end()) return found->second;
  }
  if (const Builtin* function = find_function(name)) {
    Callable callable;
    callable.builtin = function;
    return std::make_shared<const Callable>(std::move(callable));
  }
  return Undefined{name};
}

Value Interpreter::sequence(const Expression& e) {
  std::vector<Value> items;
  for (const ExpressionPtr& child : e.children) items.push_back(evaluate(*child));
  return runtime_.list(std::move(items), e.kind == ExpressionKind::tuple);
}

Value Interpreter::dict(const Expression& e) {
  std::vector<std::pair<Value, Value>> entries;
  for (size_t i = 0; i + 1 < e.children.size(); i += 2) {
    Value key = evaluate(*e.children[i]);
    dict_set(runtime_, entries, std::move(key), evaluate(*e.children[i + 1]));
  }
  return runtime_.dict(std::move(entries));
}

Value Interpreter::slice_of(const Expression& e) {
  const auto part = [&](size_t i) { return e.children[i] ? evaluate(*e.children[i]) : Value(None{}); };
  const Value object = part(0), begin = part(1), end = part(2);
  return slice(runtime_, object, begin, end, part(3));
}

Value Interpreter::conditional(const Expression& e) {
  if (is_true(evaluate(*e.children[1]))) return evaluate(*e.children[0]);
  return e.children[2] ? evaluate(*e.children[2]) : Value(Undefined{"else"});
}

Value Interpreter::comparison(const Expression& e) {
  Value left = evaluate(*e.children[0]);
  for (size_t i = 0; i < e.operators.size(); ++i) {
    Value right = evaluate(*e.children[i + 1]);
    if (!compare(runtime_, e.operators[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::concatenation(const Expression& e) {
  Text all;
  for (const ExpressionPtr& child : e.children) print(runtime_, evaluate(*child), all);
  return runtime_.text(std::move(all));
}

// Children from 1 on are the positional arguments; `first` goes before them.
Call Interpreter::arguments(const Expression& e, Value first, bool has_first) {
  Call call;
  if (has_first) call.positional.push_back(std::move(first));
  for (size_t i = 1; i < e.children.size(); ++i) call.positional.push_back(evaluate(*e.children[i]));
  for (const NamedArgument& named : e.named) call.named.emplace_back(named.name, evaluate(*named.value));
  return call;
}

Value Interpreter::call(const Expression& e) {
  const Value callee = evaluate(*e.children[0]);
  Call made = arguments(e, Undefined{}, false);
  runtime_.set_line(e.line);
  return call(callee, std::move(made));
}

Value Interpreter::call(const Value& callee, Call call) {
  if (is_undefined(callee)) {
    runtime_.fail(
        fmt::format("'{}' is undefined and cannot be called", std::string(std::get<Undefined>(callee).name)));
  }
  if (!is<std::shared_ptr<const Callable>>(callee))
    runtime_.fail(fmt::format("{} cannot be called", type_name(callee)));
  const Callable& callable = *std::get<std::shared_ptr<const Callable>>(callee);
  if (callable.macro) return call_macro(callable, call);
  if (callable.has_self) call.positional.insert(call.positional.begin(), callable.self);
  return invoke(runtime_, *callable.builtin, call);
}

}  // namespace liuli::jinja
