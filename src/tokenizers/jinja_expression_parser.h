// Parses the expressions between a template's delimiters; binding strength is Jinja's.
#pragma once
#include "tokenizers/jinja_syntax.h"
#include "tokenizers/jinja_token_stream.h"

namespace liuli::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  /// One expression. Without allow_conditional, "if" ends it: a for statement's iterable is followed by its
  /// condition.
  ExpressionPtr expression(bool allow_conditional = true);
  /// One expression, or several with commas between them, which make a tuple.
  ExpressionPtr expression_or_tuple(bool allow_conditional = true);
  /// `name | filter(…) …` applied to the hole kBlockValue: the filters of a filter or set block.
  ExpressionPtr block_filters();
  /// What a postfix expression may be: `macro(…)` of a call block.
  ExpressionPtr call_target();

 private:
  ExpressionPtr logical_or();
  ExpressionPtr logical_and();
  ExpressionPtr logical_not();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters = true);
  ExpressionPtr primary();
  ExpressionPtr name_or_constant();
  ExpressionPtr string_constant();
  ExpressionPtr number_constant();
  ExpressionPtr parenthesis();
  ExpressionPtr list_literal();
  ExpressionPtr dict_literal();
  ExpressionPtr postfix(ExpressionPtr value);
  ExpressionPtr attribute(ExpressionPtr value);
  ExpressionPtr subscript(ExpressionPtr value);
  ExpressionPtr filters_and_tests(ExpressionPtr value);
  ExpressionPtr filter(ExpressionPtr value);
  ExpressionPtr test(ExpressionPtr value);
  void arguments(Expression& call);
  bool ends_expression() const;

  ExpressionPtr node(ExpressionKind kind, std::string name = {}) const;
  void adopt(Expression& parent, ExpressionPtr child) const;
  void grow(Expression& parent, const Expression& child) const;

  TokenStream& tokens_;
  int depth_ = 0;
};

}  // namespace liuli::jinja
