// BERT: reads both ways, LayerNorm after each sum, learned positions and segments, GELU without a gate; gives hidden
// states. Also the sentence encoders built on it (MiniLM, BGE, E5).
#include "model/families/family.h"

namespace liuli {
namespace {

Pooling read_pooling(ConfigReader& reader) {
  const Key key{"pooling_type", nullptr};
  switch (reader.count_or_zero(key, 0, 4)) {
    case 1:
      return Pooling::mean;
    case 2:
      return Pooling::cls;
    case 3:
      return Pooling::last;
    case 4:
      reader.refuse(key, "is 4, a ranking head, which is not supported");
  }
  return Pooling::unstated;
}

ModelConfig read_config(ConfigReader& reader) {
  ModelConfig c =
      reader.common("bert", {.norm = NormKind::layer, .embedding = "embeddings.word_embeddings.weight"});
  c.activation = reader.activation_or(Activation::gelu_erf);
  c.gated_ffn = false;
  c.qkv_bias = true;
  c.causal = reader.flag_or({"attention.causal", nullptr}, false);
  const Key positions{nullptr, "position_embedding_type"};
  if (const std::string kind = reader.text_or(positions, "absolute"); kind != "absolute")
    reader.refuse(positions, "is \"" + kind + "\"; Liuli knows \"absolute\"");
  c.positions = PositionTable::learned;
  c.embedding_norm = NormKind::layer;
  const TensorInfo* types =
      reader.find_tensor("token_types.weight", "embeddings.token_type_embeddings.weight");
  c.n_token_types = types == nullptr ? 0 : types->shape.front();
  reader.count_or({nullptr, "type_vocab_size"}, 1, 1 << 20);  // the table's rows are what counts
  c.ropes = {RopeConfig{}};                                   // dim 0: nothing turns
  c.final_norm = NormKind::none;
  c.has_output = false;
  c.has_pooler = !reader.is_gguf() && reader.find_tensor(nullptr, "pooler.dense.weight") != nullptr;
  c.pooling = read_pooling(reader);
  // Of heads that are not run.
  reader.has({nullptr,
              "directionality|pooler_fc_size|pooler_num_attention_heads|pooler_num_fc_layers|"
              "pooler_size_per_head|pooler_type"});
  LayerPlan layer;
  layer.attn_norm.after_add = layer.ffn_norm.after_add = NormKind::layer;
  c.layers.assign(static_cast<size_t>(c.n_layers), layer);
  return c;
}

std::vector<TensorSpec> list_tensors(const ModelConfig& c, Naming) {
  const int64_t d = c.d_model, q = c.n_heads * c.head_dim, kv = c.n_kv_heads * c.head_dim;
  std::vector<TensorSpec> t = {{Role::token_embedding, -1, {c.vocab_size, d}},
                               {Role::position_embedding, -1, {c.max_seq_len, d}},
                               {Role::embedding_norm, -1, {d}},
                               {Role::embedding_norm_bias, -1, {d}}};
  if (c.n_token_types > 0) t.push_back({Role::token_types, -1, {c.n_token_types, d}});
  if (c.has_pooler) t.insert(t.end(), {{Role::pooler, -1, {d, d}}, {Role::pooler_bias, -1, {d}}});
  for (int layer = 0; layer < c.n_layers; layer++) {
    auto add = [&](Role weight, Role bias, std::vector<int64_t> shape) {
      t.push_back({bias, layer, {shape[0]}});
      t.push_back({weight, layer, std::move(shape)});
    };
    add(Role::attn_q, Role::attn_q_bias, {q, d});
    add(Role::attn_k, Role::attn_k_bias, {kv, d});
    add(Role::attn_v, Role::attn_v_bias, {kv, d});
    add(Role::attn_o, Role::attn_o_bias, {d, q});
    add(Role::attn_after_norm, Role::attn_after_norm_bias, {d});
    add(Role::ffn_up, Role::ffn_up_bias, {c.d_ff, d});
    add(Role::ffn_down, Role::ffn_down_bias, {d, c.d_ff});
    add(Role::ffn_after_norm, Role::ffn_after_norm_bias, {d});
  }
  return t;
}

constexpr RoleNames kNames[] = {
    {Role::token_embedding, "token_embd.weight", "embeddings.word_embeddings.weight"},
    {Role::position_embedding, "position_embd.weight", "embeddings.position_embeddings.weight"},
    {Role::token_types, "token_types.weight", "embeddings.token_type_embeddings.weight"},
    {Role::embedding_norm, "token_embd_norm.weight", "embeddings.LayerNorm.weight"},
    {Role::embedding_norm_bias, "token_embd_norm.bias", "embeddings.LayerNorm.bias"},
    {Role::pooler, nullptr, "pooler.dense.weight"},
    {Role::pooler_bias, nullptr, "pooler.dense.bias"},
    {Role::attn_q, "blk.{L}.attn_q.weight", "encoder.layer.{L}.attention.self.query.weight"},
    {Role::attn_q_bias, "blk.{L}.attn_q.bias", "encoder.layer.{L}.attention.self.query.bias"},
    {Role::attn_k, "blk.{L}.attn_k.weight", "encoder.layer.{L}.attention.self.key.weight"},
    {Role::attn_k_bias, "blk.{L}.attn_k.bias", "encoder.layer.{L}.attention.self.key.bias"},
    {Role::attn_v, "blk.{L}.attn_v.weight", "encoder.layer.{L}.attention.self.value.weight"},
    {Role::attn_v_bias, "blk.{L}.attn_v.bias", "encoder.layer.{L}.attention.self.value.bias"},
    {Role::attn_o, "blk.{L}.attn_output.weight", "encoder.layer.{L}.attention.output.dense.weight"},
    {Role::attn_o_bias, "blk.{L}.attn_output.bias", "encoder.layer.{L}.attention.output.dense.bias"},
    {Role::attn_after_norm, "blk.{L}.attn_output_norm.weight",
     "encoder.layer.{L}.attention.output.LayerNorm.weight"},
    {Role::attn_after_norm_bias, "blk.{L}.attn_output_norm.bias",
     "encoder.layer.{L}.attention.output.LayerNorm.bias"},
    {Role::ffn_up, "blk.{L}.ffn_up.weight", "encoder.layer.{L}.intermediate.dense.weight"},
    {Role::ffn_up_bias, "blk.{L}.ffn_up.bias", "encoder.layer.{L}.intermediate.dense.bias"},
    {Role::ffn_down, "blk.{L}.ffn_down.weight", "encoder.layer.{L}.output.dense.weight"},
    {Role::ffn_down_bias, "blk.{L}.ffn_down.bias", "encoder.layer.{L}.output.dense.bias"},
    {Role::ffn_after_norm, "blk.{L}.layer_output_norm.weight", "encoder.layer.{L}.output.LayerNorm.weight"},
    {Role::ffn_after_norm_bias, "blk.{L}.layer_output_norm.bias", "encoder.layer.{L}.output.LayerNorm.bias"},
};

// A buffer of old checkpoints, and heads for pre-training and classification.
bool is_beside_the_model(const ModelConfig&, const std::string& name) {
  for (const char* start : {"cls.", "pooler.", "bert.pooler.", "classifier."})
    if (name.rfind(start, 0) == 0) return true;
  return name.ends_with("embeddings.position_ids");
}

}  // namespace

const Family kBert = {"bert", "bert", read_config, list_tensors, kNames, is_beside_the_model};

}  // namespace liuli
