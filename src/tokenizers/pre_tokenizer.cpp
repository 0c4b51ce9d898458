// The regular expression above each scanner is the published pattern; the scanner tries its alternatives in
// order. L, N, S are letters, numbers and white space, O is everything else.
#include "tokenizers/pre_tokenizer.h"

#include <fmt/format.h>

#include <map>

#include "liuli/error.h"
#include "tokenizers/pre_tokenizer_steps.h"
#include "tokenizers/unicode.h"

namespace liuli {
namespace {

constexpr uint8_t kNotOther = kLetter | kNumber | kSpace;

uint32_t run_of(const Characters& t, uint32_t i, uint32_t end, uint8_t classes) {
  while (i < end && (t.classes[i] & classes)) ++i;
  return i;
}
uint32_t run_of_other(const Characters& t, uint32_t i, uint32_t end) {
  while (i < end && !(t.classes[i] & kNotOther)) ++i;
  return i;
}

// 's|'t|'re|'ve|'m|'ll|'d    (in any case: the long ſ is an s, too)
uint32_t contraction(const Characters& t, uint32_t i, uint32_t end, bool any_case) {
  if (t.points[i] != '\'') return i;
  const auto at = [&](uint32_t k) -> char32_t {
    if (k >= end) return 0;
    const char32_t c = t.points[k];
    if (!any_case) return c;
    return c == 0x17F ? U's' : c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
  };
  const char32_t a = at(i + 1), b = at(i + 2);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return i + 2;
  return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? i + 3 : i;
}

// \s+(?!\S)|\s+   (the last space of a run belongs to the word behind it, unless the run ends the piece)
uint32_t white_space(const Characters& t, uint32_t i, uint32_t end) {
  const uint32_t stop = run_of(t, i, end, kSpace);
  return stop < end && stop > i + 1 ? stop - 1 : stop;
}

// \s*[\r\n]+|\s+(?!\S)|\s+
uint32_t lines_or_white_space(const Characters& t, uint32_t i, uint32_t end) {
  const uint32_t stop = run_of(t, i, end, kSpace);
  for (uint32_t k = stop; k > i; --k)
    if (t.classes[k - 1] & kLineBreak) return k;
  return white_space(t, i, end);
}

uint32_t after_optional_space(const Characters& t, uint32_t i, uint32_t end) {
  return t.points[i] == ' ' && i + 1 < end ? i + 1 : i;
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
uint32_t gpt2(const Characters& t, uint32_t i, uint32_t end) {
  if (const uint32_t stop = contraction(t, i, end, false); stop > i) return stop;
  const uint32_t j = after_optional_space(t, i, end);
  if (t.classes[j] & kLetter) return run_of(t, j, end, kLetter);
  if (t.classes[j] & kNumber) return run_of(t, j, end, kNumber);
  if (!(t.classes[j] & kSpace)) return run_of_other(t, j, end);
  return white_space(t, i, end);
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}|
// ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
template <uint32_t digits>
uint32_t llama3(const Characters& t, uint32_t i, uint32_t end) {
  if (const uint32_t stop = contraction(t, i, end, true); stop > i) return stop;
  const uint8_t c = t.classes[i];
  if (c & kLetter) return run_of(t, i, end, kLetter);
  if (!(c & (kLineBreak | kNumber)) && i + 1 < end && (t.classes[i + 1] & kLetter))
    return run_of(t, i + 1, end, kLetter);
  if (c & kNumber) return run_of(t, i, end - i > digits ? i + digits : end, kNumber);
  const uint32_t j = after_optional_space(t, i, end);
  if (!(t.classes[j] & kNotOther)) return run_of(t, run_of_other(t, j, end), end, kLineBreak);
  return lines_or_white_space(t, i, end);
}

// \p{N}{1,most}
template <uint32_t most>
uint32_t numbers(const Characters& t, uint32_t i, uint32_t end) {
  return run_of(t, i, end - i > most ? i + most : end, kNumber);
}

// [一-龥぀-ゟ゠-ヿ]+
uint32_t han_or_kana(const Characters& t, uint32_t i, uint32_t end) {
  const auto inside = [](char32_t c) { return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF); };
  while (i < end && inside(t.points[i])) ++i;
  return i;
}

bool ascii_letter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// [ASCII punctuation][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|
// ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
uint32_t deepseek_words(const Characters& t, uint32_t i, uint32_t end) {
  constexpr uint8_t kWord = kLetter | kMark, kSign = kPunctuation | kSymbol;
  const uint8_t c = t.classes[i];
  if (is_ascii_punctuation(t.points[i]) && i + 1 < end && ascii_letter(t.points[i + 1])) {
    uint32_t stop = i + 1;
    while (stop < end && ascii_letter(t.points[stop])) ++stop;
    return stop;
  }
  if (c & kWord) return run_of(t, i, end, kWord);
  if (!(c & (kLineBreak | kSign)) && i + 1 < end && (t.classes[i + 1] & kWord))
    return run_of(t, i + 1, end, kWord);
  const uint32_t j = after_optional_space(t, i, end);
  if (t.classes[j] & kSign) return run_of(t, run_of(t, j, end, kSign), end, kLineBreak);
  return c & kSpace ? lines_or_white_space(t, i, end) : i;
}

// [\p{P}\$\+<=>\^~\|]+
uint32_t punctuation(const Characters& t, uint32_t i, uint32_t end) {
  const auto inside = [&](uint32_t k) {
    return (t.classes[k] & kPunctuation) ||
           (t.points[k] < 0x80 &&
            std::string_view("$+<=>^~|").find(static_cast<char>(t.points[k])) != std::string_view::npos);
  };
  while (i < end && inside(i)) ++i;
  return i;
}

// [0-9][0-9][0-9]
uint32_t three_digits(const Characters& t, uint32_t i, uint32_t end) {
  if (end - i < 3) return i;
  for (uint32_t k = i; k < i + 3; ++k)
    if (t.points[k] < '0' || t.points[k] > '9') return i;
  return i + 3;
}

const std::map<std::string_view, PreTokenizer>& rules_by_name() {
  static const std::map<std::string_view, PreTokenizer> rules = [] {
    const PreTokenizer gpt_2{{gpt2}}, llama_3{{llama3<3>}, false, true}, dbrx{{llama3<3>}},
        qwen_2{{llama3<1>}, true};
    const PreTokenizer smollm{{numbers<1>, gpt2}};
    const PreTokenizer deepseek_3{{numbers<3>, han_or_kana, deepseek_words}};
    // Files that name nothing: punctuation apart, then GPT-2's words, then numbers and groups of three
    // digits.
    const PreTokenizer unnamed{{punctuation, gpt2, numbers<UINT32_MAX>, three_digits}};
    return std::map<std::string_view, PreTokenizer>{
        {"gpt-2", gpt_2},     {"gpt2", gpt_2},
        {"phi-2", gpt_2},     {"mpt", gpt_2},
        {"olmo", gpt_2},      {"llama-bpe", llama_3},
        {"llama3", llama_3},  {"llama-v3", llama_3},
        {"falcon3", llama_3}, {"dbrx", dbrx},
        {"smaug-bpe", dbrx},  {"qwen2", qwen_2},
        {"smollm", smollm},   {"starcoder", smollm},
        {"refact", smollm},   {"deepseek-r1-qwen", qwen_2},
        {"default", unnamed}, {"deepseek-v3", deepseek_3},
    };
  }();
  return rules;
}

const std::map<std::string_view, Scanner>& scanners_by_pattern() {
  static const std::map<std::string_view, Scanner> scanners = {
      {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", gpt2},
      {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
       R"(\s*[\r\n]+|\s+(?!\S)|\s+)",
       llama3<3>},
      {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
       R"(\s*[\r\n]+|\s+(?!\S)|\s+)",
       llama3<1>},
      {R"(\p{N})", numbers<1>},
      {R"(\p{N}+)", numbers<UINT32_MAX>},
      {R"(\p{N}{1,3})", numbers<3>},
      {"[一-龥\u3040-ゟ゠-ヿ]+", han_or_kana},
      {R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)"
       "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
       deepseek_words},
  };
  return scanners;
}

}  // namespace

Characters::Characters(std::string_view text) {
  points.reserve(text.size());
  classes.reserve(text.size());
  offsets.reserve(text.size() + 1);
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = read_utf8(text, at);
    points.push_back(c.code_point);
    classes.push_back(char_class(c.code_point));
    offsets.push_back(static_cast<uint32_t>(at));
    at += static_cast<size_t>(c.bytes);
  }
  offsets.push_back(static_cast<uint32_t>(text.size()));
}

const PreTokenizer& pre_tokenizer(std::string_view name) {
  const auto& rules = rules_by_name();
  if (const auto found = rules.find(name); found != rules.end()) return found->second;
  std::string known;
  for (const auto& [known_name, unused] : rules)
    known += (known.empty() ? "" : ", ") + std::string(known_name);
  throw Error(ErrorCode::unsupported,
              fmt::format("pre-tokenizer \"{}\" is unknown; known are {}", name, known));
}

Scanner scanner_of_pattern(std::string_view pattern) {
  const auto& published = scanners_by_pattern();
  const auto found = published.find(pattern);
  return found == published.end() ? nullptr : found->second;
}

std::vector<std::string> pre_tokenize(std::string_view name, std::string_view text) {
  const PreTokenizer& rules = pre_tokenizer(name);
  std::string whole = replace_invalid_utf8(text);
  if (rules.nfc) whole = to_nfc(whole);
  Pieces pieces(whole, true);
  for (const Scanner scan : rules.passes)
    split_step(scanner_pattern(scan), SplitBehavior::isolated)->apply(pieces);
  const std::vector<std::string_view> views = pieces.views();
  return {views.begin(), views.end()};
}

}  // namespace liuli
