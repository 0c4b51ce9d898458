#include "model/binder.h"

#include <cstring>

#include <fmt/format.h>

#include "core/check.h"
#include "liuli/error.h"

namespace liuli {
namespace {

std::vector<int64_t> stored_shape(const TensorSpec& spec) {
  return spec.transposed ? std::vector<int64_t>{spec.shape[1], spec.shape[0]} : spec.shape;
}

// Checkpoints of the same family differ in what wraps the bare model.
constexpr const char* kWrappers[] = {"model.", "transformer.", "bert.", "language_model.",
                                     "model.language_model."};

// Values of a plain type, row by row: out [columns, rows].
std::vector<uint8_t> transpose_plain(const uint8_t* data, int64_t rows, int64_t columns, int64_t size) {
  std::vector<uint8_t> out(static_cast<size_t>(rows * columns * size));
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      std::memcpy(out.data() + (j * rows + i) * size, data + (i * columns + j) * size,
                  static_cast<size_t>(size));
  return out;
}

std::vector<uint8_t> transpose_decoded(DType type, const uint8_t* data, int64_t rows, int64_t columns) {
  std::vector<uint8_t> out(static_cast<size_t>(rows * columns) * sizeof(float));
  std::vector<float> row(static_cast<size_t>(columns));
  for (int64_t i = 0; i < rows; i++) {
    kernels::decode_row(type, data + i * row_bytes(type, columns), columns, row.data());
    for (int64_t j = 0; j < columns; j++)
      std::memcpy(out.data() + static_cast<size_t>(j * rows + i) * sizeof(float),
                  &row[static_cast<size_t>(j)], sizeof(float));
  }
  return out;
}

// "LayerNorm.weight" as the first checkpoints, written by TensorFlow, spell it: "LayerNorm.gamma"; else "".
std::string older_spelling(const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos || !std::string_view(name).substr(0, dot).ends_with("LayerNorm")) return "";
  return name.substr(0, dot) + (name.ends_with(".weight") ? ".gamma" : ".beta");
}

}  // namespace

Binder::Binder(const WeightSource& source, const Family& family, Model& model)
    : source_(source), model_(model) {
  for (TensorSpec& spec : family.list_tensors(model.config, source.naming())) {
    if (source.naming() == Naming::trained) {  // laid out as the block uses it
      spec.order = {};
      spec.transposed = spec.plus_one = false;
    }
    const std::string name = tensor_name(source.naming(), family.names, spec);
    const TensorInfo* tensor = look_up(name);
    if (tensor == nullptr && spec.optional) continue;
    check(name, tensor, spec);
    found_[{spec.role, spec.layer, spec.expert, spec.encoder}] = {tensor, std::move(spec)};
  }
  refuse_strangers(family);
}

const TensorInfo* find_tensor(const WeightSource& source, const std::string& name) {
  const TensorInfo* tensor = source.find(name);
  if (source.naming() != Naming::hugging_face) return tensor;
  for (const char* wrapper : kWrappers)
    if (tensor == nullptr) tensor = source.find(wrapper + name);
  for (const std::string_view wrapper : kWrappers)
    if (tensor == nullptr && name.rfind(wrapper, 0) == 0) tensor = source.find(name.substr(wrapper.size()));
  if (const std::string older = older_spelling(name); tensor == nullptr && !older.empty())
    return find_tensor(source, older);
  return tensor;
}

const TensorInfo* Binder::look_up(const std::string& name) {
  const TensorInfo* tensor = find_tensor(source_, name);
  if (tensor != nullptr) known_.insert(tensor->name);
  return tensor;
}

void Binder::check(const std::string& name, const TensorInfo* tensor, const TensorSpec& spec) const {
  const std::vector<int64_t> shape = stored_shape(spec);
  if (tensor == nullptr)
    throw Error(ErrorCode::corrupt_file,
                fmt::format("{}: tensor {} {} is missing", source_.path(), name, shape_text(shape)));
  if (tensor->shape != shape)
    throw Error(ErrorCode::corrupt_file,
                fmt::format("{}: tensor {} has shape {}, the configuration demands {}", source_.path(), name,
                            shape_text(tensor->shape), shape_text(shape)));
}

void Binder::refuse_strangers(const Family& family) const {
  for (const TensorInfo& tensor : source_.tensors()) {
    if (known_.count(tensor.name) != 0) continue;
    if (family.unused_tensor != nullptr && family.unused_tensor(model_.config, tensor.name)) {
      model_.unused_tensors.push_back(tensor.name);
      continue;
    }
    throw Error(ErrorCode::unsupported, fmt::format("{}: tensor {} is not part of family {}", source_.path(),
                                                    tensor.name, model_.config.family));
  }
}

