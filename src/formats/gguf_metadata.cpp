#include "formats/gguf_metadata.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace liuli {
namespace {

constexpr uint64_t kMaxKeyBytes = 65535;
constexpr uint64_t kMaxStringBytes = uint64_t{1} << 30;
constexpr uint64_t kMaxArrayCount = uint64_t{1} << 30;
/// A record is at least a length, a key of one byte, a type and a value of one byte.
constexpr size_t kMinRecordBytes = 8 + 1 + 4 + 1;

struct TypeRow {
  const char* name;
  size_t bytes;  ///< of one element; 0: not fixed
};
constexpr TypeRow kTypes[] = {{"u8", 1},  {"i8", 1},  {"u16", 2},  {"i16", 2},    {"u32", 4},
                              {"i32", 4}, {"f32", 4}, {"bool", 1}, {"string", 0}, {"array", 0},
                              {"u64", 8}, {"i64", 8}, {"f64", 8}};

const TypeRow& row_of(GgufType type) { return kTypes[static_cast<size_t>(type)]; }

GgufType read_type(ByteCursor& cursor, const char* what) {
  const auto id = cursor.read<uint32_t>(what);
  if (id >= std::size(kTypes)) cursor.fail("{} is {}, the format knows 0 … 12", what, id);
  return static_cast<GgufType>(id);
}

/// Steps over `count` elements, checking what can be checked without knowing their meaning.
void skip_values(ByteCursor& cursor, GgufType type, uint64_t count) {
  if (type == GgufType::string) {
    // Each string has at least its length: an absurd count fails before the walk.
    if (count > cursor.remaining() / 8)
      cursor.fail("{} strings need {} bytes or more, {} are left", count, count * 8, cursor.remaining());
    for (uint64_t i = 0; i < count; i++) cursor.string("a string", kMaxStringBytes);
    return;
  }
  const uint8_t* values = cursor.take_array(count, row_of(type).bytes, "the value");
  if (type != GgufType::boolean) return;
  for (uint64_t i = 0; i < count; i++)
    if (values[i] > 1) cursor.fail("a bool is stored as {}, only 0 and 1 are allowed", values[i]);
}

bool is_integer(GgufType type) {
  return type <= GgufType::i32 || type == GgufType::u64 || type == GgufType::i64;
}
bool is_float(GgufType type) { return type == GgufType::f32 || type == GgufType::f64; }

template <class T>
T value_at(const uint8_t* values, uint64_t index) {
  T value;
  std::memcpy(&value, values + index * sizeof(T), sizeof(T));
  return value;
}

double float_at(GgufType type, const uint8_t* values, uint64_t index) {
  return type == GgufType::f32 ? value_at<float>(values, index) : value_at<double>(values, index);
}

/// The string at `at`, and `at` moved behind it. The bounds were checked when the file was read.
std::string_view next_string(const uint8_t*& at) {
  const auto length = value_at<uint64_t>(at, 0);
  const auto* text = reinterpret_cast<const char*>(at + 8);
  at += 8 + length;
  return {text, static_cast<size_t>(length)};
}

std::string json_string(std::string_view text) {
  // Foreign text may not be UTF-8; what is not becomes U+FFFD rather than an error of `inspect`.
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

GgufMetadata::GgufMetadata(std::string path, ByteCursor& cursor, uint64_t count) : path_(std::move(path)) {
  cursor.enter("metadata");
  if (count > cursor.remaining() / kMinRecordBytes)
    cursor.fail("kv_count is {}, but {} bytes are left, room for {} records", count, cursor.remaining(),
                cursor.remaining() / kMinRecordBytes);
  entries_.reserve(count);  // at most 3 × the file, by the check above
  for (uint64_t i = 0; i < count; i++) entries_.push_back(read_entry(cursor));
  sort_keys();
}

GgufMetadata::Entry GgufMetadata::read_entry(ByteCursor& cursor) {
  cursor.enter("metadata");
  const std::string_view key = cursor.string("a key", kMaxKeyBytes);
  if (key.empty()) cursor.fail("a key has 0 bytes, at least 1 is needed");
  cursor.enter("key", key);
  if (key.find('\0') != key.npos)
    cursor.fail("the key has a NUL at byte {} of {}", key.find('\0'), key.size());
  Entry entry{key.data(), static_cast<uint32_t>(key.size()), read_type(cursor, "value type"), false, 1,
              nullptr};
  if (entry.element == GgufType::array) {
    entry.is_array = true;
    entry.element = read_type(cursor, "element type");
    if (entry.element == GgufType::array)
      cursor.fail("is an array of arrays; elements must be of types 0 … 8, 10 … 12");
    entry.count = cursor.read<uint64_t>("array length");
    if (entry.count > kMaxArrayCount)
      cursor.fail("the array has {} elements, the limit is {}", entry.count, kMaxArrayCount);
  }
  entry.values = cursor.take(0, "the value");
  skip_values(cursor, entry.element, entry.count);
  return entry;
}

void GgufMetadata::sort_keys() {
  sorted_.resize(entries_.size());
  std::iota(sorted_.begin(), sorted_.end(), 0u);
  std::sort(sorted_.begin(), sorted_.end(),
            [&](uint32_t a, uint32_t b) { return entries_[a].name() < entries_[b].name(); });
  const auto twin = std::adjacent_find(sorted_.begin(), sorted_.end(), [&](uint32_t a, uint32_t b) {
    return entries_[a].name() == entries_[b].name();
  });
  if (twin == sorted_.end()) return;
  throw Error(ErrorCode::corrupt_file, fmt::format("{}: key {} appears twice, as records {} and {}", path_,
                                                   quoted_name(entries_[*twin].name()),
                                                   std::min(twin[0], twin[1]), std::max(twin[0], twin[1])));
}

const GgufMetadata::Entry* GgufMetadata::find(std::string_view key) const {
  const auto at = std::lower_bound(sorted_.begin(), sorted_.end(), key,
                                   [&](uint32_t i, std::string_view k) { return entries_[i].name() < k; });
  return at != sorted_.end() && entries_[*at].name() == key ? &entries_[*at] : nullptr;
}

void GgufMetadata::wrong_type(const Entry& entry, const char* wanted) const {
  throw Error(ErrorCode::corrupt_file, fmt::format("{}: key {} should be {}, the file stores {}", path_,
                                                   quoted_name(entry.name()), wanted, entry.type_text()));
}

std::string GgufMetadata::Entry::type_text() const {
  return is_array ? fmt::format("{}[{}]", row_of(element).name, count) : row_of(element).name;
}

int64_t GgufMetadata::integer_at(const Entry& entry, uint64_t index) const {
  switch (entry.element) {
    case GgufType::u8:
      return value_at<uint8_t>(entry.values, index);
    case GgufType::i8:
      return value_at<int8_t>(entry.values, index);
    case GgufType::u16:
      return value_at<uint16_t>(entry.values, index);
    case GgufType::i16:
      return value_at<int16_t>(entry.values, index);
    case GgufType::u32:
      return value_at<uint32_t>(entry.values, index);
    case GgufType::i32:
      return value_at<int32_t>(entry.values, index);
    case GgufType::i64:
      return value_at<int64_t>(entry.values, index);
    default:
      break;
  }
  const auto value = value_at<uint64_t>(entry.values, index);
  if (value > static_cast<uint64_t>(INT64_MAX))
    throw Error(ErrorCode::corrupt_file, fmt::format("{}: key {} is {}, the largest integer allowed is {}",
                                                     path_, quoted_name(entry.name()), value, INT64_MAX));
  return static_cast<int64_t>(value);
}

std::vector<std::string> GgufMetadata::keys() const {
  std::vector<std::string> names;
  names.reserve(entries_.size());
  for (const Entry& entry : entries_) names.emplace_back(entry.name());
  return names;
}

std::optional<int64_t> GgufMetadata::integer(std::string_view key) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (entry->is_array || !is_integer(entry->element)) wrong_type(*entry, "an integer");
  return integer_at(*entry, 0);
}

std::optional<double> GgufMetadata::number(std::string_view key) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (entry->is_array || !(is_integer(entry->element) || is_float(entry->element)))
    wrong_type(*entry, "a number");
  return is_float(entry->element) ? float_at(entry->element, entry->values, 0)
                                  : static_cast<double>(integer_at(*entry, 0));
}

