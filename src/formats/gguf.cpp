#include "formats/gguf.h"

#include <algorithm>
#include <bit>

namespace liuli {
namespace {

constexpr size_t kHeaderBytes = 24;
constexpr uint64_t kMaxNameBytes = 63;
constexpr uint32_t kMaxDims = 4;
/// A record is at least a length, a name of one byte, n_dims, one dimension, a type and an offset.
constexpr size_t kMinInfoBytes = 8 + 1 + 4 + 8 + 4 + 8;
constexpr uint64_t kDefaultAlignment = 32, kMinAlignment = 8, kMaxAlignment = uint64_t{1} << 20;

struct Header {
  uint32_t version;
  uint64_t tensor_count, kv_count;
};

void check_version(const ByteCursor& cursor, uint32_t version) {
  if (version == 2 || version == 3) return;
  // Read in the other byte order, a small version number has its bytes on the other side.
  if ((version & 0xFFFFu) == 0 && version != 0)
    cursor.fail_as(
        ErrorCode::unsupported,
        fmt::format("the file is big-endian (version reads as 0x{:08x}); only little-endian is read",
                    version));
  cursor.fail_as(ErrorCode::unsupported,
                 fmt::format("GGUF version is {}; versions 2 and 3 are read{}", version,
                             version == 1 ? " (1 is obsolete: convert the model again)" : ""));
}

Header read_header(ByteCursor& cursor) {
  cursor.enter("header");
  if (cursor.remaining() < kHeaderBytes)
    cursor.fail("the file has {} bytes, a GGUF header needs {}", cursor.remaining(), kHeaderBytes);
  const std::string_view magic(reinterpret_cast<const char*>(cursor.take(4, "the magic")), 4);
  if (magic != "GGUF") cursor.fail("not a GGUF file: it begins with {}, not \"GGUF\"", quoted_name(magic));
  Header header{};
  header.version = cursor.read<uint32_t>("the version");
  check_version(cursor, header.version);
  header.tensor_count = cursor.read<uint64_t>("tensor_count");
  header.kv_count = cursor.read<uint64_t>("kv_count");
  return header;
}

uint64_t read_alignment(const std::string& path, const GgufMetadata& metadata) {
  constexpr std::string_view kKey = "general.alignment";
  if (!metadata.has(kKey)) return kDefaultAlignment;
  if (metadata.type_name(kKey) != "u32")
    throw Error(ErrorCode::corrupt_file, fmt::format("{}: key {} should be u32, the file stores {}", path,
                                                     quoted_name(kKey), metadata.type_name(kKey)));
  const auto value = static_cast<uint64_t>(metadata.integer(kKey).value());
  if (value < kMinAlignment || value > kMaxAlignment || !std::has_single_bit(value))
    throw Error(ErrorCode::corrupt_file,
                fmt::format("{}: key {} is {}, it must be a power of two from {} to {}", path,
                            quoted_name(kKey), value, kMinAlignment, kMaxAlignment));
  return value;
}

std::string read_name(ByteCursor& cursor) {
  cursor.enter("tensor infos");
  const std::string_view name = cursor.string("a tensor name", kMaxNameBytes);
  if (name.empty()) cursor.fail("a tensor name has 0 bytes, at least 1 is needed");
  cursor.enter("tensor", name);
  if (name.find('\0') != name.npos)
    cursor.fail("the name has a NUL at byte {} of {}", name.find('\0'), name.size());
  return std::string(name);
}

/// The shape in PyTorch order. The number of elements is below 2^63 when this returns.
std::vector<int64_t> read_shape(ByteCursor& cursor) {
  const auto n_dims = cursor.read<uint32_t>("n_dims");
  if (n_dims < 1 || n_dims > kMaxDims) cursor.fail("n_dims is {}, allowed are 1 … {}", n_dims, kMaxDims);
  std::vector<int64_t> shape(n_dims);
  int64_t elements = 1;
  for (uint32_t i = 0; i < n_dims; i++) {
    const auto d = cursor.read<uint64_t>("a dimension");
    if (d < 1 || d > static_cast<uint64_t>(INT64_MAX))
      cursor.fail("dimension {} is {}, allowed are 1 … {}", i, d, INT64_MAX);
    if (__builtin_mul_overflow(elements, static_cast<int64_t>(d), &elements))
      cursor.fail("dimension {} is {}: the number of elements exceeds {}", i, d, INT64_MAX);
    shape[n_dims - 1 - i] = static_cast<int64_t>(d);
  }
  return shape;
}

DType read_dtype(ByteCursor& cursor) {
  const auto id = cursor.read<uint32_t>("the element type");
  const std::optional<DType> type = dtype_from_gguf(id);
  if (!type)
    cursor.fail_as(ErrorCode::unsupported,
                   fmt::format("element type {} is unknown or withdrawn (known: 0 … 40 with gaps)", id));
  return *type;
}

/// Blocks lie along the contiguous dimension; the byte count may not fit even where the element count does.
int64_t checked_bytes(const ByteCursor& cursor, const TensorInfo& tensor) {
  const DTypeInfo& info = dtype_info(tensor.type);
  if (tensor.shape.back() % info.block != 0)
    cursor.fail("a row has {} elements, {} comes in blocks of {}", tensor.shape.back(), info.name,
                info.block);
  int64_t bytes = 0;
  if (__builtin_mul_overflow(tensor.elements() / info.block, int64_t{info.bytes}, &bytes))
    cursor.fail("shape {} of {} needs more than {} bytes", shape_text(tensor.shape), info.name, INT64_MAX);
  return bytes;
}

/// Everything but `data`, which needs the end of the last info; file_offset is still relative to the data
/// section.
TensorInfo read_info(ByteCursor& cursor, uint64_t alignment) {
  TensorInfo tensor;
  tensor.name = read_name(cursor);
  tensor.shape = read_shape(cursor);
  tensor.type = read_dtype(cursor);
  tensor.bytes = checked_bytes(cursor, tensor);
  const auto offset = cursor.read<uint64_t>("the offset");
  if (offset % alignment != 0)
    cursor.fail("offset {} is not a multiple of the alignment {}", offset, alignment);
  if (offset > static_cast<uint64_t>(INT64_MAX)) cursor.fail("offset {} exceeds {}", offset, INT64_MAX);
  tensor.file_offset = static_cast<int64_t>(offset);
  return tensor;
}

std::vector<TensorInfo> read_infos(ByteCursor& cursor, uint64_t count, uint64_t alignment) {
  cursor.enter("tensor infos");
  if (count > cursor.remaining() / kMinInfoBytes)
    cursor.fail("tensor_count is {}, but {} bytes are left, room for {} tensors", count, cursor.remaining(),
                cursor.remaining() / kMinInfoBytes);
  std::vector<TensorInfo> tensors;
  tensors.reserve(count);  // sizeof(TensorInfo) is about three times the smallest info
  for (uint64_t i = 0; i < count; i++) tensors.push_back(read_info(cursor, alignment));
  return tensors;
}
static_assert(sizeof(TensorInfo) <= 4 * kMinInfoBytes, "the memory bound of parse_gguf");

void place_data(const GgufFile& file, uint64_t data_start, TensorInfo& tensor) {
  const uint64_t offset = static_cast<uint64_t>(tensor.file_offset),
                 size = static_cast<uint64_t>(tensor.bytes);
  const uint64_t available = file.bytes.size > data_start ? file.bytes.size - data_start : 0;
  if (size > available || offset > available - size)
    throw Error(
        ErrorCode::corrupt_file,
        fmt::format(
            "{}: tensor {} has {} bytes at offset {} of the data, which has {} bytes (file cut short?)",
            file.path, quoted_name(tensor.name), size, offset, available));
  tensor.file_offset = static_cast<int64_t>(data_start + offset);
  tensor.data = file.bytes.data + tensor.file_offset;
}

std::vector<uint32_t> sorted_indices(const std::vector<TensorInfo>& tensors, auto less) {
  std::vector<uint32_t> order(tensors.size());
  for (uint32_t i = 0; i < order.size(); i++) order[i] = i;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return less(tensors[a], tensors[b]); });
  return order;
}

