#include "formats/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/half.h"
#include "formats/byte_cursor.h"
#include "formats/weight_source.h"
#include "liuli/error.h"

namespace liuli {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr int kMaxDepth = 4;
constexpr size_t kMaxRank = 8;

struct PlainType {
  const char* name;
  int64_t bytes;
};
constexpr PlainType kTypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
                                {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},
                                {"I32", 4},  {"F32", 4}, {"U64", 8}, {"I64", 8},     {"F64", 8}};

using Json = nlohmann::json;

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw Error(ErrorCode::corrupt_file, fmt::format("{}: {}", path, reason));
}

/// Parses the header; a parser that keeps the last of two equal keys would hide a tensor, so names are
/// counted.
Json parse_header(const std::string& path, std::string_view text) {
  if (text.empty() || text[0] != '{')
    fail(path, fmt::format("the header begins with {}, not \"{{\"", quoted_name(text.substr(0, 1))));
  std::set<std::string> names;
  std::string problem;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxDepth) problem = fmt::format("the header nests deeper than {} levels", kMaxDepth);
    if (event == Json::parse_event_t::key && depth == 1 && !names.insert(value.get<std::string>()).second)
      problem = fmt::format("tensor {} appears twice in the header", quoted_name(value.get<std::string>()));
    return problem.empty();
  };
  Json header;
  try {
    header = Json::parse(text, watch);
  } catch (const Json::exception& e) {
    fail(path, fmt::format("the header of {} bytes is not JSON: {}", text.size(), e.what()));
  }
  if (!problem.empty()) fail(path, problem);
  return header;
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
                             quoted_name(name), key, item.dump(), INT64_MAX));
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
  int64_t bytes = type->bytes;
  for (const int64_t d : tensor.shape)
    if (__builtin_mul_overflow(bytes, d, &bytes))
      fail(path, fmt::format("tensor {}: shape {} needs more than {} bytes", quoted_name(tensor.name),
                             shape_text(tensor.shape), INT64_MAX));
  return bytes;
}

/// One header entry; `data` is the start of the data section, of `data_bytes` bytes.
SafetensorsFile::Tensor read_tensor(const std::string& path, const std::string& name, const Json& entry,
                                    const uint8_t* data, int64_t data_bytes) {
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
}

const SafetensorsFile::Tensor* SafetensorsFile::find(std::string_view name) const {
  const auto at =
      std::find_if(tensors_.begin(), tensors_.end(), [&](const Tensor& t) { return t.name == name; });
  return at != tensors_.end() ? &*at : nullptr;
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
