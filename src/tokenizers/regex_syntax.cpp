// From Oniguruma's pattern language to PCRE2's, as far as both mean the same.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "liuli/error.h"
#include "tokenizers/regex.h"

namespace liuli {
namespace {

// PCRE2 counts U+180E as space, and its \w knows neither marks nor connectors.
constexpr std::string_view kSpace =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kNotSpace =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027})"
    R"(\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
constexpr std::string_view kWord = R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9})";
// Outside of classes Oniguruma takes Latin-1's superscripts and fractions for word characters.
constexpr std::string_view kLatinWord = R"(\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
// Letters after a backslash that mean the same in both languages.
constexpr std::string_view kSameOutside = "dDrntfaexbBAZz123456789", kSameInside = "dDrntfaex";

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '\\') {
        escape(false);
      } else if (c == '[') {
        character_class();
      } else if (c == '(' && rest().starts_with("(?")) {
        group();
      } else {
        out_ += c;
        ++at_;
      }
    }
    return std::move(out_);
  }

 private:
  std::string_view rest() const { return pattern_.substr(at_); }

  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("regular expression \"{}\": \"{}\" at byte {} is not supported", pattern_, what, at_));
  }

  void escape(bool inside) {
    if (at_ + 1 >= pattern_.size()) refuse("\\");
    const char c = pattern_[at_ + 1];
    const auto put = [&](std::string_view set, bool negated) {
      out_ += inside ? std::string(set) : fmt::format("[{}{}]", negated ? "^" : "", set);
    };
    const bool letter_or_digit = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    at_ += 2;
    if (c == 's') return put(kSpace, false);
    if (c == 'S') return inside ? put(kNotSpace, false) : put(kSpace, true);
    const std::string word = std::string(kWord).append(inside ? "" : kLatinWord);
    if (c == 'w') return put(word, false);
    if (c == 'W' && !inside) return put(word, true);
    if (c == 'p' || c == 'P') return property(c);
    if (c == 'v') return void(out_ += R"(\x{b})");
    if (c == 'u') return unicode_escape();
    if (letter_or_digit && (inside ? kSameInside : kSameOutside).find(c) == std::string_view::npos) {
      at_ -= 2;
      refuse(rest().substr(0, 2));
    }
    // A digit may go on: \12 is a reference in one engine and an octal number in the other.
    if (c >= '1' && c <= '9' && at_ < pattern_.size() && pattern_[at_] >= '0' && pattern_[at_] <= '9')
      refuse("a reference of two digits");
    out_.append(1, '\\').append(1, c);
  }

  // PCRE2 reads \p{Han} as "used with Han", Oniguruma as the script itself.
  void property(char letter) {
    const size_t close = rest().find('}');
    if (!rest().starts_with('{') || close == std::string_view::npos) refuse("\\p without a name in braces");
    std::string_view name = rest().substr(1, close - 1);
    at_ += close + 1;
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    constexpr std::pair<std::string_view, std::string_view> kLongNames[] = {
        {"Letter", "L"},   {"Lowercase_Letter", "Ll"}, {"Uppercase_Letter", "Lu"}, {"Mark", "M"},
        {"Number", "N"},   {"Decimal_Number", "Nd"},   {"Punctuation", "P"},       {"Symbol", "S"},
        {"Separator", "Z"}};
    for (const auto& [long_name, category] : kLongNames)
      if (name == long_name) name = category;
    constexpr std::string_view kBinary[] = {
        "Any",        "Alphabetic", "Lowercase", "Uppercase", "White_Space", "Emoji", "Extended_Pictographic",
        "Ideographic"};
    const bool script =
        name.size() > 2 && std::find(std::begin(kBinary), std::end(kBinary), name) == std::end(kBinary);
    out_ += fmt::format("\\{}{{{}{}{}}}", letter, negated ? "^" : "", script ? "sc:" : "", name);
  }

  void unicode_escape() {
    const std::string_view digits = rest().substr(0, 4);
    if (digits.size() < 4 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
      refuse("\\u without four digits");
    out_ += fmt::format("\\x{{{}}}", digits);
    at_ += 4;
  }

  void character_class() {
    out_ += '[';
    ++at_;
    if (rest().starts_with('^')) {
      out_ += '^';
      ++at_;
    }
    for (bool first = true; at_ < pattern_.size(); first = false) {
      const char c = pattern_[at_];
      if (c == ']' && !first) {
        out_ += ']';
        ++at_;
        return;
      }
      if (c == '\\') {
        escape(true);
        continue;
      }
      if (c == '[') refuse("a class inside a class");
      if (rest().starts_with("&&")) refuse("&&");
      out_ += c;
      ++at_;
    }
    refuse("[ without ]");
  }

  // (?: (?= (?! (?> (?<= (?<! (?# and the flags i and x; m and s mean different things.
  void group() {
    const std::string_view tail = rest().substr(2);
    size_t length = 0;
    for (const std::string_view known : {":", "=", "!", ">", "<=", "<!", "i)", "i:", "-i)", "-i:"})
      if (tail.starts_with(known)) length = 2 + known.size();
    if (length == 0) refuse(rest().substr(0, 4));
    out_ += rest().substr(0, length);
    at_ += length;
  }

  std::string_view pattern_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string pcre_pattern(std::string_view oniguruma) { return Translator(oniguruma).run(); }

std::string escaped_pattern(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool special = std::string_view(R"(\.+*?()|[]{}^$#&-~/)").find(c) != std::string_view::npos;
    if (special) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace liuli
