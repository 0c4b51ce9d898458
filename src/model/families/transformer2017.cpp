// The encoder-decoder of "Attention Is All You Need" (2017): LayerNorm after each sum, sine and cosine positions, one
// matrix for both embeddings and the output. There is no common file format: these names are Liuli's own, in a Hugging
// Face layout.
#include <cmath>

#include "model/families/family.h"

namespace liuli {
namespace {

constexpr int64_t kMaxLayers = 4096, kMaxHeads = 65536, kMaxWidth = int64_t{1} << 24,
                  kMaxContext = int64_t{1} << 30;

// Variants of the architecture that a config.json may name and Liuli does not compute.
void refuse_variants(ConfigReader& reader) {
  const Key positions{nullptr, "positions"}, tie{nullptr, "tie_all"}, norm{nullptr, "norm_position"};
  if (const std::string kind = reader.text_or(positions, "interleaved"); kind != "interleaved")
    reader.refuse(positions, "is \"" + kind + "\"; Liuli knows \"interleaved\"");
  if (!reader.flag_or(tie, true))
    reader.refuse(tie, "is false; Liuli knows one matrix for source, target and output");
  if (const std::string where = reader.text_or(norm, "post"); where != "post")
    reader.refuse(norm, "is \"" + where + "\"; the 2017 Transformer has \"post\"");
}

ModelConfig read_config(ConfigReader& reader) {
  refuse_variants(reader);
  ModelConfig c;
  c.family = "transformer2017";
  c.d_model = reader.count({nullptr, "d_model"}, kMaxWidth);
  c.d_ff = reader.count({nullptr, "d_ff"}, kMaxWidth);
  const Key heads{nullptr, "n_heads"};
  c.n_heads = c.n_kv_heads = reader.count(heads, kMaxHeads);
  if (c.d_model % (2 * c.n_heads) != 0)
    reader.corrupt(heads, "is " + std::to_string(c.n_heads) + ", which does not cut d_model " +
                              std::to_string(c.d_model) + " into even heads");
  c.head_dim = c.d_model / c.n_heads;
  c.vocab_size = reader.count({nullptr, "vocab_size"}, int64_t{1} << 28);
  c.n_layers = reader.count({nullptr, "n_dec"}, kMaxLayers);
  const auto n_encoder_layers = reader.count({nullptr, "n_enc"}, kMaxLayers);
  // Sines go on for ever; a cache does not.
  c.max_seq_len = reader.count_or({nullptr, "max_seq_len|max_position_embeddings"}, 4096, kMaxContext);
  c.norm_eps = reader.number({nullptr, "layer_norm_eps"});
  c.activation = reader.activation_or(Activation::relu);
  c.gated_ffn = false;
  c.qkv_bias = reader.flag_or({nullptr, "attention_bias"}, false);
  c.tied_embeddings = true;
  c.positions = PositionTable::sinusoidal;
  if (reader.flag_or({nullptr, "scale_embedding"}, true))
    c.embedding_scale = std::sqrt(static_cast<double>(c.d_model));
  c.attention_scale = 1 / std::sqrt(static_cast<double>(c.head_dim));
  c.ropes = {RopeConfig{}};  // dim 0: nothing turns
  c.final_norm = NormKind::none;
  const Key start{nullptr, "decoder_start_token_id|bos_token_id"};
  if (reader.has(start)) c.decoder_start_token = reader.count_or_zero(start, 0, c.vocab_size - 1);
  LayerPlan layer;
  layer.attn_norm.after_add = layer.ffn_norm.after_add = NormKind::layer;
  c.encoder_layers.assign(static_cast<size_t>(n_encoder_layers), layer);
  layer.cross_attention = true;
  layer.cross_norm.after_add = NormKind::layer;
  c.layers.assign(static_cast<size_t>(c.n_layers), layer);
  return c;
}

// The tensors of one layer of one tower.
class LayerList {
 public:
  LayerList(const ModelConfig& config, int layer, bool encoder, std::vector<TensorSpec>& tensors)
      : config_(config), layer_(layer), encoder_(encoder), tensors_(tensors) {}

