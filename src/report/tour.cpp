#include "report/tour.h"

#include <bit>
#include <cmath>

#include "core/check.h"
#include "liuli/tour.h"
#include "report/tour_page_text.h"

namespace liuli {

std::string to_base64(std::span<const float> values) {
  static_assert(std::endian::native == std::endian::little, "the page reads little-endian numbers");
  constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  const size_t n = values.size_bytes();
  std::string text;
  text.reserve((n + 2) / 3 * 4);
  for (size_t i = 0; i < n; i += 3) {
    uint32_t triple = 0;
    for (size_t j = 0; j < 3; j++) triple = triple << 8 | (i + j < n ? bytes[i + j] : 0U);
    for (size_t j = 0; j < 4; j++) text += j <= n - i ? kAlphabet[triple >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

void TensorPack::add(const TracedTensor& tensor) {
  if (json_.contains(tensor.name)) return;
  std::string text = to_base64(tensor.values);
  const auto [known, is_new] = names_.emplace(text, tensor.name);
  auto& entry = json_[tensor.name] = {{"shape", tensor.shape}};
  if (is_new)
    entry["f32"] = std::move(text);
  else
    entry["as"] = known->second;
}

std::vector<double> row_norms(const TracedTensor& tensor) {
  std::vector<double> norms(static_cast<size_t>(tensor.shape.at(0)));
  const size_t width = tensor.values.size() / norms.size();
  for (size_t i = 0; i < tensor.values.size(); i++) {
    const auto x = static_cast<double>(tensor.values[i]);
    norms[i / width] += x * x;
  }
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

namespace {

using Json = nlohmann::ordered_json;

const char* name_of(NormKind kind) {
  switch (kind) {
    case NormKind::none:
      return "none";
    case NormKind::layer:
      return "layer";
    case NormKind::rms:
      return "rms";
    case NormKind::batch:
      return "batch";
  }
  return "none";
}

const char* name_of(Activation activation) {
  constexpr const char* kNames[] = {"silu", "gelu_tanh", "gelu_erf", "relu"};
  return kNames[static_cast<size_t>(activation)];
}

Json slots_json(const NormSlots& slots) {
  return {{"before", name_of(slots.before)},
          {"on_output", name_of(slots.on_output)},
          {"after_add", name_of(slots.after_add)}};
}

Json layers_json(const ModelConfig& config) {
  Json layers = Json::array();
  for (const LayerPlan& layer : config.layers)
    layers.push_back({{"attn_norm", slots_json(layer.attn_norm)},
                      {"ffn_norm", slots_json(layer.ffn_norm)},
                      {"routed", layer.routed},
                      {"sliding_window", layer.sliding_window},
                      {"rope", layer.rope}});
  return layers;
}

Json experts_json(const ExpertConfig& e) {
  if (e.n_experts == 0) return nullptr;
  return {{"n_experts", e.n_experts},
          {"n_experts_active", e.n_experts_active},
          {"d_ff", e.d_ff},
          {"shared_d_ff", e.shared_d_ff},
          {"score", e.score == ExpertConfig::Score::sigmoid ? "sigmoid" : "softmax"},
          {"choice_bias", e.choice_bias},
          {"shared_gate", e.shared_gate},
          {"n_groups", e.n_groups},
          {"n_groups_kept", e.n_groups_kept},
          {"group_best", e.group_best},
          {"renormalise", e.renormalise},
          {"weight_scale", e.weight_scale}};
}

Json latent_json(const LatentConfig& l) {
  if (l.kv_lora_rank == 0) return nullptr;
  return {{"q_lora_rank", l.q_lora_rank},
          {"kv_lora_rank", l.kv_lora_rank},
          {"qk_nope_head_dim", l.qk_nope_head_dim},
          {"qk_rope_head_dim", l.qk_rope_head_dim},
          {"v_head_dim", l.v_head_dim}};
}

}  // namespace

nlohmann::ordered_json tour_config(const ModelConfig& c) {
  constexpr const char* kQkNorms[] = {"none", "per_head", "whole"};
  constexpr const char* kPositions[] = {"none", "learned", "sinusoidal"};
  return {{"family", c.family},
          {"name", c.name},
          {"vocab_size", c.vocab_size},
          {"d_model", c.d_model},
          {"n_layers", c.n_layers},
          {"d_ff", c.d_ff},
          {"n_heads", c.n_heads},
          {"n_kv_heads", c.n_kv_heads},
          {"head_dim", c.head_dim},
          {"max_seq_len", c.max_seq_len},
          {"norm_eps", c.norm_eps},
          {"activation", name_of(c.activation)},
          {"gated_ffn", c.gated_ffn},
          {"qk_norm", kQkNorms[static_cast<size_t>(c.qk_norm)]},
          {"tied_embeddings", c.tied_embeddings},
          {"positions", kPositions[static_cast<size_t>(c.positions)]},
          {"embedding_norm", name_of(c.embedding_norm)},
          {"embedding_scale", c.embedding_scale},
          {"attention_scale", c.attention_scale},
          {"attention_soft_cap", c.attention_soft_cap},
          {"final_soft_cap", c.final_soft_cap},
          {"causal", c.causal},
          {"final_norm", name_of(c.final_norm)},
          {"has_output", c.has_output},
          {"layers", layers_json(c)},
          {"experts", experts_json(c.experts)},
          {"latent", latent_json(c.latent)}};
}

std::string tour_page(const nlohmann::ordered_json& data) {
  // "<" would end the script element that holds the data wherever a token's text is "</script>".
  const std::string text = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr std::string_view kPlace = "\"LIULI_TOUR_DATA\"";
  std::string page(kTourPageText);
  const size_t at = page.find(kPlace);
  LIULI_CHECK(at != std::string::npos);
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    if (c == '<')
      escaped += "\\u003c";
    else
      escaped += c;
  }
  page.replace(at, kPlace.size(), escaped);
  return page;
}

}  // namespace liuli
