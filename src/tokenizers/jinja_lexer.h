// Cuts a template's source into text and the tokens between its delimiters.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace liuli::jinja {

enum class TokenKind : uint8_t {
  text,            ///< bytes printed as they are, white space already controlled
  variable_begin,  ///< {{
  variable_end,    ///< }}
  block_begin,     ///< {%
  block_end,       ///< %}
  name,
  string,  ///< escapes already resolved
  integer,
  floating,
  op,  ///< an operator or bracket; the spelling is in text
  end,
};

struct Token {
  TokenKind kind;
  std::string text;
  int line;
};

/// Tokens of a template, ended by TokenKind::end. White space follows the settings chat templates are written
/// for: trim_blocks and lstrip_blocks on, one newline at the end of the source dropped. Errors: corrupt_file
/// (unclosed delimiter, comment or string; a character no token starts with).
std::vector<Token> tokenize(std::string_view source);

}  // namespace liuli::jinja
