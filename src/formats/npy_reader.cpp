#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "core/half.h"
#include "formats/mapped_file.h"
#include "formats/npy.h"
#include "liuli/error.h"

namespace liuli {
namespace {

// The pieces of one array's header; messages name the file.
class NpyHeader {
 public:
  NpyHeader(const std::string& path, const uint8_t* bytes, size_t size) : path_(path) {
    if (size < 12 || std::memcmp(bytes, "\x93NUMPY", 6) != 0) corrupt("it does not begin as a NumPy array");
    const size_t wide = bytes[6] >= 2 ? 4 : 2;
    size_t length = 0;
    for (size_t i = wide; i-- > 0;) length = length << 8 | bytes[8 + i];
    data_at_ = 8 + wide + length;
    if (data_at_ > size) corrupt(fmt::format("its header of {} bytes does not fit into {}", length, size));
    text_.assign(reinterpret_cast<const char*>(bytes) + 8 + wide, length);
  }

  size_t data_at() const { return data_at_; }
  [[noreturn]] void corrupt(const std::string& what) const {
    throw Error(ErrorCode::corrupt_file, fmt::format("{}: {}", path_, what));
  }

  // The text between what follows 'key': and the end of that value.
  std::string value(const std::string& key, char open, char close) const {
    const size_t at = text_.find("'" + key + "'");
    const size_t begin = at == std::string::npos ? at : text_.find(open, at + key.size() + 2);
    const size_t end = begin == std::string::npos ? begin : text_.find(close, begin + 1);
    if (end == std::string::npos) corrupt(fmt::format("its header lacks {}", key));
    return text_.substr(begin + 1, end - begin - 1);
  }

  std::vector<int64_t> shape() const {
    std::vector<int64_t> sizes;
    const std::string list = value("shape", '(', ')');
    for (const char *at = list.data(), *end = at + list.size(); at < end;) {
      if (*at == ' ' || *at == ',') {
        at++;
        continue;
      }
      int64_t size = 0;
      const auto [next, error] = std::from_chars(at, end, size);
      if (error != std::errc() || size < 0) corrupt(fmt::format("its shape ({}) is none", list));
      sizes.push_back(size);
      at = next;
    }
    return sizes;
  }

  void require_c_order() const {
    if (text_.find("'fortran_order': False") == std::string::npos)
      throw Error(ErrorCode::unsupported, path_ + ": an array in Fortran order is not read");
  }

 private:
  const std::string& path_;
  std::string text_;
  size_t data_at_ = 0;
};

template <class T>
float read_as(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<float>(value);
}

float read_half(const uint8_t* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return f16_to_f32(bits);
}

struct NpyType {
  const char* name;
  size_t bytes;
  float (*read)(const uint8_t*);
};
constexpr NpyType kTypes[] = {
    {"<f4", 4, read_as<float>},    {"<f8", 8, read_as<double>},  {"<f2", 2, read_half},
    {"<i4", 4, read_as<int32_t>},  {"<i8", 8, read_as<int64_t>}, {"<i2", 2, read_as<int16_t>},
    {"|i1", 1, read_as<int8_t>},   {"|u1", 1, read_as<uint8_t>}, {"|b1", 1, read_as<uint8_t>},
    {"<u2", 2, read_as<uint16_t>}, {"<u4", 4, read_as<uint32_t>}};

}  // namespace

NpyArray read_npy(const std::string& path, const uint8_t* bytes, size_t size) {
  const NpyHeader header(path, bytes, size);
  const std::string type_name = header.value("descr", '\'', '\'');
  const NpyType* type = nullptr;
  for (const NpyType& known : kTypes)
    if (type_name == known.name) type = &known;
  if (type == nullptr)
    throw Error(ErrorCode::unsupported, fmt::format("{}: an array of type {} is not read", path, type_name));
  header.require_c_order();
  NpyArray array{"", header.shape(), {}};
  const size_t available = (size - header.data_at()) / type->bytes;
  size_t count = 1;
  for (const int64_t d : array.shape) {
    if (d > 0 && count > available / static_cast<size_t>(d))
      header.corrupt(fmt::format("its shape holds more values than its {} bytes", size - header.data_at()));
    count *= static_cast<size_t>(d);
  }
  if (count > available) header.corrupt("it ends before its last value");
  array.values.resize(count);
  for (size_t i = 0; i < count; i++) array.values[i] = type->read(bytes + header.data_at() + i * type->bytes);
  return array;
}

NpyArray read_npy(const std::string& path) {
  const FileBytes file = map_file(path);
  return read_npy(path, file.data, file.size);
}

}  // namespace liuli
