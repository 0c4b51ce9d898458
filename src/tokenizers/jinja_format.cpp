#include "tokenizers/jinja_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tokenizers/jinja_characters.h"
#include "tokenizers/jinja_operators.h"

namespace liuli::jinja {
namespace {

void repr(Runtime& runtime, const Value& value, Text& out);

// Appends `text` with some characters replaced; escape(code) gives a replacement, or "" to keep the
// character.
template <typename Escape>
void append_escaped(const Text& text, Text& out, Escape escape) {
  const std::string& bytes = text.bytes();
  size_t kept = 0;
  for (size_t i = 0; i < bytes.size();) {
    const size_t size = character_size(bytes, i);
    const std::string replacement = escape(code_point(bytes, i));
    if (!replacement.empty()) {
      out.append_slice(text, kept, i);
      const Text mark = text.slice(i, i + 1);
      out.append(replacement, mark.from_user());
      kept = i + size;
    }
    i += size;
  }
  out.append_slice(text, kept, bytes.size());
}

// Python quotes with ' unless the text has ' and no ".
void repr_text(Runtime& runtime, const Text& text, Text& out) {
  runtime.charge(2 * text.footprint());
  const bool double_quoted =
      text.bytes().find('\'') != std::string::npos && text.bytes().find('"') == std::string::npos;
  const char quote = double_quoted ? '"' : '\'';
  out.append(std::string_view(&quote, 1), false);
  append_escaped(text, out, [&](uint32_t c) -> std::string {
    if (c == '\n') return "\\n";
    if (c == '\r') return "\\r";
    if (c == '\t') return "\\t";
    if (c == '\\') return "\\\\";
    if (c == static_cast<uint32_t>(quote)) return std::string("\\") + quote;
    return c < 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0xAD ? fmt::format("\\x{:02x}", c) : "";
  });
  out.append(std::string_view(&quote, 1), false);
}

void repr_list(Runtime& runtime, const List& list, Text& out) {
  out.append(list.is_tuple ? "(" : "[", false);
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out.append(", ", false);
    repr(runtime, list.items[i], out);
  }
  if (list.is_tuple && list.items.size() == 1) out.append(",", false);
  out.append(list.is_tuple ? ")" : "]", false);
}

void repr_dict(Runtime& runtime, const Dict& dict, Text& out) {
  out.append("{", false);
  for (size_t i = 0; i < dict.entries.size(); ++i) {
    if (i > 0) out.append(", ", false);
    repr(runtime, dict.entries[i].first, out);
    out.append(": ", false);
    repr(runtime, dict.entries[i].second, out);
  }
  out.append("}", false);
}

void repr(Runtime& runtime, const Value& value, Text& out) {
  runtime.charge(
      4);  // brackets and commas; also ends the walk of a value that shares its parts many times over
  if (is_text(value)) return repr_text(runtime, text_of(value), out);
  if (is_undefined(value)) return out.append("Undefined", false);
  print(runtime, value, out);
}

std::string json_escape(uint32_t c, bool ascii) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    default:
      break;
  }
  if (c < 0x20 || (ascii && c > 0x7E && c < 0x10000)) return fmt::format("\\u{:04x}", c);
  if (!ascii || c < 0x10000) return "";
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + ((c - 0x10000) & 0x3FF));
}

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const JsonStyle& style, Text& out)
      : runtime_(runtime), style_(style), out_(out) {}

  void write(const Value& value, int level) {
    runtime_.charge(4);
    if (is_text(value)) return quoted(text_of(value));
    if (is<ListPtr>(value)) return list(list_of(value), level);
    if (is<DictPtr>(value)) return dict(dict_of(value), level);
    plain(scalar(value));
  }

 private:
  void plain(std::string_view bytes) { out_.append(bytes, false); }

  void quoted(const Text& text) {
    runtime_.charge(2 * text.footprint());
    plain("\"");
    append_escaped(text, out_, [&](uint32_t c) { return json_escape(c, style_.ascii); });
    plain("\"");
  }

  std::string scalar(const Value& value) const {
    if (is<None>(value)) return "null";
    if (is<bool>(value)) return std::get<bool>(value) ? "true" : "false";
    if (is<int64_t>(value)) return std::to_string(std::get<int64_t>(value));
    if (!is<double>(value)) runtime_.fail(fmt::format("{} has no JSON", type_name(value)));
    const double d = std::get<double>(value);
    if (std::isfinite(d)) return float_text(d);
    return std::isnan(d) ? "NaN" : d > 0 ? "Infinity" : "-Infinity";
  }

  void separator(size_t i, int level) {
    if (i > 0) plain(style_.item_separator);
    new_line(level);
  }

  void new_line(int level) {
    if (!style_.pretty) return;
    runtime_.charge(static_cast<size_t>(level) * style_.indent.size() + 1);
    plain("\n");
    for (int k = 0; k < level; ++k) plain(style_.indent);
  }

  void list(const List& list, int level) {
    if (list.items.empty()) return plain("[]");
    plain("[");
    for (size_t i = 0; i < list.items.size(); ++i) {
      separator(i, level + 1);
      write(list.items[i], level + 1);
    }
    new_line(level);
    plain("]");
  }

  void dict(const Dict& dict, int level) {
    if (dict.entries.empty()) return plain("{}");
    std::vector<std::pair<Value, Value>> sorted;
    if (style_.sort_keys) sorted = sorted_entries(dict);
    const auto& entries = style_.sort_keys ? sorted : dict.entries;
    plain("{");
    for (size_t i = 0; i < entries.size(); ++i) {
      separator(i, level + 1);
      key(entries[i].first);
      plain(style_.key_separator);
      write(entries[i].second, level + 1);
    }
    new_line(level);
    plain("}");
  }

  std::vector<std::pair<Value, Value>> sorted_entries(const Dict& dict) {
    runtime_.charge(dict.entries.size() * sizeof(Value) * 2);
    auto entries = dict.entries;
    std::stable_sort(entries.begin(), entries.end(),
                     [&](const auto& a, const auto& b) { return order(runtime_, a.first, b.first) < 0; });
    return entries;
  }

  void key(const Value& value) {
    if (is_text(value)) return quoted(text_of(value));
    if (is<ListPtr>(value)) runtime_.fail("a tuple cannot be a JSON key");
    plain("\"");
    plain(scalar(value));
    plain("\"");
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  Text& out_;
};

}  // namespace

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string digits = fmt::format("{}", value);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits;
}

