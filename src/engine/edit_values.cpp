#include "engine/edit_values.h"

#include <cstring>

#include <fmt/format.h>

#include "formats/mapped_file.h"
#include "formats/safetensors.h"
#include "liuli/error.h"

namespace liuli {
namespace {

[[noreturn]] void not_readable(const std::string& path, const char* why) {
  throw Error(ErrorCode::corrupt_file, fmt::format("{}: {}", path, why));
}

template <class T>
std::vector<float> numbers(const uint8_t* data, size_t bytes) {
  std::vector<float> values(bytes / sizeof(T));
  for (size_t i = 0; i < values.size(); i++) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    values[i] = static_cast<float>(value);
  }
  return values;
}

// "\x93NUMPY", version, length of a header that says type, order and shape; then the values.
std::vector<float> read_npy(const std::string& path) {
  const FileBytes file = map_file(path);
  const uint8_t* bytes = file.data;
  if (file.size < 12 || std::memcmp(bytes, "\x93NUMPY", 6) != 0) not_readable(path, "not a .npy file");
  const size_t prefix = bytes[6] == 1 ? 10 : 12;
  size_t header = bytes[8] | size_t{bytes[9]} << 8;
  if (prefix == 12) header |= size_t{bytes[10]} << 16 | size_t{bytes[11]} << 24;
  if (header > file.size - prefix) not_readable(path, "the header is longer than the file");
  const std::string text(reinterpret_cast<const char*>(bytes) + prefix, header);
  if (text.find("'fortran_order': False") == std::string::npos)
    not_readable(path, "expected values in C order (fortran_order False)");
  const uint8_t* data = bytes + prefix + header;
  const size_t n = file.size - prefix - header;
  if (text.find("'<f4'") != std::string::npos) return numbers<float>(data, n);
  if (text.find("'<f8'") != std::string::npos) return numbers<double>(data, n);
  not_readable(path, "expected float32 or float64 values");
}

}  // namespace

std::vector<float> read_edit_vector(const std::string& place) {
  const size_t end = place.find(".safetensors:");
  if (end != std::string::npos) {
    const size_t colon = end + std::strlen(".safetensors");
    return SafetensorsFile(place.substr(0, colon)).floats(place.substr(colon + 1));
  }
  if (place.ends_with(".npy")) return read_npy(place);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: expected FILE.npy or FILE.safetensors:TENSOR", place));
}

}  // namespace liuli
