// The shape of a built-in model.
#include <algorithm>
#include <cctype>

#include "convert/type_mix.h"
#include "report/shape.h"

namespace liuli {
namespace {

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
  shape.tied_embeddings = m.tied_embeddings && m.family->decoder;
  shape.n_experts = m.experts.n_experts;
  shape.n_experts_active = m.experts.n_experts_active;
  shape.expert_d_ff = m.experts.d_ff;
  shape.n_dense_layers = m.experts.n_dense_layers;
}

/// DeepSeek's way of storing 8-bit floats: matrices in E4M3 with one f32 scale per 128 × 128, the rest in BF16.
int64_t fp8_bytes(const ModelTensor& tensor, const KnownModel& m) {
  const bool kept = !tensor.multiplies(m) || tensor.part == ModelPart::router ||
                    tensor.part == ModelPart::embedding || tensor.part == ModelPart::output;
  if (kept) return 2 * tensor.elements();
  const int64_t d_in = tensor.shape.back(), rows = tensor.elements() / d_in;
  return tensor.elements() + (rows + 127) / 128 * ((d_in + 127) / 128) * 4;
}

/// Not an estimate: each tensor has the type that a quantiser with this mix would choose.
int64_t mixed_bytes(const ModelTensor& tensor, const TypeMix& mix, const MixModel& model) {
  const DType type = mix.type_of(tensor.name, tensor.shape, model);
  return tensor.elements() / tensor.shape.back() * row_bytes(type, tensor.shape.back());
}

std::string upper_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

void add_bytes(ModelShape& shape, const KnownModel& m, const std::vector<ModelTensor>& tensors) {
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
  const MixModel mix_model = mix_model_of(m);
  for (const char* name : {"q8_0", "q6_k", "q5_k_m", "q4_k_m", "q4_0", "q3_k_m", "q2_k"}) {
    const TypeMix& mix = *find_type_mix(name);
    add(upper_case(name), [&](const ModelTensor& t) { return mixed_bytes(t, mix, mix_model); });
  }
}

AttentionSizes attention_sizes(const KnownModel& m) {
  AttentionSizes a{m.family->decoder, m.n_heads, m.n_kv_heads, m.key_width(), m.value_width(), 0, 0, {}};
  if (m.latent != nullptr) {
    a.latent_width = m.latent->kv_lora_rank;
    a.latent_key_width = m.latent->kv_lora_rank + m.latent->qk_rope_head_dim;
  }
  for (int64_t i = 0; i < m.n_layers; i++) a.windows.push_back(m.windowed(i) ? m.sliding_window : 0);
  return a;
}

}  // namespace

ModelShape shape_of(const KnownModel& model, int64_t context, CacheType cache_type) {
  ModelShape shape;
  shape.cache_type = cache_type;
  shape.context = counted_context(context, model.context);
  const std::vector<ModelTensor> tensors = tensor_list(model);
  std::vector<CountedTensor> counted;
  for (const ModelTensor& t : tensors)
    if (counts(t)) counted.push_back({t.part, t.elements(), t.multiplies(model), t.active});
  add_sizes(shape, model);
  add_parameters(shape, counted);
  add_bytes(shape, model, tensors);
  add_attention(shape, attention_sizes(model));
  return shape;
}

std::vector<std::string> known_model_names() {
  std::vector<std::string> names;
  for (const KnownModel& model : known_models()) names.emplace_back(model.name);
  return names;
}

ModelShape shape_of_known_model(std::string_view name, int64_t context, CacheType cache_type) {
  return shape_of(known_model(name), context, cache_type);
}

}  // namespace liuli
