// Reaching into values: attributes, items, slices, iteration, length.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "tokenizers/jinja_builtins.h"
#include "tokenizers/jinja_operators.h"

namespace liuli::jinja {
namespace {

Value neighbour(const Loop& loop, size_t index) {
  return index < loop.items->items.size() ? loop.items->items[index] : Value(Undefined{"loop neighbour"});
}

Value loop_attribute(Runtime& runtime, const std::shared_ptr<Loop>& loop, std::string_view name) {
  const auto n = static_cast<int64_t>(loop->items->items.size());
  const auto i = static_cast<int64_t>(loop->index);
  if (name == "index") return i + 1;
  if (name == "index0") return i;
  if (name == "revindex") return n - i;
  if (name == "revindex0") return n - i - 1;
  if (name == "first") return i == 0;
  if (name == "last") return i + 1 == n;
  if (name == "length") return n;
  if (name == "depth") return int64_t{1};  // counts recursive loops, which are not supported
  if (name == "depth0") return int64_t{0};
  if (name == "previtem") return neighbour(*loop, loop->index - 1);
  if (name == "nextitem") return neighbour(*loop, loop->index + 1);
  if (name == "changed") runtime.fail("loop.changed is not supported", ErrorCode::unsupported);
  return Undefined{name};
}

// The method or member, without looking at a dict's keys. Undefined if there is none.
Value member(Runtime& runtime, const Value& object, std::string_view name) {
  if (const Builtin* method = find_method(runtime, object, name)) {
    runtime.charge(sizeof(Callable));
    Callable bound;
    bound.builtin = method;
    bound.self = object;
    bound.has_self = true;
    return std::make_shared<const Callable>(std::move(bound));
  }
  if (is<Namespace*>(object)) {
    const Namespace& space = *std::get<Namespace*>(object);
    runtime.charge(space.attributes.size());
    const Value* found = space.find(name);
    return found ? *found : Value(Undefined{name});
  }
  if (is<std::shared_ptr<Loop>>(object)) {
    return loop_attribute(runtime, std::get<std::shared_ptr<Loop>>(object), name);
  }
  return Undefined{name};
}

void refuse_undefined(Runtime& runtime, const Value& object) {
  if (is_undefined(object)) {
    runtime.fail(fmt::format("'{}' is undefined", std::string(std::get<Undefined>(object).name)));
  }
}

Value indexed(Runtime& runtime, const Value& object, int64_t index) {
  if (is<ListPtr>(object)) {
    const auto& items = list_of(object).items;
    if (index < 0) index += static_cast<int64_t>(items.size());
    const bool inside = index >= 0 && index < static_cast<int64_t>(items.size());
    return inside ? items[static_cast<size_t>(index)] : Value(Undefined{"list item"});
  }
  const Text& text = text_of(object);
  runtime.charge(text.size());
  if (index < 0) index += static_cast<int64_t>(character_count(text.bytes()));
  const size_t begin = index < 0 ? text.size() : byte_offset(text.bytes(), static_cast<size_t>(index));
  if (begin >= text.size()) return Undefined{"character"};
  return runtime.text(text.slice(begin, begin + character_size(text.bytes(), begin)));
}

// Python's clamping of slice bounds: begin and end as indices that step visits.
struct Bounds {
  int64_t begin, end, step;
};

int64_t slice_part(Runtime& runtime, const Value& part, int64_t otherwise) {
  if (is<None>(part)) return otherwise;
  if (!is_integral(part)) runtime.fail(fmt::format("a slice needs integers, not {}", type_name(part)));
  return integer_of(part);
}

int64_t clamped(int64_t index, int64_t n, bool backwards) {
  if (index < 0) index = index < -n ? -1 : index + n;
  return backwards ? std::clamp<int64_t>(index, -1, n - 1) : std::clamp<int64_t>(index, 0, n);
}

Bounds bounds_of(Runtime& runtime, const Value& begin, const Value& end, const Value& step, int64_t n) {
  const int64_t stride = slice_part(runtime, step, 1);
  if (stride == 0) runtime.fail("a slice's step is zero");
  const bool backwards = stride < 0;
  Bounds b{backwards ? n - 1 : 0, backwards ? -1 : n, std::clamp<int64_t>(stride, -n - 1, n + 1)};
  if (!is<None>(begin)) b.begin = clamped(slice_part(runtime, begin, 0), n, backwards);
  if (!is<None>(end)) b.end = clamped(slice_part(runtime, end, 0), n, backwards);
  return b;
}

template <typename Visit>
void visit_slice(const Bounds& b, Visit visit) {
  for (int64_t i = b.begin; b.step > 0 ? i < b.end : i > b.end; i += b.step) visit(static_cast<size_t>(i));
}

Value text_slice(Runtime& runtime, const Text& text, const Value& begin, const Value& end,
                 const Value& step) {
  runtime.charge(text.size());
  const std::string& bytes = text.bytes();
  const Bounds b = bounds_of(runtime, begin, end, step, static_cast<int64_t>(character_count(bytes)));
  if (b.step == 1) {
    const size_t from = byte_offset(bytes, static_cast<size_t>(b.begin));
    const auto n = static_cast<size_t>(std::max<int64_t>(b.end - b.begin, 0));
    return runtime.text(text.slice(from, from + byte_offset(std::string_view(bytes).substr(from), n)));
  }
  runtime.charge(bytes.size() * sizeof(size_t));
  std::vector<size_t> starts;
  for (size_t i = 0; i < bytes.size(); i += character_size(bytes, i)) starts.push_back(i);
  Text picked;
  visit_slice(b, [&](size_t i) {
    picked.append_slice(text, starts[i], i + 1 < starts.size() ? starts[i + 1] : bytes.size());
  });
  return runtime.text(std::move(picked));
}

std::vector<Value> characters(Runtime& runtime, const Text& text) {
  std::vector<Value> items;
  for (size_t i = 0; i < text.size();) {
    const size_t size = character_size(text.bytes(), i);
    items.push_back(runtime.text(text.slice(i, i + size)));
    i += size;
  }
  return items;
}

}  // namespace

// a.name prefers methods (message.items is the method even if there is a key), a['name'] prefers keys.
Value attribute(Runtime& runtime, const Value& object, std::string_view name) {
  refuse_undefined(runtime, object);
  Value found = member(runtime, object, name);
  if (!is_undefined(found) || !is<DictPtr>(object)) return found;
  runtime.charge(dict_of(object).entries.size());
  const Value* value = dict_of(object).find(name);
  return value ? *value : Value(Undefined{name});
}

Value item(Runtime& runtime, const Value& object, const Value& key) {
  refuse_undefined(runtime, object);
  if (is<DictPtr>(object)) {
    if (const Value* value = dict_find(runtime, dict_of(object), key)) return *value;
  } else if (is_integral(key) && (is<ListPtr>(object) || is_text(object))) {
    return indexed(runtime, object, integer_of(key));
  }
  if (!is_text(key)) return Undefined{"item"};
  Value found = member(runtime, object, text_of(key).bytes());
  return is_undefined(found) ? Value(Undefined{"item"})
                             : found;  // the name must not point into a passing text
}

Value slice(Runtime& runtime, const Value& object, const Value& begin, const Value& end, const Value& step) {
  refuse_undefined(runtime, object);
  if (is_text(object)) return text_slice(runtime, text_of(object), begin, end, step);
  if (!is<ListPtr>(object)) runtime.fail(fmt::format("cannot slice {}", type_name(object)));
  const List& list = list_of(object);
  const Bounds b = bounds_of(runtime, begin, end, step, static_cast<int64_t>(list.items.size()));
  std::vector<Value> picked;
  visit_slice(b, [&](size_t i) { picked.push_back(list.items[i]); });
  return runtime.list(std::move(picked), list.is_tuple);
}

Value attribute_path(Runtime& runtime, const Value& object, const Value& path) {
  if (!is_text(path)) return item(runtime, object, path);
  Value value = object;
  const std::string_view names = text_of(path).bytes();
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find('.', begin), names.size());
    const std::string_view name = names.substr(begin, end - begin);
    int64_t index = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool is_index =
        !name.empty() && parsed.ec == std::errc{} && parsed.ptr == name.data() + name.size();
    value = item(runtime, value, is_index ? Value(index) : runtime.text(std::string(name), false));
    begin = end + 1;
  }
  return value;
}

ListPtr iterate(Runtime& runtime, const Value& value) {
  if (is<ListPtr>(value)) return std::get<ListPtr>(value);
  if (is_undefined(value)) return std::make_shared<const List>();
  if (is_text(value)) return std::get<ListPtr>(runtime.list(characters(runtime, text_of(value))));
  if (!is<DictPtr>(value)) runtime.fail(fmt::format("cannot iterate over {}", type_name(value)));
  std::vector<Value> keys;
  for (const auto& entry : dict_of(value).entries) keys.push_back(entry.first);
  return std::get<ListPtr>(runtime.list(std::move(keys)));
}

int64_t length(Runtime& runtime, const Value& value) {
  if (is_undefined(value)) return 0;
  if (is<ListPtr>(value)) return static_cast<int64_t>(list_of(value).items.size());
  if (is<DictPtr>(value)) return static_cast<int64_t>(dict_of(value).entries.size());
  if (!is_text(value)) runtime.fail(fmt::format("{} has no length", type_name(value)));
  runtime.charge(text_of(value).size());
  return static_cast<int64_t>(character_count(text_of(value).bytes()));
}

}  // namespace liuli::jinja
