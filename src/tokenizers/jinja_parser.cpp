// Statements of a template: text, {{ output }} and {% tags %}.
#include "tokenizers/jinja_expression_parser.h"
#include "tokenizers/jinja_syntax.h"
#include "tokenizers/jinja_token_stream.h"

namespace liuli::jinja {
namespace {

constexpr size_t kMaxSourceBytes = 1 << 20;  // published templates have up to 40 KiB

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokenize(source)), expressions_(tokens_) {}

  Body run() {
    Body body = statements({});
    if (!tokens_.at(TokenKind::end)) {
      tokens_.next();
      tokens_.fail(fmt::format("the tag '{}' closes nothing", tokens_.peek().text.substr(0, 40)));
    }
    return body;
  }

 private:
  using Names = std::initializer_list<std::string_view>;
  using TagParser = void (Parser::*)(Statement&);

  // Statements up to (not including) a tag named in `ends`, or the end of the template.
  Body statements(Names ends) {
    const Nesting nesting(depth_, tokens_);
    Body body;
    for (;;) {
      if (tokens_.at(TokenKind::text)) {
        Statement text = statement(StatementKind::text);
        text.constant = std::make_shared<const Text>(tokens_.next().text, false);
        body.push_back(std::move(text));
      } else if (tokens_.at(TokenKind::variable_begin)) {
        body.push_back(output());
      } else if (!tokens_.at(TokenKind::block_begin) || next_tag_is(ends) || next_tag_closes()) {
        return body;
      } else {
        body.push_back(tag());
      }
    }
  }

  bool next_tag_is(Names names) const {
    for (const std::string_view name : names) {
      if (tokens_.peek_next().text == name) return true;
    }
    return false;
  }

  bool next_tag_closes() const {
    const std::string& name = tokens_.peek_next().text;
    return name.compare(0, 3, "end") == 0 || name == "else" || name == "elif";
  }

  Statement statement(StatementKind kind) const {
    Statement made;
    made.kind = kind;
    made.line = tokens_.line();
    return made;
  }

  Statement output() {
    Statement made = statement(StatementKind::output);
    tokens_.expect(TokenKind::variable_begin);
    made.expression = expressions_.expression_or_tuple();
    tokens_.expect(TokenKind::variable_end);
    return made;
  }

  Statement tag() {
    static constexpr struct {
      std::string_view name;
      StatementKind kind;
      TagParser parse;
    } kTags[] = {
        {"if", StatementKind::if_, &Parser::if_tag},
        {"for", StatementKind::for_, &Parser::for_tag},
        {"set", StatementKind::set, &Parser::set_tag},
        {"macro", StatementKind::macro, &Parser::macro_tag},
        {"call", StatementKind::call_block, &Parser::call_tag},
        {"filter", StatementKind::filter_block, &Parser::filter_tag},
        {"with", StatementKind::with, &Parser::with_tag},
        {"generation", StatementKind::generation, &Parser::generation_tag},
        {"break", StatementKind::break_, &Parser::loop_control},
        {"continue", StatementKind::continue_, &Parser::loop_control},
    };
    tokens_.expect(TokenKind::block_begin);
    const std::string name = tokens_.at(TokenKind::name) ? tokens_.peek().text : std::string();
    for (const auto& known : kTags) {
      if (name != known.name) continue;
      Statement made = statement(known.kind);
      tokens_.next();
      (this->*known.parse)(made);
      return made;
    }
    tokens_.fail(fmt::format("the tag {} is not supported", tokens_.describe()), ErrorCode::unsupported);
  }

  void end_of_tag() { tokens_.expect(TokenKind::block_end); }

  // The body of a tag up to and including its end tag.
  Body block(std::string_view end) {
    end_of_tag();
    Body body = statements({end});
    close(end);
    return body;
  }

  void open_tag() {
    if (!tokens_.at(TokenKind::block_begin)) tokens_.fail("a block is never closed");
    tokens_.next();
  }

  void close(std::string_view end) {
    open_tag();
    tokens_.expect_name(end);
    end_of_tag();
  }

  void if_tag(Statement& made) {
    ExpressionPtr condition = expressions_.expression_or_tuple(false);
    for (;;) {
      end_of_tag();
      made.branches.push_back({std::move(condition), statements({"elif", "else", "endif"})});
      const bool was_else = !made.branches.back().condition;
      open_tag();
      if (!was_else && tokens_.accept_name("elif")) {
        condition = expressions_.expression_or_tuple(false);
      } else if (was_else || !tokens_.accept_name("else")) {
        break;
      }
    }
    tokens_.expect_name("endif");
    end_of_tag();
  }