void refuse_overlaps(const GgufFile& file) {
  const auto order = sorted_indices(
      file.tensors, [](const TensorInfo& a, const TensorInfo& b) { return a.file_offset < b.file_offset; });
  for (size_t i = 1; i < order.size(); i++) {
    const TensorInfo &before = file.tensors[order[i - 1]], &after = file.tensors[order[i]];
    if (before.file_offset + before.bytes > after.file_offset)
      throw Error(ErrorCode::corrupt_file,
                  fmt::format("{}: tensor {} (bytes {} … {}) overlaps {} (from byte {})", file.path,
                              quoted_name(before.name), before.file_offset, before.file_offset + before.bytes,
                              quoted_name(after.name), after.file_offset));
  }
}

/// All parts of a model behind the common interface. Metadata is that of part 0.
class GgufSource final : public WeightSource {
 public:
  explicit GgufSource(std::vector<GgufFile> parts) : parts_(std::move(parts)) {
    size_t count = 0;
    for (const GgufFile& part : parts_) count += part.tensors.size();
    tensors_.reserve(count);
    for (GgufFile& part : parts_) {
      std::move(part.tensors.begin(), part.tensors.end(), std::back_inserter(tensors_));
      std::vector<TensorInfo>().swap(part.tensors);
    }
    by_name_ = sorted_indices(tensors_, [](const auto& a, const auto& b) { return a.name < b.name; });
    refuse_duplicates();
  }

