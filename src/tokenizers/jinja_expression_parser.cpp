#include "tokenizers/jinja_expression_parser.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>

#include "tokenizers/jinja_builtins.h"

namespace liuli::jinja {
namespace {

// Chains such as a + b + c … nest without recursion in the parser; evaluating them does recurse.
constexpr int kMaxHeight = 200;

constexpr const char* kComparisons[] = {"==", "!=", "<=", ">=", "<", ">"};

}  // namespace

ExpressionPtr ExpressionParser::node(ExpressionKind kind, std::string name) const {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->line = tokens_.line();
  made->name = std::move(name);
  return made;
}

void ExpressionParser::grow(Expression& parent, const Expression& child) const {
  parent.height = std::max(parent.height, child.height + 1);
  if (parent.height > kMaxHeight) {
    tokens_.fail(fmt::format("an expression of more than {} levels", kMaxHeight), ErrorCode::unsupported);
  }
}

void ExpressionParser::adopt(Expression& parent, ExpressionPtr child) const {
  if (child) grow(parent, *child);
  parent.children.push_back(std::move(child));
}

ExpressionPtr ExpressionParser::expression(bool allow_conditional) {
  const Nesting nesting(depth_, tokens_);
  ExpressionPtr value = logical_or();
  while (allow_conditional && tokens_.accept_name("if")) {
    ExpressionPtr choice = node(ExpressionKind::conditional);
    adopt(*choice, std::move(value));
    adopt(*choice, logical_or());
    adopt(*choice, tokens_.accept_name("else") ? expression() : nullptr);
    value = std::move(choice);
  }
  return value;
}

bool ExpressionParser::ends_expression() const {
  return tokens_.at(TokenKind::variable_end) || tokens_.at(TokenKind::block_end) || tokens_.at_op(")") ||
         tokens_.at_op("=") || tokens_.at_op("]") || tokens_.at_name({"if", "recursive"});
}

ExpressionPtr ExpressionParser::expression_or_tuple(bool allow_conditional) {
  ExpressionPtr first = expression(allow_conditional);
  if (!tokens_.at_op(",")) return first;
  ExpressionPtr tuple = node(ExpressionKind::tuple);
  adopt(*tuple, std::move(first));
  while (tokens_.accept_op(",") && !ends_expression()) adopt(*tuple, expression(allow_conditional));
  return tuple;
}

ExpressionPtr ExpressionParser::block_filters() {
  ExpressionPtr value = filter(node(ExpressionKind::name, kBlockValue));
  return filters_and_tests(std::move(value));
}

ExpressionPtr ExpressionParser::call_target() { return postfix(primary()); }

ExpressionPtr ExpressionParser::logical_or() {
  ExpressionPtr left = logical_and();
  while (tokens_.accept_name("or")) {
    ExpressionPtr both = node(ExpressionKind::logical_or);
    adopt(*both, std::move(left));
    adopt(*both, logical_and());
    left = std::move(both);
  }
  return left;
}

ExpressionPtr ExpressionParser::logical_and() {
  ExpressionPtr left = logical_not();
  while (tokens_.accept_name("and")) {
    ExpressionPtr both = node(ExpressionKind::logical_and);
    adopt(*both, std::move(left));
    adopt(*both, logical_not());
    left = std::move(both);
  }
  return left;
}

ExpressionPtr ExpressionParser::logical_not() {
  if (!tokens_.accept_name("not")) return comparison();
  const Nesting nesting(depth_, tokens_);
  ExpressionPtr negated = node(ExpressionKind::logical_not);
  adopt(*negated, logical_not());
  return negated;
}

ExpressionPtr ExpressionParser::comparison() {
  ExpressionPtr first = sum();
  ExpressionPtr chain;
  for (;;) {
    std::string op;
    for (const char* candidate : kComparisons) {
      if (tokens_.at_op(candidate)) op = candidate;
    }
    if (tokens_.at_name("in")) op = "in";
    const bool not_in = tokens_.at_name("not") && tokens_.peek_next().text == "in";
    if (not_in) op = "not in";
    if (op.empty()) break;
    tokens_.next();
    if (not_in) tokens_.next();
    if (!chain) {
      chain = node(ExpressionKind::compare);
      adopt(*chain, std::move(first));
    }
    chain->operators.push_back(op);
    adopt(*chain, sum());
  }
  return chain ? std::move(chain) : std::move(first);
}

ExpressionPtr ExpressionParser::sum() {
  ExpressionPtr left = concatenation();
  while (tokens_.at_op("+") || tokens_.at_op("-")) {
    ExpressionPtr result = node(ExpressionKind::arithmetic, tokens_.next().text);
    adopt(*result, std::move(left));
    adopt(*result, concatenation());
    left = std::move(result);
  }
  return left;
}

ExpressionPtr ExpressionParser::concatenation() {
  ExpressionPtr first = product();
  if (!tokens_.at_op("~")) return first;
  ExpressionPtr joined = node(ExpressionKind::concat);
  adopt(*joined, std::move(first));
  while (tokens_.accept_op("~")) adopt(*joined, product());
  return joined;
}

ExpressionPtr ExpressionParser::product() {
  ExpressionPtr left = power();
  while (tokens_.at_op("*") || tokens_.at_op("/") || tokens_.at_op("//") || tokens_.at_op("%")) {
    ExpressionPtr result = node(ExpressionKind::arithmetic, tokens_.next().text);
    adopt(*result, std::move(left));
    adopt(*result, power());
    left = std::move(result);
  }
  return left;
}

ExpressionPtr ExpressionParser::power() {
  ExpressionPtr left = unary();
  while (tokens_.accept_op("**")) {
    ExpressionPtr result = node(ExpressionKind::arithmetic, "**");
    adopt(*result, std::move(left));
    adopt(*result, unary());
    left = std::move(result);
  }
  return left;
}

// A sign binds tighter than filters: -x | abs is (-x) | abs.
ExpressionPtr ExpressionParser::unary(bool with_filters) {
  const Nesting nesting(depth_, tokens_);
  ExpressionPtr value;
  if (tokens_.at_op("-") || tokens_.at_op("+")) {
    value = node(tokens_.at_op("-") ? ExpressionKind::negate : ExpressionKind::plus);
    tokens_.next();
    adopt(*value, unary(false));
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  return with_filters ? filters_and_tests(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionParser::primary() {
  switch (tokens_.peek().kind) {
    case TokenKind::name:
      return name_or_constant();
    case TokenKind::string:
      return string_constant();
    case TokenKind::integer:
    case TokenKind::floating:
      return number_constant();
    default:
      break;
  }
  if (tokens_.at_op("(")) return parenthesis();
  if (tokens_.at_op("[")) return list_literal();
  if (tokens_.at_op("{")) return dict_literal();
  tokens_.fail(fmt::format("expected an expression but found {}", tokens_.describe()));
}

ExpressionPtr ExpressionParser::name_or_constant() {
  ExpressionPtr value = node(ExpressionKind::name);
  const std::string name = tokens_.next().text;
  const bool is_true_name = name == "true" || name == "True";
  if (is_true_name || name == "false" || name == "False") {
    value->kind = ExpressionKind::constant;
    value->constant = is_true_name;
  } else if (name == "none" || name == "None") {
    value->kind = ExpressionKind::constant;
    value->constant = None{};
  } else {
    value->name = name;
  }
  return value;
}

// Strings side by side are one string.
ExpressionPtr ExpressionParser::string_constant() {
  ExpressionPtr value = node(ExpressionKind::constant);
  std::string bytes;
  while (tokens_.at(TokenKind::string)) bytes += tokens_.next().text;
  value->constant = std::make_shared<const Text>(std::move(bytes), false);
  return value;
}

ExpressionPtr ExpressionParser::number_constant() {
  ExpressionPtr value = node(ExpressionKind::constant);
  const Token token = tokens_.next();
  if (token.kind == TokenKind::floating) {
    value->constant = std::strtod(token.text.c_str(), nullptr);
    return value;
  }
  int64_t integer = 0;
  const char* end = token.text.data() + token.text.size();
  if (std::from_chars(token.text.data(), end, integer).ec != std::errc{}) {
    tokens_.fail(fmt::format("integer {} has more than 64 bits", token.text.substr(0, 40)),
                 ErrorCode::unsupported);
  }
  value->constant = integer;
  return value;
}

ExpressionPtr ExpressionParser::parenthesis() {
  tokens_.expect_op("(");
  if (tokens_.accept_op(")")) return node(ExpressionKind::tuple);
  ExpressionPtr inside = expression_or_tuple();
  tokens_.expect_op(")");
  return inside;
}

ExpressionPtr ExpressionParser::list_literal() {
  ExpressionPtr list = node(ExpressionKind::list);
  tokens_.expect_op("[");
  while (!tokens_.at_op("]")) {
    adopt(*list, expression());
    if (!tokens_.accept_op(",")) break;
  }
  tokens_.expect_op("]");
  return list;
}

ExpressionPtr ExpressionParser::dict_literal() {
  ExpressionPtr dict = node(ExpressionKind::dict);
  tokens_.expect_op("{");
  while (!tokens_.at_op("}")) {
    adopt(*dict, expression());
    tokens_.expect_op(":");
    adopt(*dict, expression());
    if (!tokens_.accept_op(",")) break;
  }
  tokens_.expect_op("}");
  return dict;
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr value) {
  for (;;) {
    if (tokens_.at_op(".")) {
      value = attribute(std::move(value));
    } else if (tokens_.at_op("[")) {
      value = subscript(std::move(value));
    } else if (tokens_.at_op("(")) {
      ExpressionPtr call = node(ExpressionKind::call);
      adopt(*call, std::move(value));
      arguments(*call);
      value = std::move(call);
    } else {
      return value;
    }
  }
}

// a.name, and a.0 for a[0].
ExpressionPtr ExpressionParser::attribute(ExpressionPtr value) {
  tokens_.expect_op(".");
  if (tokens_.at(TokenKind::integer)) {
    ExpressionPtr item = node(ExpressionKind::item);
    adopt(*item, std::move(value));
    adopt(*item, number_constant());
    return item;
  }
  ExpressionPtr member = node(ExpressionKind::attribute, tokens_.expect_identifier());
  adopt(*member, std::move(value));
  return member;
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr value) {
  tokens_.expect_op("[");
  ExpressionPtr item = node(ExpressionKind::item);
  adopt(*item, std::move(value));
  adopt(*item, tokens_.at_op(":") ? nullptr : expression());
  if (tokens_.at_op(":")) {
    item->kind = ExpressionKind::slice;
    for (int part = 0; part < 2; ++part) {
      const bool given = tokens_.accept_op(":") && !tokens_.at_op(":") && !tokens_.at_op("]");
      adopt(*item, given ? expression() : nullptr);
    }
  }
  tokens_.expect_op("]");
  return item;
}

ExpressionPtr ExpressionParser::filters_and_tests(ExpressionPtr value) {
  for (;;) {
    if (tokens_.accept_op("|")) {
      value = filter(std::move(value));
    } else if (tokens_.accept_name("is")) {
      value = test(std::move(value));
    } else if (tokens_.at_op("(")) {
      value = postfix(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::filter(ExpressionPtr value) {
  ExpressionPtr applied = node(ExpressionKind::filter, tokens_.expect_identifier());
  applied->builtin = find_filter(applied->name);
  if (!applied->builtin)
    tokens_.fail(fmt::format("unknown filter '{}'", applied->name), ErrorCode::unsupported);
  adopt(*applied, std::move(value));
  if (tokens_.at_op("(")) arguments(*applied);
  return applied;
}

// x is [not] name, name(arguments) or name argument.
ExpressionPtr ExpressionParser::test(ExpressionPtr value) {
  const bool negated = tokens_.accept_name("not");
  ExpressionPtr applied = node(ExpressionKind::test, tokens_.expect_identifier());
  applied->builtin = find_test(applied->name);
  if (!applied->builtin)
    tokens_.fail(fmt::format("unknown test '{}'", applied->name), ErrorCode::unsupported);
  adopt(*applied, std::move(value));
  const bool at_word =
      tokens_.at(TokenKind::name) && !tokens_.at_name({"else", "or", "and", "if", "is", "not", "in"});
  const bool at_value = at_word || tokens_.at(TokenKind::string) || tokens_.at(TokenKind::integer) ||
                        tokens_.at(TokenKind::floating) || tokens_.at_op("[") || tokens_.at_op("{");
  if (tokens_.at_op("(")) {
    arguments(*applied);
  } else if (at_value) {
    adopt(*applied, postfix(primary()));
  }
  if (!negated) return applied;
  ExpressionPtr inverse = node(ExpressionKind::logical_not);
  adopt(*inverse, std::move(applied));
  return inverse;
}

void ExpressionParser::arguments(Expression& call) {
  tokens_.expect_op("(");
  while (!tokens_.at_op(")")) {
    if (tokens_.at_op("*") || tokens_.at_op("**")) {
      tokens_.fail("unpacking arguments with * is not supported", ErrorCode::unsupported);
    }
    if (tokens_.at(TokenKind::name) && tokens_.peek_next().kind == TokenKind::op &&
        tokens_.peek_next().text == "=") {
      std::string name = tokens_.next().text;
      tokens_.expect_op("=");
      ExpressionPtr value = expression();
      grow(call, *value);
      call.named.push_back({std::move(name), std::move(value)});
    } else {
      if (!call.named.empty()) tokens_.fail("a positional argument follows a named one");
      adopt(call, expression());
    }
    if (!tokens_.accept_op(",")) break;
  }
  tokens_.expect_op(")");
}

}  // namespace liuli::jinja