  void for_tag(Statement& made) {
    made.target = target(false);
    tokens_.expect_name("in");
    made.expression = expressions_.expression_or_tuple(false);
    if (tokens_.accept_name("if")) made.condition = expressions_.expression();
    if (tokens_.at_name("recursive"))
      tokens_.fail("recursive loops are not supported", ErrorCode::unsupported);
    end_of_tag();
    ++loops_;
    made.body = statements({"else", "endfor"});
    --loops_;
    open_tag();
    if (tokens_.accept_name("else")) {
      end_of_tag();
      made.else_body = statements({"endfor"});
      open_tag();
    }
    tokens_.expect_name("endfor");
    end_of_tag();
  }

  // a | a.b (a namespace's attribute) | a, b | (a, b), c
  Target target(bool allow_attribute) {
    Target first = one_target(allow_attribute);
    if (!tokens_.at_op(",")) return first;
    Target all;
    all.parts.push_back(std::move(first));
    while (tokens_.accept_op(",") && (tokens_.at(TokenKind::name) || tokens_.at_op("(")) &&
           !tokens_.at_name("in")) {
      all.parts.push_back(one_target(allow_attribute));
    }
    return all;
  }

  Target one_target(bool allow_attribute) {
    const Nesting nesting(depth_, tokens_);
    Target made;
    if (tokens_.accept_op("(")) {
      made = target(allow_attribute);
      tokens_.expect_op(")");
      return made;
    }
    made.name = tokens_.expect_identifier();
    static constexpr std::string_view kConstants[] = {"true", "false", "none", "True", "False", "None"};
    for (const std::string_view constant : kConstants) {
      if (made.name == constant) tokens_.fail(fmt::format("cannot assign to '{}'", made.name));
    }
    if (allow_attribute && tokens_.accept_op(".")) made.attribute = tokens_.expect_identifier();
    return made;
  }

  void set_tag(Statement& made) {
    made.target = target(true);
    if (tokens_.accept_op("=")) {
      made.expression = expressions_.expression_or_tuple();
      return end_of_tag();
    }
    made.kind = StatementKind::set_block;
    if (tokens_.accept_op("|")) made.expression = expressions_.block_filters();
    made.body = outside_loops("endset");
  }

  // A body that break and continue cannot leave: its output is needed whole.
  Body outside_loops(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    Body body = block(end);
    loops_ = loops;
    return body;
  }

  void signature(Statement& made) {
    tokens_.expect_op("(");
    while (!tokens_.at_op(")")) {
      Parameter parameter{tokens_.expect_identifier(), nullptr};
      if (tokens_.accept_op("=")) {
        parameter.value = expressions_.expression();
      } else if (!made.parameters.empty() && made.parameters.back().value) {
        tokens_.fail("a parameter without a default follows one with a default");
      }
      made.parameters.push_back(std::move(parameter));
      if (!tokens_.accept_op(",")) break;
    }
    tokens_.expect_op(")");
  }

  void macro_tag(Statement& made) {
    made.name = tokens_.expect_identifier();
    signature(made);
    made.body = outside_loops("endmacro");
  }

  void call_tag(Statement& made) {
    made.name = "caller";
    if (tokens_.at_op("(")) signature(made);
    made.expression = expressions_.call_target();
    if (made.expression->kind != ExpressionKind::call) tokens_.fail("a call block needs a call");
    made.body = outside_loops("endcall");
  }

  void filter_tag(Statement& made) {
    made.expression = expressions_.block_filters();
    made.body = outside_loops("endfilter");
  }

  void with_tag(Statement& made) {
    while (!tokens_.at(TokenKind::block_end)) {
      Parameter variable{tokens_.expect_identifier(), nullptr};
      tokens_.expect_op("=");
      variable.value = expressions_.expression();
      made.parameters.push_back(std::move(variable));
      if (!tokens_.accept_op(",")) break;
    }
    made.body = block("endwith");
  }

  void generation_tag(Statement& made) { made.body = block("endgeneration"); }

  void loop_control(Statement&) {
    if (loops_ == 0) tokens_.fail("break and continue need a loop around them");
    end_of_tag();
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  int depth_ = 0;
  int loops_ = 0;
};

}  // namespace

Body parse(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    throw Error(ErrorCode::unsupported,
                fmt::format("chat template of {} bytes; the limit is {}", source.size(), kMaxSourceBytes));
  }
  return Parser(source).run();
}

}  // namespace liuli::jinja
