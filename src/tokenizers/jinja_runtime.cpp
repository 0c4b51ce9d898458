#include "tokenizers/jinja_runtime.h"

#include <fmt/format.h>

#include <algorithm>

namespace liuli::jinja {
namespace {

// What a value costs beyond its bytes: the shared block around it, and its places in containers.
constexpr size_t kValueBytes = 96;
constexpr size_t kItemBytes = 32;

}  // namespace

void Runtime::fail(const std::string& what, ErrorCode code) const {
  throw Error(code, fmt::format("chat template line {}: {}", line_, what));
}

void Runtime::step() {
  if (++steps_ > Limits::kSteps) fail(fmt::format("stopped after {} steps", Limits::kSteps));
}

void Runtime::charge(size_t bytes) {
  if (bytes > Limits::kWorkBytes - work_bytes_) {
    fail(fmt::format("stopped: it works on more than {} MiB of text and lists", Limits::kWorkBytes >> 20));
  }
  work_bytes_ += bytes;
}

void Runtime::too_deep() const { fail(fmt::format("recursion deeper than {} levels", Limits::kRecursion)); }

int Runtime::checked_depth(int depth) const {
  if (depth > Limits::kContainerDepth) {
    fail(fmt::format("lists and dicts nested deeper than {} levels", Limits::kContainerDepth));
  }
  return depth;
}

Value Runtime::text(Text text) {
  charge(text.footprint() + kValueBytes);
  return std::make_shared<const Text>(std::move(text));
}

Value Runtime::list(std::vector<Value> items, bool is_tuple) {
  charge(items.size() * kItemBytes + kValueBytes);
  int depth = 1;
  for (const Value& item : items) depth = std::max(depth, depth_of(item) + 1);
  return std::make_shared<const List>(List{std::move(items), is_tuple, checked_depth(depth)});
}

Value Runtime::dict(std::vector<std::pair<Value, Value>> entries) {
  charge(entries.size() * 2 * kItemBytes + kValueBytes);
  int depth = 1;
  for (const auto& [key, value] : entries) depth = std::max({depth, depth_of(key) + 1, depth_of(value) + 1});
  return std::make_shared<const Dict>(Dict{std::move(entries), checked_depth(depth)});
}

Namespace* Runtime::make_namespace() {
  charge(kValueBytes);
  return &namespaces_.emplace_back();
}

void Runtime::set_attribute(Namespace& space, std::string_view name, Value value) {
  charge(space.attributes.size() + name.size() + kItemBytes);
  space.set(name, std::move(value));
}

}  // namespace liuli::jinja
