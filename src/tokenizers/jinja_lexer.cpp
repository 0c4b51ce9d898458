#include "tokenizers/jinja_lexer.h"

#include <fmt/format.h>

#include <algorithm>

#include "liuli/error.h"
#include "tokenizers/jinja_characters.h"

namespace liuli::jinja {
namespace {

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// \r\n and \r are newlines too, and a single newline at the very end is dropped.
std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalize_newlines(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) template_text();
    add(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::corrupt_file, fmt::format("chat template line {}: {}", line_, what));
  }

  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  bool looking_at(std::string_view word) const { return source_.compare(at_, word.size(), word) == 0; }

  void advance(size_t to) {
    line_ += static_cast<int>(std::count(source_.begin() + at_, source_.begin() + to, '\n'));
    at_ = to;
  }

  size_t next_delimiter() const {
    for (size_t i = source_.find('{', at_); i != std::string::npos; i = source_.find('{', i + 1)) {
      if (i + 1 < source_.size() && std::string_view("{%#").find(source_[i + 1]) != std::string_view::npos)
        return i;
    }
    return std::string::npos;
  }

  // Text up to the next delimiter, then whatever the delimiter opens.
  void template_text() {
    const size_t open = next_delimiter();
    if (open == std::string::npos) {
      add_text(source_.substr(at_));
      return advance(source_.size());
    }
    const char kind = source_[open + 1];
    const char sign = open + 2 < source_.size() ? source_[open + 2] : '\0';
    add_text(left_stripped(source_.substr(at_, open - at_), kind, sign));
    advance(open + (sign == '-' || sign == '+' ? 3 : 2));
    if (kind == '#') return comment();
    if (kind == '{') return inside(TokenKind::variable_begin, TokenKind::variable_end, "}}");
    if (!raw_block()) inside(TokenKind::block_begin, TokenKind::block_end, "%}");
  }

  void add_text(std::string text) {
    if (!text.empty()) add(TokenKind::text, std::move(text));
  }

  // "{%-" eats all white space before it; "{%" and "{#" alone on their line eat the indentation ("{%+" keeps
  // it).
  std::string left_stripped(std::string text, char kind, char sign) const {
    if (sign == '-') {
      text.resize(strip_right(text, text.size()));
    } else if (sign != '+' && kind != '{') {
      const size_t newline = text.rfind('\n');
      const size_t line_begin = newline == std::string::npos ? 0 : newline + 1;
      const bool starts_line = line_begin > 0 || line_starting_;
      if (starts_line && strip_right(text, text.size()) <= line_begin) text.resize(line_begin);
    }
    return text;
  }

  // After a closing delimiter: "-%}" eats all white space, "%}" and "#}" one newline ("+%}" keeps it), "}}"
  // nothing.
  void right_strip(char sign, bool trims_newline) {
    size_t to = at_;
    if (sign == '-') {
      to += strip_left(std::string_view(source_).substr(at_));
    } else if (sign != '+' && trims_newline && to < source_.size() && source_[to] == '\n') {
      ++to;
    }
    line_starting_ = to > at_ && source_[to - 1] == '\n';
    advance(to);
  }

  void comment() {
    const size_t close = source_.find("#}", at_);
    if (close == std::string::npos) fail("the comment opened here is never closed");
    const char sign = close > at_ ? source_[close - 1] : '\0';
    advance(close + 2);
    right_strip(sign, true);
  }

  size_t skip_blank(size_t i) const {
    while (i < source_.size() && is_blank(source_[i])) ++i;
    return i;
  }

  // Matches `word [sign] %}` from i on; gives the position behind it, or npos.
  size_t match_tag(size_t i, std::string_view word, char& sign) const {
    i = skip_blank(i);
    if (source_.compare(i, word.size(), word) != 0) return std::string::npos;
    i = skip_blank(i + word.size());
    sign = i < source_.size() ? source_[i] : '\0';
    if (sign == '-' || sign == '+') ++i;
    return source_.compare(i, 2, "%}") == 0 ? i + 2 : std::string::npos;
  }

  // {% raw %} … {% endraw %}: text that is not looked into. at_ is behind "{%".
  bool raw_block() {
    char sign = '\0';
    const size_t body = match_tag(at_, "raw", sign);
    if (body == std::string::npos) return false;
    advance(body);
    right_strip(sign, false);
    for (size_t open = source_.find("{%", at_); open != std::string::npos;
         open = source_.find("{%", open + 1)) {
      const char open_sign = open + 2 < source_.size() ? source_[open + 2] : '\0';
      const size_t inner = open + (open_sign == '-' || open_sign == '+' ? 3 : 2);
      const size_t end = match_tag(inner, "endraw", sign);
      if (end == std::string::npos) continue;
      add_text(left_stripped(source_.substr(at_, open - at_), '%', open_sign));
      advance(end);
      right_strip(sign, true);
      return true;
    }
    fail("the raw block opened here is never closed");
  }

  // Tokens up to the closing delimiter. A "}}" inside an open brace closes dict literals, not the expression.
  void inside(TokenKind begin, TokenKind end, std::string_view close) {
    add(begin, "");
    std::string open_brackets;
    for (;;) {
      advance(skip_blank(at_));
      if (at_ >= source_.size()) fail(fmt::format("expected '{}' before the end of the template", close));
      if (open_brackets.empty() && closes(end, close)) return;
      token(open_brackets);
    }
  }

