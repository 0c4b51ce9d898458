#include "convert/folder_tensors.h"

#include <map>
#include <optional>
#include <tuple>

#include <fmt/core.h>

#include "convert/rearranged_rows.h"
#include "liuli/error.h"
#include "model/binder.h"

namespace liuli {
namespace {

/// One folder tensor with what the family says about it.
struct Found {
  const TensorInfo* tensor;
  TensorSpec spec;
};
using Parts = std::vector<Found>;  ///< one, or the experts in their order

bool same_order(const RowOrder& a, const RowOrder& b) {
  return a.heads == b.heads && a.head_dim == b.head_dim && a.kept == b.kept;
}

/// From a row of the one file to the row of the other that holds the same values.
std::function<int64_t(int64_t)> stored_rows(const RowOrder& gguf, const RowOrder& folder, int64_t rows) {
  if (same_order(gguf, folder)) return {};
  std::vector<int64_t> map(static_cast<size_t>(rows));
  for (int64_t ours = 0; ours < rows; ours++)
    map[static_cast<size_t>(gguf.file_row(ours))] = folder.file_row(ours);
  return [map](int64_t row) { return map[static_cast<size_t>(row)]; };
}

class Converter {
 public:
  Converter(std::shared_ptr<const WeightSource> source, const Family& family, const ModelConfig& config)
      : source_(std::move(source)), family_(family), config_(config) {
    for (const TensorSpec& spec : family.list_tensors(config, Naming::hugging_face)) add(spec);
    gguf_specs_ = family.list_tensors(config, Naming::gguf);
  }

  std::vector<SourceTensor> run() {
    std::vector<SourceTensor> tensors;
    for (const TensorSpec& spec : gguf_specs_)
      if (auto tensor = make(spec)) tensors.push_back(std::move(*tensor));
    return tensors;
  }

 private:
  using Place = std::tuple<Role, int>;  ///< role, layer

  void add(const TensorSpec& spec) {
    if (spec.role == Role::rope_divisors) return;  // no folder stores them
    const TensorInfo* tensor = find_tensor(*source_, tensor_name(Naming::hugging_face, family_.names, spec));
    if (tensor != nullptr) found_[{spec.role, spec.layer}].push_back({tensor, spec});
  }

  const Parts* find(Role role, int layer) const {
    const auto it = found_.find({role, layer});
    return it == found_.end() ? nullptr : &it->second;
  }

  std::optional<SourceTensor> make(const TensorSpec& spec) const {
    if (spec.role == Role::rope_divisors) return divisors(spec);
    if (const Parts* parts = find(spec.role, spec.layer)) {
      if (spec.role == Role::attn_kv_b) return std::nullopt;  // its halves are written
      return wrap(spec, arrange(spec, *parts));
    }
    const Parts* both = find(Role::attn_kv_b, spec.layer);
    if (both != nullptr && spec.role == Role::attn_k_b) return wrap(spec, key_half(both->front()));
    if (both != nullptr && spec.role == Role::attn_v_b) return wrap(spec, value_half(both->front()));
    if (spec.optional) return std::nullopt;
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: nothing in the folder makes the tensor {}", source_->path(), name_of(spec)));
  }

  std::string name_of(const TensorSpec& spec) const { return tensor_name(Naming::gguf, family_.names, spec); }

  static Arrangement arrange(const TensorSpec& spec, const Parts& parts) {
    const TensorSpec& folder = parts.front().spec;
    Arrangement a;
    for (const Found& part : parts) a.parts.push_back(part.tensor);
    a.plus_one = folder.plus_one;
    a.stored_row = stored_rows(spec.order, folder.order, spec.shape.front());
    if (folder.transposed) a.block_rows = a.block_step = parts.front().tensor->shape.front();
    return a;
  }

  /// W_kvb is [k_up; v_up] head by head. k_b: every head's k_up with its columns as rows.
  Arrangement key_half(const Found& both) const {
    Arrangement a;
    a.parts = {both.tensor};
    a.block_rows = config_.latent.qk_nope_head_dim;
    a.block_step = config_.latent.qk_nope_head_dim + config_.latent.v_head_dim;
    return a;
  }
  Arrangement value_half(const Found& both) const {
    const int64_t nope = config_.latent.qk_nope_head_dim, v = config_.latent.v_head_dim;
    Arrangement a;
    a.parts = {both.tensor};
    a.stored_row = [nope, v](int64_t row) { return row / v * (nope + v) + nope + row % v; };
    return a;
  }

  SourceTensor wrap(const TensorSpec& spec, Arrangement arrangement) const {
    const DType type = arrangement.parts.front()->type;
    const auto rows = std::make_shared<RearrangedRows>(source_, std::move(arrangement), spec.shape.back());
    SourceTensor tensor{name_of(spec), type, spec.shape, rows->bytes(), {}, {}};
    tensor.decode = [rows](int64_t first, int64_t n, float* out) { rows->decode(first, n, out); };
    tensor.give_back = [rows] { rows->give_back(); };
    return tensor;
  }

  SourceTensor divisors(const TensorSpec& spec) const {
    const auto values = std::make_shared<const std::vector<float>>(config_.ropes.front().divisors);
    SourceTensor tensor{
        name_of(spec), DType::f32, spec.shape, reinterpret_cast<const uint8_t*>(values->data()), {}, {}};
    tensor.decode = [values](int64_t, int64_t n, float* out) {
      if (n > 0) std::copy(values->begin(), values->end(), out);
    };
    return tensor;
  }

  std::shared_ptr<const WeightSource> source_;
  const Family& family_;
  const ModelConfig& config_;
  std::vector<TensorSpec> gguf_specs_;
  std::map<Place, Parts> found_;
};

}  // namespace

std::vector<SourceTensor> folder_tensors(const std::shared_ptr<const WeightSource>& source,
                                         const Family& family, const ModelConfig& config) {
  return Converter(source, family, config).run();
}

}  // namespace liuli