  void add(Role role, std::vector<int64_t> shape) {
    TensorSpec spec{role, layer_, std::move(shape)};
    spec.encoder = encoder_;
    tensors_.push_back(std::move(spec));
  }
  void add_projection(Role weight, Role bias) {
    add(weight, {config_.d_model, config_.d_model});
    if (config_.qkv_bias) add(bias, {config_.d_model});
  }
  void add_norm(Role weight, Role bias) {
    add(weight, {config_.d_model});
    add(bias, {config_.d_model});
  }
  void add_all(const LayerPlan& plan) {
    add_projection(Role::attn_q, Role::attn_q_bias);
    add_projection(Role::attn_k, Role::attn_k_bias);
    add_projection(Role::attn_v, Role::attn_v_bias);
    add_projection(Role::attn_o, Role::attn_o_bias);
    add_norm(Role::attn_after_norm, Role::attn_after_norm_bias);
    if (plan.cross_attention) {
      add_projection(Role::cross_q, Role::cross_q_bias);
      add_projection(Role::cross_k, Role::cross_k_bias);
      add_projection(Role::cross_v, Role::cross_v_bias);
      add_projection(Role::cross_o, Role::cross_o_bias);
      add_norm(Role::cross_after_norm, Role::cross_after_norm_bias);
    }
    add(Role::ffn_up, {config_.d_ff, config_.d_model});
    add(Role::ffn_up_bias, {config_.d_ff});
    add(Role::ffn_down, {config_.d_model, config_.d_ff});
    add(Role::ffn_down_bias, {config_.d_model});
    add_norm(Role::ffn_after_norm, Role::ffn_after_norm_bias);
  }

 private:
  const ModelConfig& config_;
  int layer_;
  bool encoder_;
  std::vector<TensorSpec>& tensors_;
};

std::vector<TensorSpec> list_tensors(const ModelConfig& c, Naming) {
  std::vector<TensorSpec> tensors = {{Role::token_embedding, -1, {c.vocab_size, c.d_model}}};
  auto add_tower = [&](const std::vector<LayerPlan>& layers, bool encoder) {
    for (size_t i = 0; i < layers.size(); i++)
      LayerList(c, static_cast<int>(i), encoder, tensors).add_all(layers[i]);
  };
  add_tower(c.encoder_layers, true);
  add_tower(c.layers, false);
  return tensors;
}

constexpr RoleNames kNames[] = {
    {Role::token_embedding, nullptr, "embed.weight"},
    {Role::attn_q, nullptr, "{S}.{L}.self.q.weight"},
    {Role::attn_k, nullptr, "{S}.{L}.self.k.weight"},
    {Role::attn_v, nullptr, "{S}.{L}.self.v.weight"},
    {Role::attn_o, nullptr, "{S}.{L}.self.o.weight"},
    {Role::attn_q_bias, nullptr, "{S}.{L}.self.q.bias"},
    {Role::attn_k_bias, nullptr, "{S}.{L}.self.k.bias"},
    {Role::attn_v_bias, nullptr, "{S}.{L}.self.v.bias"},
    {Role::attn_o_bias, nullptr, "{S}.{L}.self.o.bias"},
    {Role::attn_after_norm, nullptr, "{S}.{L}.self.ln.weight"},
    {Role::attn_after_norm_bias, nullptr, "{S}.{L}.self.ln.bias"},
    {Role::cross_q, nullptr, "{S}.{L}.cross.q.weight"},
    {Role::cross_k, nullptr, "{S}.{L}.cross.k.weight"},
    {Role::cross_v, nullptr, "{S}.{L}.cross.v.weight"},
    {Role::cross_o, nullptr, "{S}.{L}.cross.o.weight"},
    {Role::cross_q_bias, nullptr, "{S}.{L}.cross.q.bias"},
    {Role::cross_k_bias, nullptr, "{S}.{L}.cross.k.bias"},
    {Role::cross_v_bias, nullptr, "{S}.{L}.cross.v.bias"},
    {Role::cross_o_bias, nullptr, "{S}.{L}.cross.o.bias"},
    {Role::cross_after_norm, nullptr, "{S}.{L}.cross.ln.weight"},
    {Role::cross_after_norm_bias, nullptr, "{S}.{L}.cross.ln.bias"},
    {Role::ffn_up, nullptr, "{S}.{L}.ffn1.weight"},
    {Role::ffn_up_bias, nullptr, "{S}.{L}.ffn1.bias"},
    {Role::ffn_down, nullptr, "{S}.{L}.ffn2.weight"},
    {Role::ffn_down_bias, nullptr, "{S}.{L}.ffn2.bias"},
    {Role::ffn_after_norm, nullptr, "{S}.{L}.ffn.ln.weight"},
    {Role::ffn_after_norm_bias, nullptr, "{S}.{L}.ffn.ln.bias"},
};

}  // namespace

const Family kTransformer2017 = {"", "transformer2017", read_config, list_tensors, kNames};

}  // namespace liuli