void print(Runtime& runtime, const Value& value, Text& out) {
  if (is_text(value)) {
    runtime.charge(text_of(value).footprint());
    return out.append(text_of(value));
  }
  if (is_undefined(value)) return;
  if (is<ListPtr>(value)) return repr_list(runtime, list_of(value), out);
  if (is<DictPtr>(value)) return repr_dict(runtime, dict_of(value), out);
  if (is<None>(value)) return out.append("None", false);
  if (is<bool>(value)) return out.append(std::get<bool>(value) ? "True" : "False", false);
  if (is<int64_t>(value)) return out.append(std::to_string(std::get<int64_t>(value)), false);
  if (is<double>(value)) return out.append(float_text(std::get<double>(value)), false);
  runtime.fail(fmt::format("a {} cannot be printed", type_name(value)));
}

TextPtr to_text(Runtime& runtime, const Value& value) {
  if (is_text(value)) return std::get<TextPtr>(value);
  Text out;
  print(runtime, value, out);
  return std::get<TextPtr>(runtime.text(std::move(out)));
}

void write_json(Runtime& runtime, const Value& value, const JsonStyle& style, Text& out) {
  JsonWriter(runtime, style, out).write(value, 0);
}

Value percent_format(Runtime& runtime, const Text& pattern, const Value& values) {
  const bool several = is<ListPtr>(values) && list_of(values).is_tuple;
  const std::vector<Value> arguments = several ? list_of(values).items : std::vector<Value>{values};
  runtime.charge(pattern.footprint());
  Text out;
  size_t used = 0, kept = 0;
  for (size_t i = pattern.bytes().find('%'); i != std::string::npos; i = pattern.bytes().find('%', i + 2)) {
    out.append_slice(pattern, kept, i);
    kept = std::min(i + 2, pattern.size());
    const char kind = i + 1 < pattern.size() ? pattern.bytes()[i + 1] : '\0';
    if (kind == '%') {
      out.append_slice(pattern, i, i + 1);
      continue;
    }
    if (std::string_view("sdir").find(kind) == std::string_view::npos) {
      runtime.fail("'%' formatting other than %s %d %i %r is not supported", ErrorCode::unsupported);
    }
    if (used == arguments.size()) runtime.fail("not enough values for the '%' format");
    const Value& value = arguments[used++];
    const bool wants_number = kind == 'd' || kind == 'i';
    if (wants_number && !is_number(value))
      runtime.fail(fmt::format("%{} needs a number, not {}", kind, type_name(value)));
    if (wants_number && is<double>(value)) {
      out.append(fmt::format("{:.0f}", std::trunc(std::get<double>(value))), false);
    } else if (wants_number) {
      out.append(std::to_string(integer_of(value)), false);
    } else {
      kind == 'r' ? repr(runtime, value, out) : print(runtime, value, out);
    }
  }
  if (used < arguments.size() && !is<DictPtr>(values)) runtime.fail("too many values for the '%' format");
  out.append_slice(pattern, kept, pattern.size());
  return runtime.text(std::move(out));
}

}  // namespace liuli::jinja