std::optional<bool> GgufMetadata::boolean(std::string_view key) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (entry->is_array || entry->element != GgufType::boolean) wrong_type(*entry, "a bool");
  return entry->values[0] != 0;
}

std::optional<std::string> GgufMetadata::text(std::string_view key) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (entry->is_array || entry->element != GgufType::string) wrong_type(*entry, "a string");
  const uint8_t* at = entry->values;
  return std::string(next_string(at));
}

const GgufMetadata::Entry* GgufMetadata::array(std::string_view key, const char* wanted) const {
  const Entry* entry = find(key);
  if (entry != nullptr && !entry->is_array) wrong_type(*entry, wanted);
  return entry;
}

std::optional<std::vector<int64_t>> GgufMetadata::integers(std::string_view key) const {
  constexpr const char* kWanted = "an array of integers";
  const Entry* entry = array(key, kWanted);
  if (entry == nullptr) return std::nullopt;
  if (!is_integer(entry->element)) wrong_type(*entry, kWanted);
  std::vector<int64_t> values(entry->count);
  for (uint64_t i = 0; i < entry->count; i++) values[i] = integer_at(*entry, i);
  return values;
}

std::optional<std::vector<float>> GgufMetadata::numbers(std::string_view key) const {
  constexpr const char* kWanted = "an array of f32 or f64";
  const Entry* entry = array(key, kWanted);
  if (entry == nullptr) return std::nullopt;
  if (!is_float(entry->element)) wrong_type(*entry, kWanted);
  std::vector<float> values(entry->count);
  for (uint64_t i = 0; i < entry->count; i++)
    values[i] = static_cast<float>(float_at(entry->element, entry->values, i));
  return values;
}

