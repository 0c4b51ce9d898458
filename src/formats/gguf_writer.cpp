#include "formats/gguf_writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "formats/gguf_metadata.h"
#include "liuli/error.h"

namespace liuli {
namespace {

constexpr uint32_t kVersion = 3;
constexpr size_t kMaxKeyBytes = 65535, kMaxNameBytes = 63, kMaxDims = 4;
constexpr int64_t kDefaultAlignment = 32, kMinAlignment = 8, kMaxAlignment = int64_t{1} << 20;
constexpr const char* kAlignmentKey = "general.alignment";

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_string(std::string& bytes, std::string_view text) {
  put<uint64_t>(bytes, text.size());
  bytes.append(text);
}

std::string typed(GgufType type) {
  std::string bytes;
  put(bytes, static_cast<uint32_t>(type));
  return bytes;
}

template <class T>
std::string single(GgufType type, T value) {
  std::string bytes = typed(type);
  put(bytes, value);
  return bytes;
}

/// Array of values that stand in memory as they stand in the file.
template <class T>
std::string array(GgufType element, const std::vector<T>& values) {
  std::string bytes = typed(GgufType::array);
  put(bytes, static_cast<uint32_t>(element));
  put<uint64_t>(bytes, values.size());
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return bytes;
}

int64_t padded(int64_t bytes, int64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

template <class... T>
[[noreturn]] void refuse(const std::string& path, fmt::format_string<T...> format, T&&... values) {
  std::string message = path + ": ";
  throw Error(ErrorCode::invalid_argument, message.append(fmt::format(format, std::forward<T>(values)...)));
}

/// `record` is the value of general.alignment with its type, or empty.
int64_t checked_alignment(const std::string& path, std::string_view record) {
  if (record.empty()) return kDefaultAlignment;
  uint32_t type = 0, value = 0;
  if (record.size() == sizeof type + sizeof value) {
    std::memcpy(&type, record.data(), sizeof type);
    std::memcpy(&value, record.data() + sizeof type, sizeof value);
  }
  if (type != static_cast<uint32_t>(GgufType::u32) || value < kMinAlignment || value > kMaxAlignment ||
      !std::has_single_bit(value))
    refuse(path, "key \"{}\" must be a u32, a power of two from {} to {}; it is {}", kAlignmentKey,
           kMinAlignment, kMaxAlignment, value);
  return value;
}

void check_spec(const std::string& path, const GgufTensorSpec& spec) {
  const std::string name = quoted_name(spec.name);
  if (spec.name.empty() || spec.name.size() > kMaxNameBytes || spec.name.find('\0') != std::string::npos)
    refuse(path, "tensor name {} has {} bytes; allowed are 1 … {}, none of them NUL", name, spec.name.size(),
           kMaxNameBytes);
  if (spec.shape.empty() || spec.shape.size() > kMaxDims)
    refuse(path, "tensor {} has {} dimensions, allowed are 1 … {}", name, spec.shape.size(), kMaxDims);
  int64_t elements = 1;
  for (const int64_t d : spec.shape)
    if (d < 1 || __builtin_mul_overflow(elements, d, &elements) || elements > INT64_MAX / 8)
      refuse(path, "tensor {} has shape {}: dimensions must be ≥ 1 and their product below {}", name,
             shape_text(spec.shape), INT64_MAX / 8);
  const DTypeInfo& info = dtype_info(spec.type);
  if (spec.shape.back() % info.block != 0)
    refuse(path, "tensor {} has rows of {} elements, {} comes in blocks of {}", name, spec.shape.back(),
           info.name, info.block);
}

void check_specs(const std::string& path, const std::vector<GgufTensorSpec>& specs) {
  std::set<std::string_view> names;
  for (const GgufTensorSpec& spec : specs) {
    check_spec(path, spec);
    if (!names.insert(spec.name).second) refuse(path, "tensor {} is announced twice", quoted_name(spec.name));
  }
}

void put_infos(std::string& header, const std::vector<GgufTensorSpec>& specs, int64_t alignment) {
  int64_t offset = 0;
  for (const GgufTensorSpec& spec : specs) {
    put_string(header, spec.name);
    put(header, static_cast<uint32_t>(spec.shape.size()));
    for (auto d = spec.shape.rbegin(); d != spec.shape.rend(); ++d) put<uint64_t>(header, *d);
    put(header, static_cast<uint32_t>(spec.type));
    put<uint64_t>(header, offset);
    offset += padded(spec.bytes(), alignment);
  }
}

}  // namespace

GgufKeys& GgufKeys::u16(std::string_view key, uint16_t value) {
  return set(key, single(GgufType::u16, value));
}
GgufKeys& GgufKeys::u32(std::string_view key, uint32_t value) {
  return set(key, single(GgufType::u32, value));
}
GgufKeys& GgufKeys::i32(std::string_view key, int32_t value) {
  return set(key, single(GgufType::i32, value));
}
GgufKeys& GgufKeys::u64(std::string_view key, uint64_t value) {
  return set(key, single(GgufType::u64, value));
}
GgufKeys& GgufKeys::f32(std::string_view key, float value) { return set(key, single(GgufType::f32, value)); }
GgufKeys& GgufKeys::boolean(std::string_view key, bool value) {
  return set(key, single<uint8_t>(GgufType::boolean, value));
}
GgufKeys& GgufKeys::text(std::string_view key, std::string_view value) {
  std::string bytes = typed(GgufType::string);
  put_string(bytes, value);
  return set(key, std::move(bytes));
}
GgufKeys& GgufKeys::u32s(std::string_view key, const std::vector<uint32_t>& values) {
  return set(key, array(GgufType::u32, values));
}
GgufKeys& GgufKeys::u8s(std::string_view key, const std::vector<uint8_t>& values) {
  return set(key, array(GgufType::u8, values));
}
GgufKeys& GgufKeys::i32s(std::string_view key, const std::vector<int32_t>& values) {
  return set(key, array(GgufType::i32, values));
}
GgufKeys& GgufKeys::f32s(std::string_view key, const std::vector<float>& values) {
  return set(key, array(GgufType::f32, values));
}
GgufKeys& GgufKeys::booleans(std::string_view key, const std::vector<bool>& values) {
  return set(key, array(GgufType::boolean, std::vector<uint8_t>(values.begin(), values.end())));
}
GgufKeys& GgufKeys::texts(std::string_view key, const std::vector<std::string>& values) {
  std::string bytes = typed(GgufType::array);
  put(bytes, static_cast<uint32_t>(GgufType::string));
  put<uint64_t>(bytes, values.size());
  for (const std::string& value : values) put_string(bytes, value);
  return set(key, std::move(bytes));
}

GgufKeys& GgufKeys::copy(const Metadata& source, std::string_view key) {
  const auto* gguf = dynamic_cast<const GgufMetadata*>(&source);
  if (gguf == nullptr)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("key {} cannot be carried over: its file is not GGUF", quoted_name(key)));
  if (std::optional<std::string> record = gguf->record(key)) set(key, std::move(*record));
  return *this;
}

GgufKeys& GgufKeys::copy_all(const Metadata& source) {
  for (const std::string& key : source.keys()) copy(source, key);
  return *this;
}

std::vector<GgufKeys::Record>::const_iterator GgufKeys::at(std::string_view key) const {
  return std::find_if(records_.begin(), records_.end(), [&](const Record& r) { return r.key == key; });
}

bool GgufKeys::has(std::string_view key) const { return at(key) != records_.end(); }

void GgufKeys::remove(std::string_view key) {
  if (const auto found = at(key); found != records_.end()) records_.erase(found);
}

GgufKeys& GgufKeys::set(std::string_view key, std::string value) {
  if (key.empty() || key.size() > kMaxKeyBytes || key.find('\0') != key.npos)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("GGUF key {} has {} bytes; allowed are 1 … {}, none of them NUL",
                            quoted_name(key), key.size(), kMaxKeyBytes));
  const auto found = at(key);
  if (found == records_.end()) {
    records_.push_back({std::string(key), std::move(value)});
  } else {
    records_[static_cast<size_t>(found - records_.begin())].value = std::move(value);
  }
  return *this;
}

