#include "formats/json_metadata.h"

#include <algorithm>

#include "formats/byte_cursor.h"
#include "formats/strict_json.h"
#include "liuli/error.h"

namespace liuli {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 16;
/// Flattening repeats an object's name in front of each of its keys: without a limit, a name of megabytes above many
/// keys would fill the memory.
constexpr size_t kMaxKeyBytes = 1024;

const char* kind_of(const Json& value) {
  if (value.is_number_integer()) return "integer";
  if (value.is_number_float()) return "number";
  if (value.is_boolean()) return "bool";
  return value.type_name();
}

std::string type_of(const Json& value) {
  if (!value.is_array()) return kind_of(value);
  const bool same = std::all_of(value.begin(), value.end(), [&](const Json& item) {
    return std::string_view(kind_of(item)) == kind_of(value.front());
  });
  return fmt::format("{}[{}]", same && !value.empty() ? kind_of(value.front()) : "array", value.size());
}

std::string dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

JsonMetadata JsonMetadata::parse(const std::string& path, std::string_view text) {
  return JsonMetadata(path, parse_json_object(path, text, kMaxDepth));
}

JsonMetadata::JsonMetadata(std::string path, const Json& object) : path_(std::move(path)) {
  if (!object.is_object())
    throw Error(ErrorCode::corrupt_file, fmt::format("{}: is {}, not an object", path_, object.type_name()));
  flatten("", object, 1);
  sort_keys();
}

void JsonMetadata::flatten(const std::string& prefix, const Json& object, int depth) {
  if (depth > kMaxDepth)
    throw Error(ErrorCode::corrupt_file,
                fmt::format("{}: key {} nests deeper than {} levels", path_, quoted_name(prefix), kMaxDepth));
  for (const auto& [name, value] : object.items()) {
    std::string key = prefix + name;
    if (key.size() > kMaxKeyBytes)
      throw Error(ErrorCode::corrupt_file, fmt::format("{}: key {} has {} bytes, the limit is {}", path_,
                                                       quoted_name(key), key.size(), kMaxKeyBytes));
    if (value.is_object()) {
      flatten(key.append("."), value, depth + 1);
    } else if (!value.is_null()) {
      entries_.push_back({std::move(key), value});
    }
  }
}

void JsonMetadata::sort_keys() {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
  const auto twin = std::adjacent_find(entries_.begin(), entries_.end(),
                                       [](const Entry& a, const Entry& b) { return a.key == b.key; });
  if (twin != entries_.end())
    throw Error(ErrorCode::corrupt_file,
                fmt::format("{}: key {} appears twice, once in an object and once with dots in its name",
                            path_, quoted_name(twin->key)));
}

const JsonMetadata::Entry* JsonMetadata::find(std::string_view key) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), key,
                                   [](const Entry& e, std::string_view k) { return e.key < k; });
  return at != entries_.end() && at->key == key ? &*at : nullptr;
}

void JsonMetadata::wrong_type(const Entry& entry, const char* wanted) const {
  throw Error(ErrorCode::corrupt_file, fmt::format("{}: key {} should be {}, the file stores {}", path_,
                                                   quoted_name(entry.key), wanted, type_of(entry.value)));
}

int64_t JsonMetadata::integer_of(const Entry& entry, const Json& value, const char* wanted) const {
  if (!value.is_number_integer()) wrong_type(entry, wanted);
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    throw Error(ErrorCode::corrupt_file,
                fmt::format("{}: key {} is {}, the largest integer allowed is {}", path_,
                            quoted_name(entry.key), value.get<uint64_t>(), INT64_MAX));
  return value.get<int64_t>();
}

template <class T, class F>
std::optional<std::vector<T>> JsonMetadata::items(std::string_view key, const char* wanted,
                                                  const F& convert) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (!entry->value.is_array()) wrong_type(*entry, wanted);
  std::vector<T> values;
  values.reserve(entry->value.size());
  for (const Json& item : entry->value) values.push_back(convert(*entry, item));
  return values;
}

std::vector<std::string> JsonMetadata::keys() const {
  std::vector<std::string> names;
  names.reserve(entries_.size());
  for (const Entry& entry : entries_) names.push_back(entry.key);
  return names;
}

std::optional<int64_t> JsonMetadata::integer(std::string_view key) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  return integer_of(*entry, entry->value, "an integer");
}

std::optional<double> JsonMetadata::number(std::string_view key) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (!entry->value.is_number()) wrong_type(*entry, "a number");
  return entry->value.get<double>();
}

std::optional<bool> JsonMetadata::boolean(std::string_view key) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (!entry->value.is_boolean()) wrong_type(*entry, "a bool");
  return entry->value.get<bool>();
}

std::optional<std::string> JsonMetadata::text(std::string_view key) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (!entry->value.is_string()) wrong_type(*entry, "a string");
  return entry->value.get<std::string>();
}

std::optional<std::vector<int64_t>> JsonMetadata::integers(std::string_view key) const {
  constexpr const char* kWanted = "an array of integers";
  return items<int64_t>(
      key, kWanted, [&](const Entry& entry, const Json& item) { return integer_of(entry, item, kWanted); });
}

std::optional<std::vector<float>> JsonMetadata::numbers(std::string_view key) const {
  constexpr const char* kWanted = "an array of numbers";
  return items<float>(key, kWanted, [&](const Entry& entry, const Json& item) {
    if (!item.is_number()) wrong_type(entry, kWanted);
    return static_cast<float>(item.get<double>());
  });
}

std::optional<std::vector<bool>> JsonMetadata::booleans(std::string_view key) const {
  constexpr const char* kWanted = "an array of bool";
  return items<bool>(key, kWanted, [&](const Entry& entry, const Json& item) {
    if (!item.is_boolean()) wrong_type(entry, kWanted);
    return item.get<bool>();
  });
}

std::optional<std::vector<std::string>> JsonMetadata::texts(std::string_view key) const {
  constexpr const char* kWanted = "an array of strings";
  return items<std::string>(key, kWanted, [&](const Entry& entry, const Json& item) {
    if (!item.is_string()) wrong_type(entry, kWanted);
    return item.get<std::string>();
  });
}

bool JsonMetadata::is_array(std::string_view key) const {
  const Entry* entry = find(key);
  return entry != nullptr && entry->value.is_array();
}

std::string JsonMetadata::type_name(std::string_view key) const {
  const Entry* entry = find(key);
  return entry == nullptr ? "" : type_of(entry->value);
}

std::string JsonMetadata::json(std::string_view key, size_t limit) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return "null";
  if (!entry->value.is_array()) return dump(entry->value);
  std::string text = "[";
  for (size_t i = 0; i < std::min(entry->value.size(), limit); i++)
    text += (i > 0 ? ", " : "") + dump(entry->value[i]);
  return text + "]";
}

}  // namespace liuli