std::optional<std::vector<bool>> GgufMetadata::booleans(std::string_view key) const {
  constexpr const char* kWanted = "an array of bool";
  const Entry* entry = array(key, kWanted);
  if (entry == nullptr) return std::nullopt;
  if (entry->element != GgufType::boolean) wrong_type(*entry, kWanted);
  return std::vector<bool>(entry->values, entry->values + entry->count);
}

std::optional<std::vector<std::string>> GgufMetadata::texts(std::string_view key) const {
  constexpr const char* kWanted = "an array of strings";
  const Entry* entry = array(key, kWanted);
  if (entry == nullptr) return std::nullopt;
  if (entry->element != GgufType::string) wrong_type(*entry, kWanted);
  std::vector<std::string> values;
  values.reserve(entry->count);  // 32 bytes per string, which took 8 or more in the file
  const uint8_t* at = entry->values;
  for (uint64_t i = 0; i < entry->count; i++) values.emplace_back(next_string(at));
  return values;
}

bool GgufMetadata::is_array(std::string_view key) const {
  const Entry* entry = find(key);
  return entry != nullptr && entry->is_array;
}

std::string GgufMetadata::type_name(std::string_view key) const {
  const Entry* entry = find(key);
  return entry == nullptr ? "" : entry->type_text();
}

std::optional<std::string> GgufMetadata::record(std::string_view key) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  // The type (and an array's element type and length) stand right before the values.
  const uint8_t* begin = entry->values - (entry->is_array ? 4 + 4 + 8 : 4);
  const uint8_t* end = entry->values + entry->count * row_of(entry->element).bytes;
  if (entry->element == GgufType::string)
    for (uint64_t i = 0; i < entry->count; i++) next_string(end);
  return std::string(reinterpret_cast<const char*>(begin), static_cast<size_t>(end - begin));
}

std::string GgufMetadata::json(std::string_view key, size_t limit) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return "null";
  const uint8_t* at = entry->values;
  const auto element = [&](uint64_t i) -> std::string {
    if (entry->element == GgufType::string) return json_string(next_string(at));
    if (entry->element == GgufType::boolean) return entry->values[i] != 0 ? "true" : "false";
    if (entry->element == GgufType::u64) return fmt::format("{}", value_at<uint64_t>(entry->values, i));
    if (is_integer(entry->element)) return fmt::format("{}", integer_at(*entry, i));
    const double value = float_at(entry->element, entry->values, i);
    if (!std::isfinite(value)) return "null";  // JSON has no word for it
    // Shortest text that gives the stored value back: 1e-05, not 9.999999747378752e-06.
    return entry->element == GgufType::f32 ? fmt::format("{}", static_cast<float>(value))
                                           : fmt::format("{}", value);
  };
  if (!entry->is_array) return element(0);
  std::string text = "[";
  for (uint64_t i = 0; i < std::min<uint64_t>(entry->count, limit); i++)
    text += (i > 0 ? ", " : "") + element(i);
  return text + "]";
}

}  // namespace liuli
