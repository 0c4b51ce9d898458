// Filters that take a text (anything else is printed first) and give one.
#include <fmt/format.h>

#include <cctype>

#include "tokenizers/jinja_builtins.h"
#include "tokenizers/jinja_format.h"

namespace liuli::jinja {
namespace {

Value trim(Runtime& rt, const Bound& a) {
  const TextPtr text = to_text(rt, a[0]);
  const bool everything = !a.given(1) || is<None>(a[1]);
  return stripped(rt, *text, everything ? nullptr : &text_argument(rt, a, 1), true, true);
}

Value upper(Runtime& rt, const Bound& a) { return in_case(rt, *to_text(rt, a[0]), Case::upper); }
Value lower(Runtime& rt, const Bound& a) { return in_case(rt, *to_text(rt, a[0]), Case::lower); }
Value capitalize(Runtime& rt, const Bound& a) { return capitalized(rt, *to_text(rt, a[0])); }

// The filter splits words at blanks, '-', and opening brackets; the method (str.title) at everything but
// letters.
Value title(Runtime& rt, const Bound& a) {
  const TextPtr text = to_text(rt, a[0]);
  const std::string& bytes = text->bytes();
  Text out;
  bool at_start = true;
  for (size_t i = 0; i < bytes.size();) {
    const size_t size = character_size(bytes, i);
    const uint32_t c = code_point(bytes, i);
    const bool breaks = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    out.append(
        *std::get<TextPtr>(in_case(rt, text->slice(i, i + size), at_start ? Case::upper : Case::lower)));
    at_start = breaks;
    i += size;
  }
  return rt.text(std::move(out));
}

Value replace(Runtime& rt, const Bound& a) {
  const int64_t limit = a.given(3) && !is<None>(a[3]) ? integer_argument(rt, a, 3, -1) : -1;
  return replaced(rt, *to_text(rt, a[0]), *to_text(rt, a[1]), *to_text(rt, a[2]), limit);
}

Value string(Runtime& rt, const Bound& a) { return to_text(rt, a[0]); }
Value safe(Runtime&, const Bound& a) { return a[0]; }

Value escape(Runtime& rt, const Bound& a) {
  static constexpr std::pair<char, const char*> kEntities[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'\'', "&#39;"}, {'"', "&#34;"}};
  Value result = to_text(rt, a[0]);
  for (const auto& [character, entity] : kEntities) {
    // One mark for all replacements is enough to be safe: an entity cannot be part of a control token's name.
    result = replaced(rt, text_of(result), Text(std::string(1, character), false),
                      Text(entity, text_of(result).from_user()), -1);
  }
  return result;
}

std::string indentation(Runtime& rt, const Bound& a, size_t i, int64_t otherwise) {
  if (a.given(i) && is_text(a[i])) return text_of(a[i]).bytes();
  const auto width = static_cast<size_t>(std::max<int64_t>(integer_argument(rt, a, i, otherwise), 0));
  rt.charge(width);
  return std::string(width, ' ');
}

// indent(width=4, first=false, blank=false): the lines after the first, empty ones only with blank.
Value indent(Runtime& rt, const Bound& a) {
  const Text margin(indentation(rt, a, 1, 4), a.given(1) && is_text(a[1]) && text_of(a[1]).from_user());
  const bool first = flag_argument(a, 2, false), blank = flag_argument(a, 3, false);
  Text source = *to_text(rt, a[0]);
  source.append("\n", false);  // keeps a last empty line, as the original does
  const std::vector<Text> lines = split_lines(rt, source, false);
  Text out;
  for (size_t i = 0; i < lines.size(); ++i) {
    rt.charge(margin.footprint() + lines[i].footprint() + 1);
    if (i > 0) out.append("\n", false);
    if (i == 0 ? first : blank || !lines[i].empty()) out.append(margin);
    out.append(lines[i]);
  }
  return rt.text(std::move(out));
}

Value wordcount(Runtime& rt, const Bound& a) {
  const TextPtr text = to_text(rt, a[0]);
  rt.charge(text->size());
  int64_t words = 0;
  bool inside = false;
  for (size_t i = 0; i < text->size(); i += character_size(text->bytes(), i)) {
    const uint32_t c = code_point(text->bytes(), i);
    const bool word = is_letter(c) || is_decimal_digit(c) || c == '_';
    words += word && !inside;
    inside = word;
  }
  return words;
}

Value format(Runtime& rt, const Bound& a) {
  std::vector<Value> rest(a.call.positional.begin() + 1, a.call.positional.end());
  return percent_format(rt, text_argument(rt, a, 0), rt.list(std::move(rest), true));
}

// tojson(indent, ensure_ascii, separators, sort_keys), as chat templates know it: nothing is escaped for
// HTML.
Value tojson(Runtime& rt, const Bound& a) {
  JsonStyle style;
  style.pretty = a.given(1) && !is<None>(a[1]);
  if (style.pretty) {
    style.indent = indentation(rt, a, 1, 0);
    style.item_separator.assign(1, ',');
  }
  style.ascii = flag_argument(a, 2, false);
  if (a.given(3) && is<ListPtr>(a[3]) && list_of(a[3]).items.size() == 2) {
    style.item_separator = to_text(rt, list_of(a[3]).items[0])->bytes();
    style.key_separator = to_text(rt, list_of(a[3]).items[1])->bytes();
  }
  style.sort_keys = flag_argument(a, 4, false);
  Text out;
  write_json(rt, a[0], style, out);
  return rt.text(std::move(out));
}

constexpr Builtin kFilters[] = {
    {"trim", "value chars?", trim},
    {"upper", "s", upper},
    {"lower", "s", lower},
    {"capitalize", "s", capitalize},
    {"title", "s", title},
    {"replace", "s old new count?", replace},
    {"string", "value", string},
    {"safe", "value", safe},
    {"escape", "value", escape},
    {"e", "value", escape},
    {"indent", "s width? first? blank?", indent},
    {"wordcount", "s", wordcount},
    {"format", "value *", format},
    {"tojson", "value indent? ensure_ascii? separators? sort_keys?", tojson},
};

}  // namespace

BuiltinTable text_filters() { return {std::begin(kFilters), std::end(kFilters)}; }

}  // namespace liuli::jinja
