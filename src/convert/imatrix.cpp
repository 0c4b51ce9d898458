#include "convert/imatrix.h"

#include <fmt/core.h>

#include <cmath>
#include <cstring>

#include "formats/gguf_writer.h"
#include "formats/weight_source.h"
#include "liuli/error.h"

namespace liuli {
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";

[[noreturn]] void corrupt(const std::string& path, const std::string& reason) {
  throw Error(ErrorCode::corrupt_file, fmt::format("{}: {}", path, reason));
}

std::vector<float> values_of(const std::string& path, const TensorInfo& info) {
  if (info.type != DType::f32)
    corrupt(path,
            fmt::format("{} is {}, an importance matrix holds F32", info.name, dtype_info(info.type).name));
  std::vector<float> values(static_cast<size_t>(info.elements()));
  std::memcpy(values.data(), info.data, values.size() * sizeof(float));
  for (size_t i = 0; i < values.size(); i++)
    if (!(values[i] >= 0) || std::isinf(values[i]))
      corrupt(path,
              fmt::format("{}[{}] is {}, expected a sum of squares or a count", info.name, i, values[i]));
  return values;
}

ImportanceMatrix::Entry read_entry(const std::string& path, const WeightSource& file, const TensorInfo& sums,
                                   const std::string& name) {
  const TensorInfo* counts = file.find(name + std::string(kCounts));
  if (counts == nullptr) corrupt(path, fmt::format("{} has no {}{} beside it", sums.name, name, kCounts));
  ImportanceMatrix::Entry entry{values_of(path, sums), values_of(path, *counts)};
  const auto columns = static_cast<size_t>(sums.shape.back());
  if (columns == 0 || entry.sums.size() != entry.counts.size() * columns)
    corrupt(path, fmt::format("{} is {}, {} is {}: expected one count per row", sums.name,
                              shape_text(sums.shape), counts->name, shape_text(counts->shape)));
  return entry;
}

}  // namespace

std::vector<float> ImportanceMatrix::Entry::means() const {
  std::vector<float> means(sums.size(), 1.0f);
  const size_t columns = sums.size() / counts.size();
  for (size_t i = 0; i < sums.size(); i++)
    if (const float count = counts[i / columns]; count > 0) means[i] = sums[i] / count;
  return means;
}

ImportanceMatrix read_imatrix(const std::string& path) {
  const auto file = open_weights(path);
  const Metadata& keys = file->metadata();
  ImportanceMatrix matrix;
  for (const TensorInfo& info : file->tensors()) {
    if (!std::string_view(info.name).ends_with(kSums)) continue;
    const std::string name = info.name.substr(0, info.name.size() - kSums.size());
    matrix.entries[name] = read_entry(path, *file, info, name);
  }
  if (matrix.entries.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: is no importance matrix: no tensor is named …{} (general.type is \"{}\")",
                            path, kSums, keys.text("general.type").value_or("")));
  if (keys.has("imatrix.datasets"))
    matrix.datasets = keys.texts("imatrix.datasets").value_or(matrix.datasets);
  matrix.chunk_count = keys.integer("imatrix.chunk_count").value_or(0);
  matrix.chunk_size = keys.integer("imatrix.chunk_size").value_or(0);
  return matrix;
}

void write_imatrix(const std::string& path, const ImportanceMatrix& matrix) {
  if (matrix.entries.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: there is nothing to write: no matrix was seen", path));
  GgufKeys keys;
  keys.text("general.type", "imatrix").texts("imatrix.datasets", matrix.datasets);
  keys.u32("imatrix.chunk_count", static_cast<uint32_t>(matrix.chunk_count));
  keys.u32("imatrix.chunk_size", static_cast<uint32_t>(matrix.chunk_size));
  std::vector<GgufTensorSpec> specs;
  for (const auto& [name, entry] : matrix.entries) {
    const auto n = static_cast<int64_t>(entry.counts.size()), all = static_cast<int64_t>(entry.sums.size());
    specs.push_back({name + std::string(kSums), DType::f32, {n, all / n}});
    specs.push_back({name + std::string(kCounts), DType::f32, {n, 1}});
  }
  GgufWriter writer(path, keys, std::move(specs));
  for (const auto& [name, entry] : matrix.entries) {
    writer.append(entry.sums.data(), entry.sums.size() * sizeof(float));
    writer.append(entry.counts.data(), entry.counts.size() * sizeof(float));
  }
  writer.finish();
}

}  // namespace liuli
