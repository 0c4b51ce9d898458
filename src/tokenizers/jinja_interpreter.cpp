// Statements, scopes and macros. Expressions are in jinja_evaluator.cpp.
#include "tokenizers/jinja_interpreter.h"

#include <fmt/format.h>

#include "tokenizers/jinja_format.h"
#include "tokenizers/jinja_operators.h"

namespace liuli::jinja {

Interpreter::Interpreter(Runtime& runtime, Variables globals)
    : runtime_(runtime), globals_(std::move(globals)) {
  for (const auto& [name, value] : globals_) root_.variables[name] = value;
  live_.push_back(&root_);
}

Interpreter::Inner::Inner(Interpreter& interpreter, Scope* parent)
    : interpreter_(interpreter), outer_(interpreter.scope_) {
  scope_.parent = parent;
  scope_.id = interpreter.next_id_++;
  interpreter.scope_ = &scope_;
  interpreter.live_.push_back(&scope_);
}

Interpreter::Inner::~Inner() {
  interpreter_.scope_ = outer_;
  interpreter_.live_.pop_back();
}

Text Interpreter::run(const Body& program) {
  Text out;
  out_ = &out;
  execute(program);
  return out;
}

Interpreter::Flow Interpreter::execute(const Body& body) {
  for (const Statement& statement : body) {
    const Flow flow = execute(statement);
    if (flow != Flow::next) return flow;
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const Statement& s) {
  const Runtime::Level level(runtime_);
  runtime_.step();
  runtime_.set_line(s.line);
  switch (s.kind) {
    case StatementKind::text:
      output(s.constant);
      break;
    case StatementKind::output:
      output(evaluate(*s.expression));
      break;
    case StatementKind::set:
      assign(s.target, evaluate(*s.expression));
      break;
    case StatementKind::set_block:
      execute_set_block(s);
      break;
    case StatementKind::if_:
      return execute_if(s);
    case StatementKind::for_:
      return execute_for(s);
    case StatementKind::macro:
      set(s.name, macro_value(s));
      break;
    case StatementKind::call_block:
      execute_call_block(s);
      break;
    case StatementKind::filter_block:
      output(captured(s.body, s.expression.get()));
      break;
    case StatementKind::with:
      return execute_with(s);
    case StatementKind::generation:
      return execute(s.body);
    case StatementKind::break_:
      return Flow::break_;
    case StatementKind::continue_:
      return Flow::continue_;
  }
  return Flow::next;
}

void Interpreter::output(const Value& value) {
  print(runtime_, value, *out_);
  if (out_->size() > Limits::kOutputBytes) {
    runtime_.fail(fmt::format("it prints more than {} MiB", Limits::kOutputBytes >> 20));
  }
}

Interpreter::Flow Interpreter::execute_if(const Statement& s) {
  for (const Branch& branch : s.branches) {
    if (!branch.condition || is_true(evaluate(*branch.condition))) return execute(branch.body);
  }
  return Flow::next;
}

// The items of a for statement that pass its condition. The condition sees the loop's names.
ListPtr Interpreter::iterated(const Statement& s) {
  const ListPtr all = iterate(runtime_, evaluate(*s.expression));
  if (!s.condition) return all;
  Inner inner(*this, scope_);
  std::vector<Value> kept;
  for (const Value& item : all->items) {
    inner.scope().variables.clear();
    assign(s.target, item);
    if (is_true(evaluate(*s.condition))) kept.push_back(item);
  }
  return std::get<ListPtr>(runtime_.list(std::move(kept)));
}

// Every iteration starts with the outer variables: what the last one set is forgotten.
Interpreter::Flow Interpreter::execute_for(const Statement& s) {
  const ListPtr items = iterated(s);
  Inner inner(*this, scope_);
  if (items->items.empty()) return execute(s.else_body);
  const auto loop = std::make_shared<Loop>();
  loop->items = items;
  for (const Value& item : items->items) {
    runtime_.step();
    inner.scope().variables.clear();
    set("loop", loop);
    assign(s.target, item);
    const Flow flow = execute(s.body);
    if (flow == Flow::break_) break;
    ++loop->index;
  }
  return Flow::next;
}

void Interpreter::execute_set_block(const Statement& s) {
  assign(s.target, captured(s.body, s.expression.get()));
}

// {% call(x) f(y) %}…{% endcall %}: f may call caller(x).
void Interpreter::execute_call_block(const Statement& s) {
  Call call = arguments(*s.expression, Undefined{}, false);
  call.named.emplace_back("caller", macro_value(s));
  output(this->call(evaluate(*s.expression->children[0]), std::move(call)));
}

Interpreter::Flow Interpreter::execute_with(const Statement& s) {
  std::vector<Value> values;  // evaluated outside, so that one variable does not see another
  for (const Parameter& variable : s.parameters) values.push_back(evaluate(*variable.value));
  Inner inner(*this, scope_);
  for (size_t i = 0; i < values.size(); ++i) set(s.parameters[i].name, std::move(values[i]));
  return execute(s.body);
}

void Interpreter::assign(const Target& target, Value value) {
  if (!target.parts.empty()) {
    const ListPtr items = iterate(runtime_, value);
    if (items->items.size() != target.parts.size()) {
      runtime_.fail(
          fmt::format("cannot unpack {} values into {} names", items->items.size(), target.parts.size()));
    }
    for (size_t i = 0; i < target.parts.size(); ++i) assign(target.parts[i], items->items[i]);
  } else if (target.attribute.empty()) {
    set(target.name, std::move(value));
  } else {
    const Value space = lookup(target.name);
    if (!is<Namespace*>(space)) {
      runtime_.fail(fmt::format("'{}' is {}, not a namespace whose attributes can be set", target.name,
                                type_name(space)));
    }
    runtime_.set_attribute(*std::get<Namespace*>(space), target.attribute, std::move(value));
  }
}

Value Interpreter::captured(const Body& body, const Expression* filters) {
  Text printed;
  Text* const outer = std::exchange(out_, &printed);
  Inner inner(*this, scope_);
  execute(body);
  out_ = outer;
  Value text = runtime_.text(std::move(printed));
  if (!filters) return text;
  set(kBlockValue, std::move(text));
  return evaluate(*filters);
}

Value Interpreter::macro_value(const Statement& macro) {
  runtime_.charge(sizeof(Callable));
  Callable made;
  made.macro = &macro;
  made.scope = scope_;
  made.scope_id = scope_->id;
  return std::make_shared<const Callable>(std::move(made));
}

// A macro can be kept in a namespace beyond the loop or block that defined it; its variables are gone then.
bool Interpreter::is_alive(const Callable& macro) const {
  for (auto scope = live_.rbegin(); scope != live_.rend(); ++scope) {
    if (*scope == macro.scope && (*scope)->id == macro.scope_id) return true;
  }
  return false;
}

Value Interpreter::call_macro(const Callable& callable, const Call& call) {
  const Statement& macro = *callable.macro;
  if (!is_alive(callable)) {
    runtime_.fail(fmt::format("macro '{}' is called outside the block that defined it", macro.name),
                  ErrorCode::unsupported);
  }
  const int line = runtime_.line();
  Text printed;
  Text* const outer = std::exchange(out_, &printed);
  Inner inner(*this, callable.scope);
  bind_parameters(macro, call);
  execute(macro.body);
  out_ = outer;
  runtime_.set_line(line);
  return runtime_.text(std::move(printed));
}

// Positional, then named, then the default (which may use the parameters before it), else undefined.
void Interpreter::bind_parameters(const Statement& macro, const Call& call) {
  if (call.positional.size() > macro.parameters.size()) {
    runtime_.fail(fmt::format("macro '{}' takes {} arguments, {} given", macro.name, macro.parameters.size(),
                              call.positional.size()));
  }
  for (const auto& [name, value] : call.named) {
    bool known = name == "caller";
    for (const Parameter& parameter : macro.parameters) known = known || parameter.name == name;
    if (!known) runtime_.fail(fmt::format("macro '{}' has no parameter '{}'", macro.name, std::string(name)));
    set(name, value);
  }
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const Parameter& parameter = macro.parameters[i];
    const bool named = scope_->variables.count(parameter.name) > 0;
    if (i < call.positional.size()) {
      if (named) runtime_.fail(fmt::format("macro '{}' gets '{}' twice", macro.name, parameter.name));
      set(parameter.name, call.positional[i]);
    } else if (!named) {
      set(parameter.name, parameter.value ? evaluate(*parameter.value) : Value(Undefined{parameter.name}));
    }
  }
}

}  // namespace liuli::jinja