  bool closes(TokenKind end, std::string_view close) {
    const bool is_block = end == TokenKind::block_end;
    const char sign = source_[at_];
    const bool has_sign = sign == '-' || (is_block && sign == '+');
    if (source_.compare(at_ + has_sign, 2, close) != 0) return false;
    add(end, "");
    advance(at_ + has_sign + 2);
    right_strip(has_sign ? sign : '\0', is_block);
    return true;
  }

  void token(std::string& open_brackets) {
    const char c = source_[at_];
    if (is_name_start(c)) return name();
    if (is_digit(c)) return number();
    if (c == '\'' || c == '"') return string(c);
    op(open_brackets);
  }

  void name() {
    size_t end = at_;
    while (end < source_.size() && is_name_part(source_[end])) ++end;
    add(TokenKind::name, source_.substr(at_, end - at_));
    advance(end);
  }

  size_t digits(size_t i) const {
    while (i < source_.size() && (is_digit(source_[i]) ||
                                  (source_[i] == '_' && i + 1 < source_.size() && is_digit(source_[i + 1]))))
      ++i;
    return i;
  }

  // 12, 1_000, 1.5, 1e-3. "1.x" is the attribute x of 1, so a point counts only before a digit.
  void number() {
    size_t end = digits(at_);
    TokenKind kind = TokenKind::integer;
    if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) {
      end = digits(end + 1);
      kind = TokenKind::floating;
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      size_t exponent = end + 1;
      if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) ++exponent;
      if (exponent < source_.size() && is_digit(source_[exponent])) {
        end = digits(exponent);
        kind = TokenKind::floating;
      }
    }
    std::string spelled = source_.substr(at_, end - at_);
    spelled.erase(std::remove(spelled.begin(), spelled.end(), '_'), spelled.end());
    add(kind, std::move(spelled));
    advance(end);
  }

  void string(char quote) {
    size_t i = at_ + 1;
    while (i < source_.size() && source_[i] != quote) i += source_[i] == '\\' ? 2 : 1;
    if (i >= source_.size()) fail("the string opened here is never closed");
    add(TokenKind::string, unescaped(std::string_view(source_).substr(at_ + 1, i - at_ - 1)));
    advance(i + 1);
  }

  // Python's escapes: \n \t … \xHH \uHHHH \UHHHHHHHH \ooo; an unknown one stays as written.
  std::string unescaped(std::string_view body) const {
    std::string out;
    for (size_t i = 0; i < body.size(); ++i) {
      if (body[i] != '\\' || i + 1 >= body.size()) {
        out += body[i];
      } else {
        i = escape(body, i + 1, out);
      }
    }
    return out;
  }

  // Resolves the escape whose letter is at i; gives the position of its last character.
  size_t escape(std::string_view body, size_t i, std::string& out) const {
    static constexpr std::string_view kLetters = "abfnrtv\\'\"", kBytes = "\a\b\f\n\r\t\v\\'\"";
    const char c = body[i];
    if (c == '\n') return i;
    if (const size_t k = kLetters.find(c); k != std::string_view::npos) {
      out += kBytes[k];
      return i;
    }
    if (c == 'x' || c == 'u' || c == 'U') return code_escape(body, i, c == 'x' ? 2 : c == 'u' ? 4 : 8, out);
    if (c >= '0' && c <= '7') return octal_escape(body, i, out);
    out += '\\';
    out += c;
    return i;
  }

  size_t code_escape(std::string_view body, size_t i, size_t n_digits, std::string& out) const {
    uint32_t code = 0;
    for (size_t k = 1; k <= n_digits; ++k) {
      if (i + k >= body.size() || !std::isxdigit(static_cast<unsigned char>(body[i + k]))) {
        fail(fmt::format("escape \\{} needs {} hexadecimal digits", body[i], n_digits));
      }
      const char d = body[i + k];
      code = code * 16 + static_cast<uint32_t>(is_digit(d) ? d - '0' : (d | 0x20) - 'a' + 10);
    }
    append_code_point(out, code);
    return i + n_digits;
  }

  size_t octal_escape(std::string_view body, size_t i, std::string& out) const {
    uint32_t code = 0;
    size_t k = 0;
    for (; k < 3 && i + k < body.size() && body[i + k] >= '0' && body[i + k] <= '7'; ++k) {
      code = code * 8 + static_cast<uint32_t>(body[i + k] - '0');
    }
    append_code_point(out, code);
    return i + k - 1;
  }

  void op(std::string& open_brackets) {
    static constexpr std::string_view kTwo[] = {"==", "!=", "<=", ">=", "//", "**"};
    static constexpr std::string_view kOne = "+-*/%~<>=()[]{}.,:|;";
    for (const std::string_view two : kTwo) {
      if (!looking_at(two)) continue;
      add(TokenKind::op, std::string(two));
      return advance(at_ + 2);
    }
    const char c = source_[at_];
    if (kOne.find(c) == std::string_view::npos) fail(fmt::format("unexpected character '{}'", c));
    balance(c, open_brackets);
    add(TokenKind::op, std::string(1, c));
    advance(at_ + 1);
  }

  void balance(char c, std::string& open_brackets) const {
    if (c == '(') open_brackets += ')';
    if (c == '[') open_brackets += ']';
    if (c == '{') open_brackets += '}';
    if (c != ')' && c != ']' && c != '}') return;
    if (open_brackets.empty() || open_brackets.back() != c) fail(fmt::format("'{}' closes nothing", c));
    open_brackets.pop_back();
  }

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // nothing but a consumed newline stands before at_
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace liuli::jinja
