// The shape of a file: its family's list of tensors, with the sizes that are really stored.
#include <algorithm>
#include <filesystem>

#include "formats/weight_source.h"
#include "liuli/error.h"
#include "model/families/family.h"
#include "model/load.h"
#include "report/shape.h"

namespace liuli {
namespace {

struct PartOfRole {
  Role role;
  ModelPart part;
};
using P = ModelPart;
constexpr PartOfRole kParts[] = {
    {Role::token_embedding, P::embedding},
    {Role::position_embedding, P::positions},
    {Role::token_types, P::positions},
    {Role::output_matrix, P::output},
    {Role::attn_qkv, P::attn_qkv},
    {Role::attn_qkv_bias, P::attn_qkv},
    {Role::attn_q, P::attn_q},
    {Role::attn_q_bias, P::attn_q},
    {Role::attn_k, P::attn_k},
    {Role::attn_k_bias, P::attn_k},
    {Role::attn_v, P::attn_v},
    {Role::attn_v_bias, P::attn_v},
    {Role::attn_o, P::attn_output},
    {Role::attn_o_bias, P::attn_output},
    {Role::attn_q_a, P::q_down},
    {Role::attn_q_b, P::q_up},
    {Role::attn_kv_a, P::kv_down},
    {Role::attn_kv_b, P::kv_up},
    {Role::attn_k_b, P::k_up},
    {Role::attn_v_b, P::v_up},
    {Role::cross_q, P::cross_attention},
    {Role::cross_q_bias, P::cross_attention},
    {Role::cross_k, P::cross_attention},
    {Role::cross_k_bias, P::cross_attention},
    {Role::cross_v, P::cross_attention},
    {Role::cross_v_bias, P::cross_attention},
    {Role::cross_o, P::cross_attention},
    {Role::cross_o_bias, P::cross_attention},
    {Role::ffn_gate_up, P::ffn},
    {Role::ffn_gate, P::ffn},
    {Role::ffn_up, P::ffn},
    {Role::ffn_down, P::ffn},
    {Role::ffn_gate_bias, P::ffn},
    {Role::ffn_up_bias, P::ffn},
    {Role::ffn_down_bias, P::ffn},
    {Role::router, P::router},
    {Role::router_choice_bias, P::router},
    {Role::expert_gate, P::experts},
    {Role::expert_up, P::experts},
    {Role::expert_down, P::experts},
    {Role::shared_gate, P::shared_experts},
    {Role::shared_up, P::shared_experts},
    {Role::shared_down, P::shared_experts},
    {Role::shared_expert_gate, P::shared_experts},
};

/// Everything else is a norm.
ModelPart part_of(Role role) {
  const auto* row =
      std::find_if(std::begin(kParts), std::end(kParts), [&](const auto& r) { return r.role == role; });
  return row == std::end(kParts) ? P::norms : row->part;
}

bool multiplies(ModelPart part, const std::vector<int64_t>& shape, const ModelConfig& c) {
  if (shape.size() < 2 || part == P::positions) return false;
  return part != P::embedding || (c.tied_embeddings && c.has_output);
}

CountedTensor counted(const TensorSpec& spec, const TensorInfo& info, const ModelConfig& c) {
  CountedTensor t{part_of(spec.role), info.elements(), false, 1};
  t.multiplies = multiplies(t.part, info.shape, c);
  if (t.part == P::experts)
    t.active = static_cast<double>(c.experts.n_experts_active) / static_cast<double>(c.experts.n_experts);
  return t;
}

void add_sizes(ModelShape& shape, const ModelConfig& c) {
  shape.architecture = c.family;
  shape.vocab_size = c.vocab_size;
  shape.d_model = c.d_model;
  shape.d_ff = c.d_ff;
  shape.n_layers = c.n_layers;
  shape.n_encoder_layers = static_cast<int64_t>(c.encoder_layers.size());
  shape.n_heads = c.n_heads;
  shape.n_kv_heads = c.n_kv_heads;
  shape.head_dim = c.head_dim;
  shape.trained_context = c.max_seq_len;
  shape.tied_embeddings = c.tied_embeddings;
  shape.n_experts = c.experts.n_experts;
  shape.n_experts_active = c.experts.n_experts_active;
  shape.expert_d_ff = c.experts.d_ff;
  if (c.experts.n_experts > 0)
    shape.n_dense_layers =
        std::count_if(c.layers.begin(), c.layers.end(), [](const LayerPlan& layer) { return !layer.routed; });
}

AttentionSizes attention_sizes(const ModelConfig& c) {
  AttentionSizes a{c.has_output, c.n_heads, c.n_kv_heads, c.head_dim, c.head_dim, 0, 0, {}};
  if (c.is_latent()) {
    const LatentConfig& l = c.latent;
    a.n_kv_heads = c.n_heads;  // expanded, every head has its own
    a.key_width = l.qk_nope_head_dim + l.qk_rope_head_dim;
    a.value_width = l.v_head_dim;
    a.latent_width = l.kv_lora_rank;
    a.latent_key_width = l.kv_lora_rank + l.qk_rope_head_dim;
  }
  for (const LayerPlan& layer : c.layers) a.windows.push_back(layer.sliding_window);
  return a;
}

}  // namespace

ModelShape shape_of_file(const std::string& path, int64_t context, CacheType cache_type) {
  const auto source = open_weights(path);
  const ModelConfig config = read_model_config(*source);
  const Family& family = family_of(config);
  ModelShape shape;
  shape.cache_type = cache_type;
  shape.title = config.name.empty() ? path : config.name;
  shape.context = counted_context(context, config.max_seq_len);
  ShapeBytes stored{"as stored", 0, 0};
  std::vector<CountedTensor> tensors;
  for (const TensorSpec& spec : family.list_tensors(config, source->naming())) {
    const TensorInfo* info = source->find(tensor_name(source->naming(), family.names, spec));
    if (info == nullptr || spec.role == Role::rope_divisors) continue;
    tensors.push_back(counted(spec, *info, config));
    stored.bytes += info->bytes;
  }
  add_sizes(shape, config);
  add_parameters(shape, tensors);
  stored.bits =
      8 * static_cast<double>(stored.bytes) / static_cast<double>(std::max<int64_t>(1, shape.parameters));
  shape.bytes.push_back(stored);
  add_attention(shape, attention_sizes(config));
  return shape;
}

}  // namespace liuli