int64_t GgufTensorSpec::bytes() const {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); i++) rows *= shape[i];
  return rows * row_bytes(type, shape.back());
}

std::string GgufWriter::header(const std::string& path, const GgufKeys& keys,
                               const std::vector<GgufTensorSpec>& tensors, int64_t& alignment) {
  check_specs(path, tensors);
  const auto given = keys.at(kAlignmentKey);
  alignment = checked_alignment(path, given == keys.records_.end() ? std::string_view() : given->value);
  std::string bytes = "GGUF";
  put(bytes, kVersion);
  put<uint64_t>(bytes, tensors.size());
  put<uint64_t>(bytes, keys.records_.size());
  for (const GgufKeys::Record& record : keys.records_) {
    put_string(bytes, record.key);
    bytes.append(record.value);
  }
  put_infos(bytes, tensors, alignment);
  bytes.resize(static_cast<size_t>(padded(static_cast<int64_t>(bytes.size()), alignment)));
  return bytes;
}

std::string GgufWriter::without_tensors(const std::string& path, const GgufKeys& keys) {
  int64_t alignment = 0;
  return header(path, keys, {}, alignment);
}

int64_t GgufWriter::file_bytes(const std::string& path, const GgufKeys& keys,
                               const std::vector<GgufTensorSpec>& tensors) {
  int64_t alignment = 0;
  auto bytes = static_cast<int64_t>(header(path, keys, tensors, alignment).size());
  for (const GgufTensorSpec& tensor : tensors) bytes += padded(tensor.bytes(), alignment);
  return bytes;
}

GgufWriter::GgufWriter(const std::string& path, const GgufKeys& keys, std::vector<GgufTensorSpec> tensors)
    : tensors_(std::move(tensors)), file_(path) {
  file_.write(header(path, keys, tensors_, alignment_));
}

void GgufWriter::append(const void* data, size_t bytes) {
  const auto* next = static_cast<const char*>(data);
  while (bytes > 0) {
    if (current_ == tensors_.size())
      refuse(file_.path(), "all {} announced tensors are written, {} more bytes came", tensors_.size(),
             bytes);
    const auto left = static_cast<size_t>(tensors_[current_].bytes() - written_);
    const size_t now = std::min(bytes, left);
    file_.write(next, now);
    written_ += static_cast<int64_t>(now);
    next += now;
    bytes -= now;
    if (now == left) end_tensor();
  }
}

void GgufWriter::end_tensor() {
  const std::string zeros(static_cast<size_t>(padded(written_, alignment_) - written_), '\0');
  file_.write(zeros);
  current_++;
  written_ = 0;
}

void GgufWriter::finish() {
  if (current_ < tensors_.size())
    refuse(file_.path(), "tensor {} has {} bytes, only {} were written", quoted_name(tensors_[current_].name),
           tensors_[current_].bytes(), written_);
  file_.commit();
}

}  // namespace liuli
