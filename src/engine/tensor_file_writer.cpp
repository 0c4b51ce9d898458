// Readers and writers of include/liuli/model_file.h over the formats'.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/safetensors.h"
#include "liuli/error.h"
#include "liuli/model_file.h"

namespace liuli {
namespace {

int64_t elements(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

}  // namespace

void write_npy(const std::string& path, const std::vector<int64_t>& shape, const std::vector<float>& values) {
  if (const int64_t n = elements(shape); n != static_cast<int64_t>(values.size()))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: the shape holds {} values, {} were given", path, n, values.size()));
  write_npy(path, shape, values.data());
}

std::vector<DecodedTensor> read_arrays(const std::string& path) {
  std::vector<DecodedTensor> arrays;
  if (path.ends_with(".npy") || path.ends_with(".npz")) {
    std::vector<NpyArray> read;
    if (path.ends_with(".npz"))
      read = read_npz(path);
    else
      read.push_back(read_npy(path));
    for (NpyArray& a : read) arrays.push_back({a.name, a.shape, std::move(a.values)});
    return arrays;
  }
  const SafetensorsFile file(path);
  for (const auto& tensor : file.tensors())
    if (tensor.dtype.front() == 'F' || tensor.dtype == "BF16")
      arrays.push_back({tensor.name, tensor.shape, file.floats(tensor.name)});
  return arrays;
}

struct TensorFileWriter::Impl {
  std::optional<SafetensorsWriter> safetensors;
  std::optional<NpzWriter> npz;
  std::string path;
  std::vector<int64_t> n_values;
  size_t tensor = 0;  // where append() goes on in an .npz
  int64_t at = 0;

  // Tensors without values are passed by.
  void skip_full() {
    while (tensor < n_values.size() && at == n_values[tensor]) tensor++, at = 0;
  }
  void append_to_npz(const float* values, int64_t n) {
    for (skip_full(); n > 0; skip_full()) {
      if (tensor == n_values.size())
        throw Error(ErrorCode::invalid_argument, fmt::format("{}: {} values more than announced", path, n));
      const int64_t piece = std::min(n, n_values[tensor] - at);
      npz->write_at(tensor, at, values, piece);
      at += piece;
      values += piece;
      n -= piece;
    }
  }
};

TensorFileWriter::TensorFileWriter(const std::string& path, const std::vector<Entry>& entries,
                                   const std::map<std::string, std::string>& metadata)
    : impl_(std::make_unique<Impl>()) {
  impl_->path = path;
  for (const Entry& entry : entries) impl_->n_values.push_back(elements(entry.shape));
  if (path.ends_with(".npz")) {
    std::vector<NpzWriter::Spec> specs;
    for (const Entry& entry : entries) specs.push_back({entry.name, entry.shape});
    impl_->npz.emplace(path, specs, metadata);
    return;
  }
  std::vector<SafetensorsSpec> specs;
  for (const Entry& entry : entries) specs.push_back({entry.name, DType::f32, entry.shape});
  impl_->safetensors.emplace(path, specs, metadata);
}
TensorFileWriter::~TensorFileWriter() = default;

void TensorFileWriter::append(const float* values, size_t n) {
  if (impl_->npz)
    impl_->append_to_npz(values, static_cast<int64_t>(n));
  else
    impl_->safetensors->append(values, n * sizeof(float));
}

void TensorFileWriter::write_at(size_t tensor, int64_t first, const float* values, int64_t n) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(float));
  if (impl_->npz)
    impl_->npz->write_at(tensor, first, values, n);
  else
    impl_->safetensors->write_at(tensor, first * kSize, values, static_cast<size_t>(n * kSize));
}

void TensorFileWriter::finish() {
  if (impl_->npz)
    impl_->npz->finish();
  else
    impl_->safetensors->finish();
}

}  // namespace liuli
