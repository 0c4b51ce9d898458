// Renders a model's chat template, a Jinja program that came with the file: sandboxed, bounded, and
// remembering which bytes came from the user, so that a user cannot forge a control token.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tokenizers/tokenizer.h"

namespace liuli {

/// A parsed template. Immutable.
class ChatTemplate {
 public:
  /// Errors: unsupported (a construct outside the subset; names it and its line), corrupt_file (syntax).
  explicit ChatTemplate(std::string source);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;

  /// Renders with variables (an object: messages, tools, add_generation_prompt, bos_token, …). Every string
  /// inside `user_variables` (messages, tools, documents…) is marked as the user's wherever it ends up;
  /// `trusted` is not, and wins where both name a variable. (Exception: a "role" that is one of the words
  /// templates know, such as "user", because some templates build a control token around it.) Ordered JSON:
  /// templates print tools key by key. Errors: invalid_argument when the template itself raises (its own
  /// words), unsupported, or a bound is passed (steps, output, recursion).
  std::vector<TextSpan> render(const nlohmann::ordered_json& user_variables,
                               const nlohmann::ordered_json& trusted) const;

  const std::string& source() const { return source_; }

 private:
  struct Program;
  std::string source_;
  std::unique_ptr<Program> program_;
};

/// Templates that Liuli knows by name, for files without a usable one: "chatml", "llama3", "gemma", "plain".
/// Null for an unknown name.
const char* builtin_chat_template(std::string_view name);

}  // namespace liuli
