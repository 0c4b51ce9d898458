#include "report/shape.h"

#include <fmt/core.h>

#include <algorithm>

#include "convert/tensor_list.h"
#include "convert/type_mix.h"
#include "liuli/error.h"

namespace liuli {
namespace {

constexpr int64_t kCacheBytes = 2;  ///< of one cached number: f16 or bf16

int64_t active_elements(const ModelTensor& tensor) {
  return static_cast<int64_t>(static_cast<double>(tensor.elements()) * tensor.active);
}

/// A tensor that is computed from a formula when a file is written is not a parameter.
bool counts(const ModelTensor& tensor) { return tensor.filling != Filling::divisors; }

void add_sizes(ModelShape& shape, const KnownModel& m) {
  shape.name = m.name;
  shape.title = m.title;
  shape.architecture = m.family->architecture;
  shape.vocab_size = m.vocab_size;
  shape.d_model = m.d_model;
  shape.d_ff = m.d_ff;
  shape.n_layers = m.n_layers;
  shape.n_encoder_layers = m.n_encoder_layers;
  shape.n_heads = m.n_heads;
  shape.n_kv_heads = m.n_kv_heads;
  shape.head_dim = m.head_dim;
  shape.trained_context = m.context;
  shape.tied_embeddings = m.tied_embeddings;
  shape.n_experts = m.experts.n_experts;
  shape.n_experts_active = m.experts.n_experts_active;
  shape.expert_d_ff = m.experts.d_ff;
  shape.n_dense_layers = m.experts.n_dense_layers;
}

void add_parameters(ModelShape& shape, const KnownModel& m, const std::vector<ModelTensor>& tensors) {
  for (const ModelTensor& tensor : tensors) {
    if (!counts(tensor)) continue;
    const std::string name = part_name(tensor.part);
    auto part =
        std::find_if(shape.parts.begin(), shape.parts.end(), [&](const auto& p) { return p.name == name; });
    if (part == shape.parts.end()) part = shape.parts.insert(part, {name, 0, 0});
    part->parameters += tensor.elements();
    part->active += active_elements(tensor);
    if (tensor.multiplies(m)) shape.product_flops += 2 * static_cast<double>(active_elements(tensor));
  }
  for (const ShapePart& part : shape.parts) {
    shape.parameters += part.parameters;
    shape.active_parameters += part.active;
  }
}

/// DeepSeek's way of storing 8-bit floats: matrices in E4M3 with one f32 scale per 128 × 128, the rest in BF16.
int64_t fp8_bytes(const ModelTensor& tensor, const KnownModel& m) {
  const bool kept = !tensor.multiplies(m) || tensor.part == ModelPart::router ||
                    tensor.part == ModelPart::embedding || tensor.part == ModelPart::output;
  if (kept) return 2 * tensor.elements();
  const int64_t d_in = tensor.shape.back(), rows = tensor.elements() / d_in;
  return tensor.elements() + (rows + 127) / 128 * ((d_in + 127) / 128) * 4;
}

int64_t mixed_bytes(const ModelTensor& tensor, const TypeMix& mix, const MixModel& model) {
  const DType type = mix.type_of(tensor.name, tensor.shape, model);
  return tensor.elements() / tensor.shape.back() * row_bytes(type, tensor.shape.back());
}

/// Not an estimate: each tensor's type is the one a quantiser with this mix would choose.
void add_bytes(ModelShape& shape, const KnownModel& m, const std::vector<ModelTensor>& tensors) {
  const MixModel mix_model = mix_model_of(m);
  const auto add = [&](std::string type, auto&& bytes_of) {
    ShapeBytes row{std::move(type), 0, 0};
    for (const ModelTensor& tensor : tensors)
      if (counts(tensor)) row.bytes += bytes_of(tensor);
    row.bits = 8 * static_cast<double>(row.bytes) / static_cast<double>(shape.parameters);
    shape.bytes.push_back(std::move(row));
  };
  add("F32", [](const ModelTensor& t) { return 4 * t.elements(); });
  add("F16, BF16", [](const ModelTensor& t) { return 2 * t.elements(); });
  add("FP8", [&](const ModelTensor& t) { return fp8_bytes(t, m); });
  if (shape.architecture.empty()) return;
  for (const char* name : {"q8_0", "q6_k", "q5_k_m", "q4_k_m", "q4_0", "q3_k_m", "q2_k"}) {
    const TypeMix& mix = *find_type_mix(name);
    std::string upper(name);
    for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    add(upper, [&](const ModelTensor& t) { return mixed_bytes(t, mix, mix_model); });
  }
}

void add_cache(ModelShape& shape, const KnownModel& m) {
  if (!m.family->decoder) return;
  const int64_t pair = (m.key_width() + m.value_width()) * kCacheBytes;
  shape.cache_plain = m.n_layers * m.n_heads * pair;
  if (m.n_kv_heads < m.n_heads) shape.cache_grouped = m.n_layers * m.n_kv_heads * pair;
  if (m.latent != nullptr)
    shape.cache_latent = m.n_layers * (m.latent->kv_lora_rank + m.latent->qk_rope_head_dim) * kCacheBytes;
  int64_t per_token = shape.cache_plain;
  for (const int64_t form : {shape.cache_grouped, shape.cache_latent})
    if (form > 0) per_token = std::min(per_token, form);
  for (int64_t i = 0; i < m.n_layers; i++) {
    const int64_t kept = m.windowed(i) ? std::min(m.sliding_window, shape.context) : shape.context;
    shape.cache_bytes += per_token / m.n_layers * shape.context;
    shape.cache_bytes_windowed += per_token / m.n_layers * kept;
  }
}

/// A score and a weighted value cost one multiplication and one addition per number of key and value.
void add_attention(ModelShape& shape, const KnownModel& m) {
  const auto per_key = [&](int64_t layers, int64_t widths) {
    return 2.0 * static_cast<double>(layers * m.n_heads * widths);
  };
  shape.attention_flops = per_key(m.n_layers, m.key_width() + m.value_width());
  if (m.latent != nullptr)
    shape.attention_flops_latent =
        per_key(m.n_layers, 2 * m.latent->kv_lora_rank + m.latent->qk_rope_head_dim);
  shape.flops_at_context = shape.product_flops;
  for (int64_t i = 0; i < m.n_layers; i++) {
    const int64_t keys = m.windowed(i) ? std::min(m.sliding_window, shape.context) : shape.context;
    shape.flops_at_context += per_key(1, m.key_width() + m.value_width()) * static_cast<double>(keys);
  }
}

}  // namespace

ModelShape shape_of(const KnownModel& model, int64_t context) {
  constexpr int64_t kUsualContext = 4096;
  if (context < 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("context is {}, it must be 0 or more", context));
  ModelShape shape;
  shape.context = context > 0 ? context : std::min(kUsualContext, model.context);
  const std::vector<ModelTensor> tensors = tensor_list(model);
  add_sizes(shape, model);
  add_parameters(shape, model, tensors);
  add_bytes(shape, model, tensors);
  add_cache(shape, model);
  add_attention(shape, model);
  return shape;
}

}  // namespace liuli
