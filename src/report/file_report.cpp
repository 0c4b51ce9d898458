// What is inside a model file (include/liuli/model_file.h).
#include <algorithm>

#include <fmt/format.h>

#include "formats/npy.h"
#include "formats/weight_source.h"
#include "kernels/kernels.h"
#include "liuli/error.h"
#include "liuli/model_file.h"

namespace liuli {
namespace {

void add_type(std::vector<FileType>& types, const TensorInfo& tensor) {
  const char* name = dtype_info(tensor.type).name;
  auto it = std::find_if(types.begin(), types.end(), [&](const FileType& t) { return t.type == name; });
  if (it == types.end()) it = types.insert(types.end(), FileType{name, 0, 0, 0});
  it->tensors++;
  it->elements += tensor.elements();
  it->bytes += tensor.bytes;
}

// Tensors whose names share the most letters in order with what was asked for.
std::string similar_tensors(const WeightSource& source, const std::string& name) {
  auto common = [&](const std::string& other) {
    size_t n = 0;
    while (n < name.size() && n < other.size() && name[n] == other[n]) n++;
    return n;
  };
  std::vector<const TensorInfo*> order;
  for (const TensorInfo& t : source.tensors()) order.push_back(&t);
  std::stable_sort(order.begin(), order.end(), [&](const TensorInfo* a, const TensorInfo* b) {
    return common(a->name) > common(b->name);
  });
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(3, order.size()); i++) names += (i ? ", " : "") + order[i]->name;
  return names;
}

// Why a tensor cannot be had: it is not there, or it is and cannot be read.
Error missing_tensor(const WeightSource& source, const std::string& name) {
  for (const SetAside& tensor : source.set_aside())
    if (tensor.name == name)
      return Error(ErrorCode::unsupported,
                   fmt::format("{}: tensor \"{}\" {}", source.path(), name, tensor.reason));
  return Error(ErrorCode::not_found, fmt::format("{}: no tensor \"{}\"; nearest: {}", source.path(), name,
                                                 similar_tensors(source, name)));
}

}  // namespace

FileReport inspect_file(const std::string& path, size_t array_items) {
  const auto source = open_weights(path);
  FileReport report;
  report.path = path;
  report.format = source->format();
  report.file_bytes = source->file_bytes();
  for (const std::string& key : source->metadata().keys())
    report.metadata.push_back(
        {key, source->metadata().type_name(key), source->metadata().json(key, array_items)});
  for (const TensorInfo& t : source->tensors()) {
    report.tensors.push_back({t.name, dtype_info(t.type).name, t.shape, t.elements(), t.bytes});
    report.parameters += t.elements();
    report.tensor_bytes += t.bytes;
    add_type(report.types, t);
  }
  for (const SetAside& t : source->set_aside()) report.set_aside.push_back({t.name, t.reason});
  std::stable_sort(report.types.begin(), report.types.end(),
                   [](const FileType& a, const FileType& b) { return a.bytes > b.bytes; });
  return report;
}

DecodedTensor decode_tensor(const std::string& path, const std::string& tensor) {
  const auto source = open_weights(path);
  const TensorInfo* info = source->find(tensor);
  if (info == nullptr) throw missing_tensor(*source, tensor);
  DecodedTensor decoded{tensor, info->shape, std::vector<float>(static_cast<size_t>(info->elements()))};
  const int64_t width = info->shape.empty() ? 1 : info->shape.back();
  const int64_t rows =
      width == 0 ? 0 : info->elements() / width;  // safetensors may hold tensors of no elements
  const auto bytes = source->bytes_of(*info);
  for (int64_t row = 0; row < rows; row++)
    kernels::decode_row(info->type, bytes.get() + row * row_bytes(info->type, width), width,
                        decoded.values.data() + row * width);
  return decoded;
}

}  // namespace liuli
