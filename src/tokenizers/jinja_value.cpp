#include "tokenizers/jinja_value.h"

#include <algorithm>

namespace liuli::jinja {

const Value* Dict::find(std::string_view key) const {
  for (const auto& [k, v] : entries) {
    if (is_text(k) && text_of(k).bytes() == key) return &v;
  }
  return nullptr;
}

const Value* Namespace::find(std::string_view name) const {
  for (const auto& [k, v] : attributes) {
    if (k == name) return &v;
  }
  return nullptr;
}

void Namespace::set(std::string_view name, Value value) {
  for (auto& [k, v] : attributes) {
    if (k == name) {
      v = std::move(value);
      return;
    }
  }
  attributes.emplace_back(name, std::move(value));
}

const char* type_name(const Value& value) {
  static constexpr const char* kNames[] = {"undefined", "None", "bool",      "int",  "float",   "string",
                                           "list",      "dict", "namespace", "loop", "function"};
  if (is<ListPtr>(value) && list_of(value).is_tuple) return "tuple";
  return kNames[value.index()];
}

namespace {

struct Truth {
  bool operator()(const Undefined&) const { return false; }
  bool operator()(const None&) const { return false; }
  bool operator()(bool b) const { return b; }
  bool operator()(int64_t i) const { return i != 0; }
  bool operator()(double d) const { return d != 0; }
  bool operator()(const TextPtr& t) const { return !t->empty(); }
  bool operator()(const ListPtr& l) const { return !l->items.empty(); }
  bool operator()(const DictPtr& d) const { return !d->entries.empty(); }
  template <typename Other>
  bool operator()(const Other&) const {
    return true;
  }
};

}  // namespace

bool is_true(const Value& value) { return std::visit(Truth{}, value); }

int depth_of(const Value& value) {
  if (is<ListPtr>(value)) return list_of(value).depth;
  if (is<DictPtr>(value)) return dict_of(value).depth;
  if (is<std::shared_ptr<Loop>>(value)) return std::get<std::shared_ptr<Loop>>(value)->items->depth + 1;
  if (is<std::shared_ptr<const Callable>>(value)) {
    // A bound method keeps its value alive: it counts as a container of one.
    const Callable& callable = *std::get<std::shared_ptr<const Callable>>(value);
    return callable.has_self ? depth_of(callable.self) + 1 : 0;
  }
  return 0;
}

double double_of(const Value& value) {
  return is<double>(value) ? std::get<double>(value) : static_cast<double>(integer_of(value));
}

}  // namespace liuli::jinja
