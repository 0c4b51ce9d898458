#include "formats/npy.h"

#include <fmt/core.h>

#include "core/output_file.h"

namespace liuli {

/// Magic, version, u16 length and a Python dictionary, padded with spaces and a line end to a multiple of 64.
std::string npy_header(const std::vector<int64_t>& shape, const std::string& type) {
  std::string tuple;
  for (const int64_t d : shape) tuple += fmt::format("{}, ", d);
  if (shape.size() > 1) tuple.resize(tuple.size() - 2);  // a tuple of one keeps its comma
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, tuple);
  constexpr size_t kPrefixBytes = 10, kAlignment = 64;
  text.append(kAlignment - 1 - (kPrefixBytes + text.size()) % kAlignment, ' ');
  text += '\n';
  std::string header = "\x93NUMPY";
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() & 255);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

void write_npy(const std::string& path, const std::vector<int64_t>& shape, const float* values) {
  size_t count = 1;
  for (const int64_t d : shape) count *= static_cast<size_t>(d);
  OutputFile file(path);
  file.write(npy_header(shape));
  file.write(values, count * sizeof(float));
  file.commit();
}

}  // namespace liuli
