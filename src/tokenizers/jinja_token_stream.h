// The parser's place in the token list, and how it complains.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "liuli/error.h"
#include "tokenizers/jinja_lexer.h"

namespace liuli::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& peek() const { return tokens_[at_]; }
  const Token& peek_next() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  Token next() { return at_ + 1 < tokens_.size() ? std::move(tokens_[at_++]) : tokens_[at_]; }
  int line() const { return peek().line; }

  bool at(TokenKind kind) const { return peek().kind == kind; }
  bool at_op(std::string_view op) const { return at(TokenKind::op) && peek().text == op; }
  bool at_name(std::string_view name) const { return at(TokenKind::name) && peek().text == name; }
  bool at_name(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      if (at_name(name)) return true;
    }
    return false;
  }

  bool accept_op(std::string_view op) { return at_op(op) && (++at_, true); }
  bool accept_name(std::string_view name) { return at_name(name) && (++at_, true); }

  void expect_op(std::string_view op) {
    if (!accept_op(op)) fail(fmt::format("expected '{}' but found {}", op, describe()));
  }
  void expect_name(std::string_view name) {
    if (!accept_name(name)) fail(fmt::format("expected '{}' but found {}", name, describe()));
  }
  std::string expect_identifier() {
    if (!at(TokenKind::name)) fail(fmt::format("expected a name but found {}", describe()));
    return next().text;
  }
  void expect(TokenKind kind) {
    if (!at(kind)) fail(fmt::format("expected the end of the tag but found {}", describe()));
    next();
  }

  std::string describe() const {
    switch (peek().kind) {
      case TokenKind::end:
        return "the end of the template";
      case TokenKind::text:
        return "text";
      case TokenKind::variable_begin:
        return "'{{'";
      case TokenKind::variable_end:
        return "'}}'";
      case TokenKind::block_begin:
        return "'{%'";
      case TokenKind::block_end:
        return "'%}'";
      default:
        return fmt::format("'{}'", peek().text.substr(0, 40));
    }
  }

  [[noreturn]] void fail(const std::string& what, ErrorCode code = ErrorCode::corrupt_file) const {
    throw Error(code, fmt::format("chat template line {}: {}", line(), what));
  }

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

/// Counts how deep a recursive parser is; beyond the limit the template is refused.
class Nesting {
 public:
  static constexpr int kLimit = 100;
  Nesting(int& depth, const TokenStream& tokens) : depth_(depth) {
    if (depth_ >= kLimit) {
      tokens.fail(fmt::format("nested deeper than {} levels", kLimit), ErrorCode::unsupported);
    }
    ++depth_;
  }
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  int& depth_;
};

}  // namespace liuli::jinja
