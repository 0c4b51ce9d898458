// Regular expressions of tokenizer files: written for Oniguruma, run by PCRE2.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace liuli {

/// A compiled pattern. Immutable, safe to use from several threads.
class Regex {
 public:
  /// Errors: unsupported (a construct that the two engines read differently, by name), corrupt_file (no
  /// pattern at all).
  explicit Regex(const std::string& pattern);
  ~Regex();
  Regex(Regex&&) noexcept;

  /// The first match at or behind byte `from` of a valid UTF-8 text; matches may be empty. Errors:
  /// invalid_argument (the pattern backtracks too much on this text).
  bool find(std::string_view text, size_t from, size_t& begin, size_t& end) const;
  const std::string& pattern() const { return pattern_; }

 private:
  struct Program;
  std::string pattern_;
  std::unique_ptr<Program> program_;
};

/// The same pattern in PCRE2's language: \s, \w, \v and \u spelled out, since the engines differ in them.
/// Errors: unsupported.
std::string pcre_pattern(std::string_view oniguruma);
/// A pattern that matches this text and nothing else.
std::string escaped_pattern(std::string_view text);

}  // namespace liuli