const Binder::Bound* Binder::find(Role role, Where at, int expert) const {
  const auto it = found_.find({role, at.layer, expert, at.encoder});
  return it == found_.end() ? nullptr : &it->second;
}

Binder::StoredRows Binder::rows_of(const Bound& bound) const {
  const TensorInfo& t = *bound.tensor;
  if (!bound.spec.transposed) return {t.type, bytes_of(t), t.shape.back()};
  auto& built = transposes_[&t];
  StoredRows rows = transpose(t, 0, t.shape[0]);
  if (built == nullptr) built = rows.rows.built;
  rows.rows.built = built;
  return rows;
}

FileRows Binder::bytes_of(const TensorInfo& tensor) const {
  if (tensor.data != nullptr) return {source_.bytes_of(tensor)};
  auto& built = built_[&tensor];
  if (built == nullptr)
    built = std::make_shared<BuiltRows>([&source = source_, &tensor] { return source.bytes_of(tensor); });
  return {nullptr, built};
}

Binder::StoredRows Binder::transpose(const TensorInfo& t, int64_t first, int64_t n) const {
  const int64_t columns = t.shape.back();
  const bool plain = dtype_info(t.type).block == 1;
  const FileRows stored = bytes_of(t).from(first * row_bytes(t.type, columns));
  auto build = [stored, type = t.type, plain, n, columns] {
    const uint8_t* from = stored.built ? stored.built->get() + stored.offset : stored.kept.get();
    const auto out = std::make_shared<const std::vector<uint8_t>>(
        plain ? transpose_plain(from, n, columns, dtype_info(type).bytes)
              : transpose_decoded(type, from, n, columns));
    return std::shared_ptr<const uint8_t>(out, out->data());
  };
  return {plain ? t.type : DType::f32, {nullptr, std::make_shared<BuiltRows>(std::move(build))}, n};
}

Matrix Binder::matrix(Role role, Where at) const {
  const Bound* bound = find(role, at);
  if (bound == nullptr) return {};
  const StoredRows rows = rows_of(*bound);
  return Matrix(bound->tensor->name, rows.type, bound->spec.shape[0], rows.width, rows.rows,
                bound->spec.order);
}

Matrix Binder::matrix_rows(Role role, Where at, int64_t first, int64_t n) const {
  const Bound* bound = find(role, at);
  LIULI_CHECK(bound != nullptr);
  const StoredRows rows = rows_of(*bound);
  return Matrix(bound->tensor->name, rows.type, n, rows.width, rows.from(first));
}

Matrix Binder::expert_matrix(Role role, Where at, int expert) const {
  if (const Bound* bound = find(role, at, expert)) {
    const TensorInfo& t = *bound->tensor;
    return Matrix(t.name, t.type, t.shape[0], t.shape[1], bytes_of(t));
  }
  const Bound* stacked = find(role, at);
  LIULI_CHECK(stacked != nullptr);
  const int64_t rows = stacked->tensor->shape[1];
  return matrix_rows(role, at, expert * rows, rows);
}

Matrix Binder::transposed_rows(Role role, Where at, int64_t first, int64_t n) const {
  const Bound* bound = find(role, at);
  LIULI_CHECK(bound != nullptr);
  const TensorInfo& t = *bound->tensor;
  const StoredRows rows = transpose(t, first, n);
  return Matrix(t.name, rows.type, t.shape.back(), n, rows.rows);
}

const float* Binder::vector(Role role, Where at) const {
  const Bound* bound = find(role, at);
  if (bound == nullptr) return nullptr;
  const TensorInfo& t = *bound->tensor;
  if (source_.naming() == Naming::trained)
    return reinterpret_cast<const float*>(t.data);  // it changes while it learns
  std::vector<float> stored(static_cast<size_t>(t.elements()));
  kernels::decode_row(t.type, source_.bytes_of(t).get(), t.elements(), stored.data());
  std::vector<float>& out = model_.vectors.emplace_back(stored);
  for (size_t i = 0; i < out.size(); i++) {
    out[i] = stored[static_cast<size_t>(bound->spec.order.file_row(static_cast<int64_t>(i)))];
    if (bound->spec.plus_one) out[i] += 1;
  }
  return out.data();
}

Norm Binder::norm(NormKind kind, Role weight, Where at, std::optional<Role> beta) const {
  if (kind == NormKind::none) return {};
  const float* shift = kind == NormKind::layer && beta ? vector(*beta, at) : nullptr;
  return {kind, vector(weight, at), shift, static_cast<float>(model_.config.norm_eps)};
}

}  // namespace liuli
