// config.json of a model that is described by its sizes: what Hugging Face's classes of each family want stated.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "liuli/error.h"
#include "liuli/train.h"

namespace liuli {
namespace {

using Json = nlohmann::ordered_json;

// A family's class, and keys that do not follow from the sizes.
struct KnownFamily {
  const char* name;
  const char* model_type;
  const char* architecture;
  const char* more;  // JSON
};

constexpr KnownFamily kFamilies[] = {
    {"llama", "llama", "LlamaForCausalLM",
     R"({"hidden_act": "silu", "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "attention_bias": false})"},
    {"qwen2", "qwen2", "Qwen2ForCausalLM",
     R"({"hidden_act": "silu", "rms_norm_eps": 1e-06, "rope_theta": 10000.0})"},
    {"qwen3", "qwen3", "Qwen3ForCausalLM",
     R"({"hidden_act": "silu", "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "attention_bias": false})"},
    {"gemma3", "gemma3_text", "Gemma3ForCausalLM",
     R"({"hidden_activation": "gelu_pytorch_tanh", "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
         "rope_local_base_freq": 10000.0})"},
    {"olmo2", "olmo2", "Olmo2ForCausalLM",
     R"({"hidden_act": "silu", "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "attention_bias": false})"},
};

int64_t or_default(int64_t stated, int64_t otherwise) { return stated > 0 ? stated : otherwise; }

Json gpt2_config(const NewModel& m) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"activation_function", "gelu_new"},
          {"n_embd", m.d_model},
          {"n_layer", m.n_layers},
          {"n_head", m.n_heads},
          {"n_inner", or_default(m.d_ff, 4 * m.d_model)},
          {"n_positions", m.max_seq_len},
          {"layer_norm_epsilon", 1e-5}};
}

// A gated feed-forward has three matrices: two thirds of 4 d_model, in steps of 64, make as many numbers as two.
int64_t usual_d_ff(int64_t d_model) { return (8 * d_model / 3 + 63) / 64 * 64; }

Json decoder_config(const KnownFamily& family, const NewModel& m) {
  const int64_t head_dim = or_default(m.head_dim, m.d_model / m.n_heads);
  Json json = {{"architectures", {family.architecture}},
               {"model_type", family.model_type},
               {"hidden_size", m.d_model},
               {"intermediate_size", or_default(m.d_ff, usual_d_ff(m.d_model))},
               {"num_hidden_layers", m.n_layers},
               {"num_attention_heads", m.n_heads},
               {"num_key_value_heads", or_default(m.n_kv_heads, m.n_heads)},
               {"max_position_embeddings", m.max_seq_len}};
  if (m.head_dim > 0 || std::string(family.name) == "qwen3" || std::string(family.name) == "gemma3")
    json["head_dim"] = head_dim;  // where the class would take another
  json.update(Json::parse(family.more));
  if (std::string(family.name) == "gemma3") {
    json["query_pre_attn_scalar"] = head_dim;
    json["sliding_window"] = m.max_seq_len;
  }
  return json;
}

}  // namespace

std::string make_model_config(const NewModel& m) {
  if (m.d_model < 2 || m.n_layers < 1 || m.n_heads < 1 || m.max_seq_len < 1 || m.d_model % m.n_heads != 0)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("a model of d_model {}, {} layers, {} heads and context {}: all must be positive and "
                    "the heads cut d_model evenly",
                    m.d_model, m.n_layers, m.n_heads, m.max_seq_len));
  if (m.family == "gpt2") return gpt2_config(m).dump();
  std::string known = "gpt2";
  for (const KnownFamily& family : kFamilies) {
    if (m.family == family.name) return decoder_config(family, m).dump();
    known += std::string(", ") + family.name;
  }
  throw Error(ErrorCode::not_found,
              fmt::format("there is no family \"{}\" to begin from sizes; there are {}, and any "
                          "other as a config.json object in run.json",
                          m.family, known));
}

}  // namespace liuli
