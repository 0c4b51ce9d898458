// Runs a parsed template.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tokenizers/jinja_builtins.h"
#include "tokenizers/jinja_syntax.h"

namespace liuli::jinja {

/// Variables of one for iteration, macro call, with block or captured block; lookups go on in the parent.
struct Scope {
  std::unordered_map<std::string_view, Value>
      variables;  // names live in the program or in the interpreter's globals
  Scope* parent = nullptr;
  uint64_t id = 0;
};

class Interpreter {
 public:
  using Variables = std::vector<std::pair<std::string, Value>>;

  Interpreter(Runtime& runtime, Variables globals);
  /// What the template prints. Errors: see ChatTemplate::render.
  Text run(const Body& program);

 private:
  enum class Flow { next, break_, continue_ };

  /// A scope that is current while alive.
  class Inner {
   public:
    Inner(Interpreter& interpreter, Scope* parent);
    ~Inner();
    Inner(const Inner&) = delete;
    Inner& operator=(const Inner&) = delete;
    Scope& scope() { return scope_; }

   private:
    Interpreter& interpreter_;
    Scope* outer_;
    Scope scope_;
  };

  Flow execute(const Body& body);
  Flow execute(const Statement& statement);
  void output(const Value& value);
  Flow execute_if(const Statement& statement);
  Flow execute_for(const Statement& statement);
  ListPtr iterated(const Statement& statement);
  void execute_set_block(const Statement& statement);
  void execute_call_block(const Statement& statement);
  Flow execute_with(const Statement& statement);
  void assign(const Target& target, Value value);
  void set(std::string_view name, Value value) { scope_->variables[name] = std::move(value); }
  Value macro_value(const Statement& macro);
  /// What a body prints, through the filters in `filters` unless null.
  Value captured(const Body& body, const Expression* filters);

  Value evaluate(const Expression& expression);
  Value lookup(std::string_view name);
  Value sequence(const Expression& expression);
  Value dict(const Expression& expression);
  Value slice_of(const Expression& expression);
  Value conditional(const Expression& expression);
  Value comparison(const Expression& expression);
  Value concatenation(const Expression& expression);
  Call arguments(const Expression& expression, Value first, bool has_first);
  Value call(const Expression& expression);
  Value call(const Value& callee, Call call);
  Value call_macro(const Callable& macro, const Call& call);
  void bind_parameters(const Statement& macro, const Call& call);
  bool is_alive(const Callable& macro) const;

  Runtime& runtime_;
  Variables globals_;
  Scope root_;
  Scope* scope_ = &root_;
  std::vector<const Scope*> live_;
  uint64_t next_id_ = 1;
  Text* out_ = nullptr;
};

}  // namespace liuli::jinja
