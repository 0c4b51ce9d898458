// What text filters and text methods share; each keeps the marks of user bytes.
#include <algorithm>

#include "tokenizers/jinja_builtins.h"
#include "tokenizers/jinja_format.h"

namespace liuli::jinja {
namespace {

bool is_among(std::string_view character, std::string_view set) {
  for (size_t i = 0; i < set.size(); i += character_size(set, i)) {
    if (set.substr(i, character_size(set, i)) == character) return true;
  }
  return false;
}

// Python's str.splitlines: also \v \f, the separators 1C–1E, NEL and U+2028/2029.
bool is_line_end(uint32_t c) {
  return (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

// An empty `from` matches between all characters, as in Python.
Value interleaved(Runtime& runtime, const Text& text, const Text& to, int64_t limit) {
  const std::string& bytes = text.bytes();
  Text out;
  for (size_t i = 0; i <= bytes.size();) {
    if (limit-- != 0) {
      runtime.charge(to.footprint());
      out.append(to);
    } else {
      out.append_slice(text, i, bytes.size());
      break;
    }
    if (i == bytes.size()) break;
    const size_t size = character_size(bytes, i);
    out.append_slice(text, i, i + size);
    i += size;
  }
  return runtime.text(std::move(out));
}

}  // namespace

Value replaced(Runtime& runtime, const Text& text, const Text& from, const Text& to, int64_t limit) {
  runtime.charge(text.footprint() + from.size());
  if (from.empty()) return interleaved(runtime, text, to, limit);
  Text out;
  size_t kept = 0;
  for (size_t i = find_text(text.bytes(), from.bytes(), 0); i != std::string::npos && limit != 0; --limit) {
    runtime.charge(to.footprint() + from.size());
    out.append_slice(text, kept, i);
    out.append(to);
    kept = i + from.size();
    i = find_text(text.bytes(), from.bytes(), kept);
  }
  out.append_slice(text, kept, text.size());
  return runtime.text(std::move(out));
}

Value in_case(Runtime& runtime, const Text& text, Case to) {
  runtime.charge(text.footprint());
  Text out;
  out.reserve(text.size());
  const std::string& bytes = text.bytes();
  for (size_t i = 0; i < bytes.size();) {
    const size_t size = character_size(bytes, i);
    const std::string_view character = std::string_view(bytes).substr(i, size);
    const std::string changed = change_case(character, to);
    // Unchanged characters are copied with their marks; a changed one takes the mark of the one it replaces.
    if (changed == character) {
      out.append_slice(text, i, i + size);
    } else {
      out.append(changed, text.from_user() && text.slice(i, i + size).from_user());
    }
    i += size;
  }
  return runtime.text(std::move(out));
}

Value capitalized(Runtime& runtime, const Text& text) {
  const size_t first = text.empty() ? 0 : character_size(text.bytes(), 0);
  Text out = *std::get<TextPtr>(in_case(runtime, text.slice(0, first), Case::title));
  out.append(*std::get<TextPtr>(in_case(runtime, text.slice(first, text.size()), Case::lower)));
  return runtime.text(std::move(out));
}

Value stripped(Runtime& runtime, const Text& text, const Text* characters, bool left, bool right) {
  runtime.charge(text.footprint());
  const std::string_view bytes = text.bytes();
  size_t begin = 0, end = bytes.size();
  if (!characters) {
    if (left) begin = strip_left(bytes);
    if (right && begin < end) end = strip_right(bytes, end);
    return runtime.text(text.slice(begin, end));
  }
  const std::string_view set = characters->bytes();
  while (left && begin < end) {
    runtime.charge(set.size());
    const size_t size = character_size(bytes, begin);
    if (!is_among(bytes.substr(begin, size), set)) break;
    begin += size;
  }
  while (right && begin < end) {
    runtime.charge(set.size());
    size_t last = end - 1;
    while (last > begin && (bytes[last] & 0xC0) == 0x80) --last;
    if (!is_among(bytes.substr(last, end - last), set)) break;
    end = last;
  }
  return runtime.text(text.slice(begin, end));
}

Value joined(Runtime& runtime, const Text& separator, const std::vector<Value>& items) {
  Text out;
  for (size_t i = 0; i < items.size(); ++i) {
    runtime.charge(separator.footprint());
    if (i > 0) out.append(separator);
    print(runtime, items[i], out);
  }
  return runtime.text(std::move(out));
}

std::vector<Text> split_lines(Runtime& runtime, const Text& text, bool keep_ends) {
  runtime.charge(2 * text.footprint());
  const std::string& bytes = text.bytes();
  std::vector<Text> lines;
  size_t begin = 0;
  for (size_t i = 0; i < bytes.size();) {
    const size_t at = i;
    const uint32_t c = code_point(bytes, i);
    i += character_size(bytes, i);
    if (!is_line_end(c)) continue;
    if (c == '\r' && i < bytes.size() && bytes[i] == '\n') ++i;
    runtime.charge(sizeof(Text));
    lines.push_back(text.slice(begin, keep_ends ? i : at));
    begin = i;
  }
  if (begin < bytes.size()) lines.push_back(text.slice(begin, bytes.size()));
  return lines;
}

}  // namespace liuli::jinja
