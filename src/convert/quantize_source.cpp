#include "convert/quantize_source.h"

#include <algorithm>

#include "convert/folder_source.h"
#include "kernels/kernels.h"

namespace liuli {
namespace {

/// A key of the architecture that is one number, or one per layer (then the largest).
int64_t architecture_number(const Metadata& metadata, const std::string& key, int64_t missing) {
  if (!metadata.has(key)) return missing;
  if (!metadata.is_array(key)) return metadata.integer(key).value_or(missing);
  const auto values = metadata.integers(key).value_or(std::vector<int64_t>{});
  return values.empty() ? missing : *std::max_element(values.begin(), values.end());
}

MixModel mix_model(const WeightSource& source) {
  const Metadata& metadata = source.metadata();
  const std::string prefix = metadata.text("general.architecture").value_or("") + ".";
  MixModel model;
  model.n_layers = architecture_number(metadata, prefix + "block_count", 0);
  const int64_t heads = architecture_number(metadata, prefix + "attention.head_count", 1);
  const int64_t kv_heads = architecture_number(metadata, prefix + "attention.head_count_kv", heads);
  model.heads_per_kv_head = kv_heads > 0 ? std::max<int64_t>(1, heads / kv_heads) : 1;
  model.n_experts = architecture_number(metadata, prefix + "expert_count", 0);
  model.tied_embeddings = source.find("output.weight") == nullptr;
  return model;
}

SourceTensor stored_tensor(const std::shared_ptr<const WeightSource>& source, const TensorInfo& info) {
  SourceTensor tensor{info.name, info.type, info.shape, info.data, {}, {}};
  const int64_t columns = info.shape.back(), row = row_bytes(info.type, columns);
  tensor.decode = [type = info.type, data = info.data, columns, row](int64_t first, int64_t n, float* out) {
    for (int64_t i = 0; i < n; i++)
      kernels::decode_row(type, data + (first + i) * row, columns, out + i * columns);
  };
  tensor.give_back = [source, &info] { source->give_back(info); };
  return tensor;
}

}  // namespace

int64_t SourceTensor::elements() const {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

QuantizeSource open_quantize_source(const std::string& path, bool tokenizer) {
  std::shared_ptr<const WeightSource> weights = open_weights(path);
  if (weights->naming() != Naming::gguf) return folder_source(weights, tokenizer);
  QuantizeSource source{path, {}, {}, mix_model(*weights), weights, {}};
  source.keys.copy_all(weights->metadata());
  // The parts are joined: what says otherwise would be wrong.
  for (const char* key : {"split.no", "split.count", "split.tensors.count"}) source.keys.remove(key);
  for (const TensorInfo& info : weights->tensors()) source.tensors.push_back(stored_tensor(weights, info));
  return source;
}

}  // namespace liuli
