#include "formats/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/half.h"
#include "formats/byte_cursor.h"
#include "formats/strict_json.h"
#include "formats/weight_source.h"
#include "liuli/error.h"

namespace liuli {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr int kMaxDepth = 4;
constexpr size_t kMaxRank = 8;

constexpr size_t kMaxTensors = 1'000'000;
constexpr size_t kMaxNameBytes = 1024;

struct StoredType {
  const char* name;
  int64_t bits;
};
constexpr StoredType kTypes[] = {
    {"BOOL", 8}, {"U8", 8},      {"I8", 8},      {"F8_E4M3", 8},     {"F8_E5M2", 8},     {"F8_E8M0", 8},
    {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"U16", 16},
    {"I16", 16}, {"F16", 16},    {"BF16", 16},   {"U32", 32},        {"I32", 32},        {"F32", 32},
    {"U64", 64}, {"I64", 64},    {"F64", 64},    {"C64", 64}};

using Json = nlohmann::json;

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw Error(ErrorCode::corrupt_file, fmt::format("{}: {}", path, reason));
}

/// The official writer pads with spaces, and nothing else stands around the object.
Json parse_header(const std::string& path, std::string_view text) {
  if (text.empty() || text[0] != '{')
    fail(path, fmt::format("the header begins with {}, not \"{{\"", quoted_name(text.substr(0, 1))));
  const size_t end = text.find_last_not_of(' ') + 1;
  if (text[end - 1] != '}')
    fail(path, fmt::format("the header ends with {}, not \"}}\"", quoted_name(text.substr(end - 1, 1))));
  Json header = parse_json_object(path + ": the header", text.substr(0, end), kMaxDepth);
  if (header.size() > kMaxTensors + 1)
    fail(path, fmt::format("the header names {} tensors, the limit is {}", header.size(), kMaxTensors));
  return header;
}

void check_name(const std::string& path, const std::string& name) {
  if (name.size() > kMaxNameBytes)
    fail(path, fmt::format("tensor {} has a name of {} bytes, the limit is {}", quoted_name(name),
                           name.size(), kMaxNameBytes));
  if (name.find('\0') != name.npos)
    fail(path,
         fmt::format("tensor {} has a NUL in its name, at byte {}", quoted_name(name), name.find('\0')));
}

std::vector<int64_t> counts(const std::string& path, const std::string& name, const Json& entry,
                            const char* key) {
  const auto list = entry.find(key);
  if (list == entry.end() || !list->is_array())
    fail(path, fmt::format("tensor {} has no list {}", quoted_name(name), key));
  std::vector<int64_t> values;
  for (const Json& item : *list) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
      fail(path, fmt::format("tensor {}: {} holds {}, it must be a whole number from 0 to {}",
                             quoted_name(name), key, quoted_name(item.dump()), INT64_MAX));
    values.push_back(item.get<int64_t>());
  }
  return values;
}

int64_t bytes_of(const std::string& path, const SafetensorsFile::Tensor& tensor) {
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](const auto& t) { return tensor.dtype == t.name; });
  if (type == std::end(kTypes))
    throw Error(ErrorCode::unsupported, fmt::format("{}: tensor {} has the unknown dtype {}", path,
                                                    quoted_name(tensor.name), quoted_name(tensor.dtype)));
  int64_t bits = type->bits;
  for (const int64_t d : tensor.shape)
    if (__builtin_mul_overflow(bits, d, &bits))
      fail(path, fmt::format("tensor {}: shape {} needs more than {} bits", quoted_name(tensor.name),
                             shape_text(tensor.shape), INT64_MAX));
  if (bits % 8 != 0)
    fail(path, fmt::format("tensor {}: {} of shape {} has {} bits, not a whole number of bytes",
                           quoted_name(tensor.name), tensor.dtype, shape_text(tensor.shape), bits));
  return bits / 8;
}

/// One header entry; `data` is the start of the data section, of `data_bytes` bytes.
SafetensorsFile::Tensor read_tensor(const std::string& path, const std::string& name, const Json& entry,
                                    const uint8_t* data, int64_t data_bytes) {
  check_name(path, name);
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string())
    fail(path, fmt::format("tensor {} has no dtype", quoted_name(name)));
  SafetensorsFile::Tensor tensor{name, entry["dtype"].get<std::string>(), counts(path, name, entry, "shape")};
  if (tensor.shape.size() > kMaxRank)
    fail(path, fmt::format("tensor {} has {} dimensions, the limit is {}", quoted_name(name),
                           tensor.shape.size(), kMaxRank));
  const std::vector<int64_t> range = counts(path, name, entry, "data_offsets");
  if (range.size() != 2 || range[0] > range[1] || range[1] > data_bytes)
    fail(path, fmt::format("tensor {}: data_offsets {} do not lie in the {} bytes of data", quoted_name(name),
                           shape_text(range), data_bytes));
  tensor.data = data + range[0];
  tensor.bytes = range[1] - range[0];
  const int64_t needed = bytes_of(path, tensor);
  if (needed != tensor.bytes)
    fail(path, fmt::format("tensor {}: {} of shape {} needs {} bytes, data_offsets give {}",
                           quoted_name(name), tensor.dtype, shape_text(tensor.shape), needed, tensor.bytes));
  return tensor;
}

