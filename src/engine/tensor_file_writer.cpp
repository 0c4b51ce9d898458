// Writers of include/liuli/model_file.h over the formats'.
#include <fmt/format.h>

#include "formats/npy.h"
#include "formats/safetensors.h"
#include "liuli/error.h"
#include "liuli/model_file.h"

namespace liuli {

void write_npy(const std::string& path, const std::vector<int64_t>& shape, const std::vector<float>& values) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  if (n != static_cast<int64_t>(values.size()))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: the shape holds {} values, {} were given", path, n, values.size()));
  write_npy(path, shape, values.data());
}

struct TensorFileWriter::Impl {
  SafetensorsWriter writer;
};

TensorFileWriter::TensorFileWriter(const std::string& path, const std::vector<Entry>& entries,
                                   const std::map<std::string, std::string>& metadata) {
  std::vector<SafetensorsSpec> specs;
  for (const Entry& entry : entries) specs.push_back({entry.name, DType::f32, entry.shape});
  impl_ = std::unique_ptr<Impl>(new Impl{SafetensorsWriter(path, specs, metadata)});
}
TensorFileWriter::~TensorFileWriter() = default;

void TensorFileWriter::append(const float* values, size_t n) {
  impl_->writer.append(values, n * sizeof(float));
}
void TensorFileWriter::finish() { impl_->writer.finish(); }

}  // namespace liuli