  const std::string& path() const override { return parts_[0].path; }
  std::string format() const override { return fmt::format("GGUF v{}", parts_[0].version); }
  Naming naming() const override { return Naming::gguf; }
  const Metadata& metadata() const override { return parts_[0].metadata; }
  std::optional<std::string> companion(std::string_view) const override { return std::nullopt; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const TensorInfo* find(std::string_view name) const override {
    const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                     [&](uint32_t i, std::string_view n) { return tensors_[i].name < n; });
    return at != by_name_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
  }
  const std::vector<SetAside>& set_aside() const override { return set_aside_; }
  void give_back(const TensorInfo& tensor) const override { give_back_bytes(tensor.data, tensor.bytes); }
  void give_back_bytes(const uint8_t* data, int64_t bytes) const override {
    for (const GgufFile& part : parts_)
      if (part.bytes.holds(data)) drop_resident_pages(part.bytes, data, static_cast<size_t>(bytes));
  }
  int64_t file_bytes() const override {
    int64_t bytes = 0;
    for (const GgufFile& part : parts_) bytes += static_cast<int64_t>(part.bytes.size);
    return bytes;
  }
  std::vector<WeightFile> files() const override {
    std::vector<WeightFile> files;
    for (const GgufFile& part : parts_) add_weight_file(part.path, part.bytes, files);
    return files;
  }

 private:
  void refuse_duplicates() const {
    for (size_t i = 1; i < by_name_.size(); i++) {
      const TensorInfo &a = tensors_[by_name_[i - 1]], &b = tensors_[by_name_[i]];
      if (a.name == b.name)
        throw Error(
            ErrorCode::corrupt_file,
            fmt::format("{}: tensor {} appears twice, at bytes {} and {}", path(), quoted_name(a.name),
                        std::min(a.file_offset, b.file_offset), std::max(a.file_offset, b.file_offset)));
    }
  }

  std::vector<GgufFile> parts_;
  std::vector<TensorInfo> tensors_;
  std::vector<uint32_t> by_name_;    ///< indices into tensors_
  std::vector<SetAside> set_aside_;  ///< nothing: an element type that is not known fails the whole file
};

}  // namespace

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text(1, '[');
  for (size_t i = 0; i < shape.size(); i++) text.append(fmt::format("{}{}", i > 0 ? ", " : "", shape[i]));
  return text.append("]");
}

GgufFile parse_gguf(const std::string& path, FileBytes bytes) {
  ByteCursor cursor(path, bytes.data, bytes.size);
  const Header header = read_header(cursor);
  GgufFile file{path, std::move(bytes), header.version, GgufMetadata(path, cursor, header.kv_count), {}};
  const uint64_t alignment = read_alignment(path, file.metadata);
  file.tensors = read_infos(cursor, header.tensor_count, alignment);
  const uint64_t data_start = (cursor.position() + alignment - 1) / alignment * alignment;
  for (TensorInfo& tensor : file.tensors) place_data(file, data_start, tensor);
  refuse_overlaps(file);
  return file;
}

std::unique_ptr<WeightSource> open_gguf_bytes(const std::string& path, FileBytes bytes) {
  std::vector<GgufFile> parts;
  parts.push_back(parse_gguf(path, std::move(bytes)));
  return join_gguf(std::move(parts));
}

std::unique_ptr<WeightSource> join_gguf(std::vector<GgufFile> parts) {
  return std::make_unique<GgufSource>(std::move(parts));
}

}  // namespace liuli