SafetensorsMetadata read_metadata(const std::string& path, const Json& entry) {
  SafetensorsMetadata metadata;
  if (!entry.is_object()) fail(path, "__metadata__ is not an object");
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) fail(path, fmt::format("__metadata__ {} is not a string", quoted_name(key)));
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

/// Ranges follow each other from the first byte of the data to the last.
void check_layout(const std::string& path, const std::vector<SafetensorsFile::Tensor>& tensors,
                  const uint8_t* data, int64_t data_bytes) {
  int64_t end = 0;
  for (const auto& tensor : tensors) {
    if (tensor.data - data != end)
      fail(path, fmt::format("tensor {} begins at byte {} of the data, the one before it ends at {}",
                             quoted_name(tensor.name), tensor.data - data, end));
    end += tensor.bytes;
  }
  if (end != data_bytes)
    fail(path, fmt::format("the tensors end at byte {} of the data, the file has {}", end, data_bytes));
}

template <class Stored, class To>
std::vector<To> convert(const SafetensorsFile::Tensor& tensor, To (*to)(Stored)) {
  std::vector<To> values(static_cast<size_t>(tensor.bytes) / sizeof(Stored));
  for (size_t i = 0; i < values.size(); i++) {
    Stored stored;
    std::memcpy(&stored, tensor.data + i * sizeof(Stored), sizeof(Stored));
    values[i] = to(stored);
  }
  return values;
}

template <class To, class Stored>
To cast(Stored value) {
  return static_cast<To>(value);
}

template <class To>
std::vector<To> real_values(const std::string& path, const SafetensorsFile::Tensor& t) {
  if (t.dtype == "F32") return convert<float, To>(t, cast<To, float>);
  if (t.dtype == "F64") return convert<double, To>(t, cast<To, double>);
  if (t.dtype == "F16")
    return convert<uint16_t, To>(t, [](uint16_t h) { return static_cast<To>(f16_to_f32(h)); });
  if (t.dtype == "BF16")
    return convert<uint16_t, To>(t, [](uint16_t h) { return static_cast<To>(bf16_to_f32(h)); });
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: tensor {} is {}, a floating-point type was asked for", path,
                          quoted_name(t.name), t.dtype));
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : SafetensorsFile(path, map_file(path)) {}

SafetensorsFile::SafetensorsFile(const std::string& path, FileBytes bytes)
    : path_(path), bytes_(std::move(bytes)) {
  ByteCursor cursor(path_, bytes_.data, bytes_.size);
  const std::string_view text = cursor.string("the header", kMaxHeaderBytes);
  const auto data_bytes = static_cast<int64_t>(cursor.remaining());
  const uint8_t* data = cursor.take(cursor.remaining(), "the data");
  const Json header = parse_header(path_, text);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      metadata_ = read_metadata(path_, entry);
    } else {
      tensors_.push_back(read_tensor(path_, name, entry, data, data_bytes));
    }
  }
  // Equal starts (tensors of 0 bytes): the one that ends first comes first.
  std::stable_sort(tensors_.begin(), tensors_.end(), [](const Tensor& a, const Tensor& b) {
    return a.data != b.data ? a.data < b.data : a.bytes < b.bytes;
  });
  check_layout(path_, tensors_, data, data_bytes);
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0u);
  std::sort(by_name_.begin(), by_name_.end(),
            [&](uint32_t a, uint32_t b) { return tensors_[a].name < tensors_[b].name; });
}

const SafetensorsFile::Tensor* SafetensorsFile::find(std::string_view name) const {
  const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                   [&](uint32_t i, std::string_view n) { return tensors_[i].name < n; });
  return at != by_name_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
}

const SafetensorsFile::Tensor& SafetensorsFile::require(std::string_view name) const {
  const Tensor* tensor = find(name);
  if (tensor == nullptr)
    throw Error(ErrorCode::not_found, fmt::format("{}: there is no tensor {} among its {}", path_,
                                                  quoted_name(name), tensors_.size()));
  return *tensor;
}

std::vector<float> SafetensorsFile::floats(std::string_view name) const {
  return real_values<float>(path_, require(name));
}
std::vector<double> SafetensorsFile::doubles(std::string_view name) const {
  return real_values<double>(path_, require(name));
}

std::vector<int64_t> SafetensorsFile::integers(std::string_view name) const {
  const Tensor& t = require(name);
  if (t.dtype == "I64") return convert<int64_t, int64_t>(t, cast<int64_t, int64_t>);
  if (t.dtype == "I32") return convert<int32_t, int64_t>(t, cast<int64_t, int32_t>);
  if (t.dtype == "I16") return convert<int16_t, int64_t>(t, cast<int64_t, int16_t>);
  if (t.dtype == "I8") return convert<int8_t, int64_t>(t, cast<int64_t, int8_t>);
  if (t.dtype == "U32") return convert<uint32_t, int64_t>(t, cast<int64_t, uint32_t>);
  if (t.dtype == "U16") return convert<uint16_t, int64_t>(t, cast<int64_t, uint16_t>);
  if (t.dtype == "U8" || t.dtype == "BOOL") return convert<uint8_t, int64_t>(t, cast<int64_t, uint8_t>);
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: tensor {} is {}, an integer type was asked for",
                                                       path_, quoted_name(t.name), t.dtype));
}

std::vector<uint8_t> SafetensorsFile::raw(std::string_view name) const {
  const Tensor& t = require(name);
  return {t.data, t.data + t.bytes};
}

}  // namespace liuli
