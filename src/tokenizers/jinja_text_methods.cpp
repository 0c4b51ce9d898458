// Methods of strings, as Python has them.
#include <fmt/format.h>

#include <algorithm>

#include "tokenizers/jinja_builtins.h"
#include "tokenizers/jinja_format.h"
#include "tokenizers/jinja_operators.h"

namespace liuli::jinja {
namespace {

const Text& self(const Bound& a) { return text_of(a[0]); }

Value strip_ends(Runtime& rt, const Bound& a, bool left, bool right) {
  const bool everything = !a.given(1) || is<None>(a[1]);
  return stripped(rt, self(a), everything ? nullptr : &text_argument(rt, a, 1), left, right);
}
Value strip(Runtime& rt, const Bound& a) { return strip_ends(rt, a, true, true); }
Value lstrip(Runtime& rt, const Bound& a) { return strip_ends(rt, a, true, false); }
Value rstrip(Runtime& rt, const Bound& a) { return strip_ends(rt, a, false, true); }

using Pieces = std::vector<std::pair<size_t, size_t>>;  // begin and end of each part

// Parts between white space; `limit` splits at most, the rest (without leading white space) is the last part.
Pieces words(const std::string& bytes, int64_t limit) {
  Pieces pieces;
  size_t i = strip_left(bytes);
  while (i < bytes.size()) {
    if (limit-- == 0) {
      pieces.emplace_back(i, strip_right(bytes, bytes.size()));
      break;
    }
    const size_t begin = i;
    while (i < bytes.size() && !is_space(code_point(bytes, i))) i += character_size(bytes, i);
    pieces.emplace_back(begin, i);
    i += strip_left(std::string_view(bytes).substr(i));
  }
  return pieces;
}

Pieces parts(const std::string& bytes, const std::string& separator, int64_t limit) {
  Pieces pieces;
  size_t begin = 0;
  for (size_t i = find_text(bytes, separator, 0); i != std::string::npos && limit != 0; --limit) {
    pieces.emplace_back(begin, i);
    begin = i + separator.size();
    i = find_text(bytes, separator, begin);
  }
  pieces.emplace_back(begin, bytes.size());
  return pieces;
}

// Like parts, counting the limit from the right.
Pieces parts_from_right(const std::string& bytes, const std::string& separator, int64_t limit) {
  Pieces pieces;
  size_t end = bytes.size();
  while (limit-- != 0 && end >= separator.size()) {
    const size_t i = bytes.rfind(separator, end - separator.size());
    if (i == std::string::npos) break;
    pieces.emplace_back(i + separator.size(), end);
    end = i;
  }
  pieces.emplace_back(0, end);
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

Value sliced(Runtime& rt, const Text& text, const Pieces& pieces) {
  std::vector<Value> items;
  for (const auto& [begin, end] : pieces) items.push_back(rt.text(text.slice(begin, end)));
  return rt.list(std::move(items));
}

Value split_by(Runtime& rt, const Bound& a, bool from_right) {
  const std::string& bytes = self(a).bytes();
  const int64_t limit = integer_argument(rt, a, 2, -1);
  rt.charge(bytes.size());
  if (!a.given(1) || is<None>(a[1])) {
    if (from_right && limit >= 0)
      rt.fail("rsplit at white space with a limit is not supported", ErrorCode::unsupported);
    return sliced(rt, self(a), words(bytes, limit));
  }
  const std::string& separator = text_argument(rt, a, 1).bytes();
  if (separator.empty()) rt.fail("split: the separator is empty");
  // Backwards there is no linear search; the length of the separator is the price of the simple one.
  rt.charge(from_right && limit >= 0 ? bytes.size() / 16 * separator.size() : separator.size());
  const bool backwards = from_right && limit >= 0;
  return sliced(rt, self(a),
                backwards ? parts_from_right(bytes, separator, limit) : parts(bytes, separator, limit));
}
Value split(Runtime& rt, const Bound& a) { return split_by(rt, a, false); }
Value rsplit(Runtime& rt, const Bound& a) { return split_by(rt, a, true); }

Value splitlines(Runtime& rt, const Bound& a) {
  std::vector<Value> items;
  for (Text& line : split_lines(rt, self(a), flag_argument(a, 1, false)))
    items.push_back(rt.text(std::move(line)));
  return rt.list(std::move(items));
}

Value cut_in_three(Runtime& rt, const Bound& a, size_t at, bool whole_first) {
  const Text& text = self(a);
  const Text& separator = text_argument(rt, a, 1);
  if (separator.empty()) rt.fail("partition: the separator is empty");
  const Value empty = rt.text("", false);
  if (at == std::string::npos) {
    return rt.list(
        whole_first ? std::vector<Value>{a[0], empty, empty} : std::vector<Value>{empty, empty, a[0]}, true);
  }
  return rt.list({rt.text(text.slice(0, at)), a[1], rt.text(text.slice(at + separator.size(), text.size()))},
                 true);
}

size_t first_place(Runtime& rt, const Bound& a) {
  rt.charge(self(a).size() + text_argument(rt, a, 1).size());
  return find_text(self(a).bytes(), text_argument(rt, a, 1).bytes(), 0);
}

size_t last_place(Runtime& rt, const Bound& a) {
  rt.charge(self(a).size() + self(a).size() / 16 * text_argument(rt, a, 1).size());
  return self(a).bytes().rfind(text_argument(rt, a, 1).bytes());
}

Value partition(Runtime& rt, const Bound& a) { return cut_in_three(rt, a, first_place(rt, a), true); }
Value rpartition(Runtime& rt, const Bound& a) { return cut_in_three(rt, a, last_place(rt, a), false); }

// Places are counted in characters.
Value place(const Bound& a, size_t at) {
  if (at == std::string::npos) return int64_t{-1};
  return static_cast<int64_t>(character_count(std::string_view(self(a).bytes()).substr(0, at)));
}
Value find(Runtime& rt, const Bound& a) { return place(a, first_place(rt, a)); }
Value rfind(Runtime& rt, const Bound& a) { return place(a, last_place(rt, a)); }
Value index(Runtime& rt, const Bound& a) {
  const size_t at = first_place(rt, a);
  if (at == std::string::npos) rt.fail("index: the substring is not there");
  return place(a, at);
}

Value count(Runtime& rt, const Bound& a) {
  const std::string& separator = text_argument(rt, a, 1).bytes();
  rt.charge(self(a).size() + separator.size());
  if (separator.empty()) return static_cast<int64_t>(character_count(self(a).bytes()) + 1);
  return static_cast<int64_t>(parts(self(a).bytes(), separator, -1).size() - 1);
}

bool affix_matches(const std::string& bytes, const std::string& affix, bool at_end) {
  return affix.size() <= bytes.size() &&
         bytes.compare(at_end ? bytes.size() - affix.size() : 0, affix.size(), affix) == 0;
}

// One affix or a tuple of them.
Value has_affix(Runtime& rt, const Bound& a, bool at_end) {
  const bool several = is<ListPtr>(a[1]) && list_of(a[1]).is_tuple;
  for (const Value& affix : several ? list_of(a[1]).items : std::vector<Value>{a[1]}) {
    if (!is_text(affix))
      rt.fail(fmt::format("{}: expected a string, not {}", a.builtin.name, type_name(affix)));
    rt.charge(text_of(affix).size());
    if (affix_matches(self(a).bytes(), text_of(affix).bytes(), at_end)) return true;
  }
  return false;
}
Value startswith(Runtime& rt, const Bound& a) { return has_affix(rt, a, false); }
Value endswith(Runtime& rt, const Bound& a) { return has_affix(rt, a, true); }

Value removeprefix(Runtime& rt, const Bound& a) {
  const std::string& affix = text_argument(rt, a, 1).bytes();
  if (!affix_matches(self(a).bytes(), affix, false)) return a[0];
  return rt.text(self(a).slice(affix.size(), self(a).size()));
}
Value removesuffix(Runtime& rt, const Bound& a) {
  const std::string& affix = text_argument(rt, a, 1).bytes();
  if (!affix_matches(self(a).bytes(), affix, true)) return a[0];
  return rt.text(self(a).slice(0, self(a).size() - affix.size()));
}

Value replace(Runtime& rt, const Bound& a) {
  return replaced(rt, self(a), text_argument(rt, a, 1), text_argument(rt, a, 2),
                  integer_argument(rt, a, 3, -1));
}

Value upper(Runtime& rt, const Bound& a) { return in_case(rt, self(a), Case::upper); }
Value lower(Runtime& rt, const Bound& a) { return in_case(rt, self(a), Case::lower); }
Value capitalize(Runtime& rt, const Bound& a) { return capitalized(rt, self(a)); }

Value title(Runtime& rt, const Bound& a) {
  const std::string& bytes = self(a).bytes();
  Text out;
  bool inside = false;
  for (size_t i = 0; i < bytes.size();) {
    const size_t size = character_size(bytes, i);
    out.append(
        *std::get<TextPtr>(in_case(rt, self(a).slice(i, i + size), inside ? Case::lower : Case::title)));
    inside = is_letter(code_point(bytes, i));
    i += size;
  }
  return rt.text(std::move(out));
}

Value join(Runtime& rt, const Bound& a) {
  const ListPtr items = iterate(rt, a[1]);
  for (const Value& item : items->items) {
    if (!is_text(item)) rt.fail(fmt::format("join: expected strings, found {}", type_name(item)));
  }
  return joined(rt, self(a), items->items);
}

bool all_characters(Runtime& rt, const Bound& a, bool (*holds)(uint32_t)) {
  const std::string& bytes = self(a).bytes();
  rt.charge(bytes.size());
  for (size_t i = 0; i < bytes.size(); i += character_size(bytes, i)) {
    if (!holds(code_point(bytes, i))) return false;
  }
  return !bytes.empty();
}
Value isdigit(Runtime& rt, const Bound& a) { return all_characters(rt, a, is_decimal_digit); }
Value isalpha(Runtime& rt, const Bound& a) { return all_characters(rt, a, is_letter); }
Value isspace(Runtime& rt, const Bound& a) { return all_characters(rt, a, is_space); }
Value isalnum(Runtime& rt, const Bound& a) {
  return all_characters(rt, a, [](uint32_t c) { return is_letter(c) || is_decimal_digit(c); });
}
Value isupper(Runtime& rt, const Bound& a) { return invoke(rt, *find_test("upper"), {{a[0]}, {}}); }
Value islower(Runtime& rt, const Bound& a) { return invoke(rt, *find_test("lower"), {{a[0]}, {}}); }

// The value that {}, {0} or {name} of a format string stands for.
Value format_field(Runtime& rt, const Bound& a, std::string_view field, size_t& next) {
  const auto& positional = a.call.positional;
  for (const auto& [name, value] : a.call.named) {
    if (name == field) return value;
  }
  if (field.find_first_not_of("0123456789") != std::string_view::npos || field.size() > 6) {
    rt.fail("format: only {}, {0} and {name} are supported", ErrorCode::unsupported);
  }
  const size_t i = field.empty() ? next++ : static_cast<size_t>(std::stoi(std::string(field)));
  if (i + 1 >= positional.size()) rt.fail(fmt::format("format: there is no argument {}", i));
  return positional[i + 1];
}

Value format(Runtime& rt, const Bound& a) {
  const Text& pattern = self(a);
  const std::string& bytes = pattern.bytes();
  rt.charge(pattern.footprint());
  Text out;
  size_t next = 0;
  for (size_t i = 0; i < bytes.size();) {
    const bool brace = bytes[i] == '{' || bytes[i] == '}';
    if (!brace || (i + 1 < bytes.size() && bytes[i + 1] == bytes[i])) {
      out.append_slice(pattern, i, i + 1);
      i += brace ? 2 : 1;
      continue;
    }
    const size_t close = bytes.find('}', i);
    if (bytes[i] == '}' || close == std::string::npos) rt.fail("format: a brace is not closed or not opened");
    print(rt, format_field(rt, a, std::string_view(bytes).substr(i + 1, close - i - 1), next), out);
    i = close + 1;
  }
  return rt.text(std::move(out));
}

Value zfill(Runtime& rt, const Bound& a) {
  const std::string& bytes = self(a).bytes();
  const auto width = static_cast<size_t>(std::max<int64_t>(integer_argument(rt, a, 1, 0), 0));
  const size_t n = character_count(bytes);
  if (n >= width) return a[0];
  rt.charge(width);
  const size_t sign = !bytes.empty() && (bytes[0] == '-' || bytes[0] == '+') ? 1 : 0;
  Text out = self(a).slice(0, sign);
  out.append(std::string(width - n, '0'), false);
  out.append_slice(self(a), sign, bytes.size());
  return rt.text(std::move(out));
}

constexpr Builtin kMethods[] = {
    {"strip", "self chars?", strip},
    {"lstrip", "self chars?", lstrip},
    {"rstrip", "self chars?", rstrip},
    {"split", "self sep? maxsplit?", split},
    {"rsplit", "self sep? maxsplit?", rsplit},
    {"splitlines", "self keepends?", splitlines},
    {"partition", "self sep", partition},
    {"rpartition", "self sep", rpartition},
    {"startswith", "self prefix", startswith},
    {"endswith", "self suffix", endswith},
    {"removeprefix", "self prefix", removeprefix},
    {"removesuffix", "self suffix", removesuffix},
    {"replace", "self old new count?", replace},
    {"upper", "self", upper},
    {"lower", "self", lower},
    {"casefold", "self", lower},
    {"capitalize", "self", capitalize},
    {"title", "self", title},
    {"join", "self iterable", join},
    {"find", "self sub", find},
    {"rfind", "self sub", rfind},
    {"index", "self sub", index},
    {"count", "self sub", count},
    {"format", "self *", format},
    {"zfill", "self width", zfill},
    {"isdigit", "self", isdigit},
    {"isdecimal", "self", isdigit},
    {"isnumeric", "self", isdigit},
    {"isalpha", "self", isalpha},
    {"isalnum", "self", isalnum},
    {"isspace", "self", isspace},
    {"isupper", "self", isupper},
    {"islower", "self", islower},
};

}  // namespace

BuiltinTable text_methods() { return {std::begin(kMethods), std::end(kMethods)}; }

}  // namespace liuli::jinja
