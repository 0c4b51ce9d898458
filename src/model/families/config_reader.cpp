#include "model/families/config_reader.h"

#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "kernels/kernels.h"
#include "liuli/error.h"

namespace liuli {
namespace {

constexpr int64_t kMaxLayers = 4096, kMaxHeads = 65536, kMaxWidth = int64_t{1} << 24,
                  kMaxVocab = int64_t{1} << 28;
constexpr int64_t kMaxContext = int64_t{1} << 30;

bool starts_with(const std::string& text, std::string_view prefix) { return text.rfind(prefix, 0) == 0; }

// Keys that describe a file, its training or its tokenizer without changing what it computes.
bool harmless_in_gguf(const std::string& key) {
  for (const char* part : {".tensor_data_layout", ".training.", ".quantize."})
    if (key.find(part) != std::string::npos) return true;
  return false;
}

bool harmless_in_config_json(const std::string& key) {
  for (const char* exact : {"architectures",
                            "model_type",
                            "torch_dtype",
                            "dtype",
                            "transformers_version",
                            "use_cache",
                            "initializer_range",
                            "initializer_factor",
                            "pretraining_tp",
                            "_name_or_path",
                            "return_dict",
                            "chunk_size_feed_forward",
                            "problem_type",
                            "tie_word_embeddings",
                            "attention_bias",
                            "mlp_bias",
                            "n_ctx",
                            "max_window_layers",
                            "cache_implementation",
                            "_attn_implementation",
                            "classifier_dropout",
                            "finetuning_task",
                            "router_aux_loss_coef",
                            "aux_loss_alpha",
                            "seq_aux",
                            "num_nextn_predict_layers",
                            "ep_size"})
    if (key == exact) return true;
  for (const char* start : {"id2label.", "label2id.", "task_specific_params.", "auto_map.",
                            "quantization_config.", "output_", "summary_", "gradient_checkpointing",
                            "reorder_and_upcast_attn", "scale_attn_by_inverse_layer_idx", "unsloth"})
    if (starts_with(key, start)) return true;
  for (const char* part : {"dropout", "pdrop", "token_id"})
    if (key.find(part) != std::string::npos) return true;
  return false;
}

// g(s, m) of YaRN's temperature.
double yarn_temperature(double factor, double m) { return factor > 1 ? 0.1 * m * std::log(factor) + 1 : 1; }

}  // namespace

ConfigReader::ConfigReader(const WeightSource& source, std::string architecture)
    : source_(source), architecture_(std::move(architecture)) {}

// The full name of the first alternative that the file has, all of them noted as read; "" when there is none.
std::string ConfigReader::present(Key key) {
  std::string found;
  if (is_gguf()) {
    if (key.gguf == nullptr) return "";
    const std::string name = architecture_ + "." + key.gguf;
    read_.insert(name);
    return source_.metadata().has(name) ? name : "";
  }
  if (key.hugging_face == nullptr) return "";
  std::string_view rest = key.hugging_face;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('|'), rest.size());
    const std::string name(rest.substr(0, end));
    read_.insert(name);
    if (found.empty() && source_.metadata().has(name)) found = name;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return found;
}

std::string ConfigReader::shown(Key key) const {
  if (is_gguf()) return fmt::format("{}.{}", architecture_, key.gguf == nullptr ? "?" : key.gguf);
  return key.hugging_face == nullptr ? "?" : key.hugging_face;
}

void ConfigReader::corrupt(Key key, const std::string& what) const {
  throw Error(ErrorCode::corrupt_file, fmt::format("{}: key {} {}", source_.path(), shown(key), what));
}

void ConfigReader::refuse(Key key, const std::string& what) const {
  throw Error(ErrorCode::unsupported, fmt::format("{}: key {} {}", source_.path(), shown(key), what));
}

bool ConfigReader::has(Key key) { return !present(key).empty(); }

int64_t ConfigReader::count_or_zero(Key key, int64_t fallback, int64_t max) {
  const std::string name = present(key);
  if (name.empty()) return fallback;
  const int64_t value = source_.metadata().integer(name).value_or(fallback);
  if (value < 0 || value > max) corrupt(key, fmt::format("is {}, expected 0…{}", value, max));
  return value;
}

int64_t ConfigReader::count_or(Key key, int64_t fallback, int64_t max) {
  if (!has(key)) return fallback;
  const int64_t value = count_or_zero(key, fallback, max);
  if (value == 0) corrupt(key, fmt::format("is 0, expected 1…{}", max));
  return value;
}

int64_t ConfigReader::count(Key key, int64_t max) {
  if (!has(key)) corrupt(key, "is missing");
  return count_or(key, 0, max);
}

double ConfigReader::number_or(Key key, double fallback) {
  const std::string name = present(key);
  if (name.empty()) return fallback;
  const double value = source_.metadata().number(name).value_or(fallback);
  if (!std::isfinite(value) || value < 0)
    corrupt(key, fmt::format("is {}, expected a finite number ≥ 0", value));
  return value;
}

double ConfigReader::number(Key key) {
  if (!has(key)) corrupt(key, "is missing");
  return number_or(key, 0);
}

bool ConfigReader::flag_or(Key key, bool fallback) {
  const std::string name = present(key);
  return name.empty() ? fallback : source_.metadata().boolean(name).value_or(fallback);
}

std::string ConfigReader::text_or(Key key, const std::string& fallback) {
  const std::string name = present(key);
  return name.empty() ? fallback : source_.metadata().text(name).value_or(fallback);
}

std::vector<std::string> ConfigReader::texts_or_none(Key key) {
  const std::string name = present(key);
  return name.empty() ? std::vector<std::string>{}
                      : source_.metadata().texts(name).value_or(std::vector<std::string>{});
}

std::vector<int64_t> ConfigReader::integers_or_none(Key key) {
  const std::string name = present(key);
  return name.empty() ? std::vector<int64_t>{}
                      : source_.metadata().integers(name).value_or(std::vector<int64_t>{});
}

int64_t ConfigReader::uniform_count(Key key, int64_t max, std::optional<int64_t> fallback) {
  const std::string name = present(key);
  if (name.empty() && fallback) return *fallback;
  if (name.empty() || !source_.metadata().is_array(name)) return count(key, max);
  const std::vector<int64_t> values = integers_or_none(key);
  if (values.empty()) corrupt(key, "is an empty array");
  for (int64_t v : values)
    if (v != values.front())
      refuse(key, fmt::format("differs between layers ({} and {})", values.front(), v));
  if (values.front() < 1 || values.front() > max)
    corrupt(key, fmt::format("is {}, expected 1…{}", values.front(), max));
  return values.front();
}

Activation ConfigReader::activation_or(Activation fallback) {
  // A Gemma folder may hold both spellings; the second is the one that counts there.
  const Key key{nullptr, "hidden_activation|hidden_act|activation_function"};
  const std::string name = text_or(key, "");
  if (name.empty()) return fallback;
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "gelu") return Activation::gelu_erf;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return Activation::gelu_tanh;
  if (name == "relu") return Activation::relu;
  refuse(key, fmt::format("is \"{}\", an activation that Liuli does not know", name));
}

const TensorInfo* ConfigReader::find_tensor(const char* gguf, const char* hugging_face) const {
  if (is_gguf()) return source_.find(gguf);
  if (const TensorInfo* tensor = source_.find(hugging_face)) return tensor;
  for (const TensorInfo& tensor : source_.tensors()) {  // wrapped ("transformer.wte.weight") or bare
    const std::string_view a = tensor.name, b = hugging_face;
    const auto [longer, shorter] = a.size() > b.size() ? std::pair(a, b) : std::pair(b, a);
    if (longer.ends_with(shorter) &&
        (longer.size() == shorter.size() || longer[longer.size() - shorter.size() - 1] == '.'))
      return &tensor;
  }
  return nullptr;
}

// The rows of the embedding are the vocabulary. A model yet to be made has no tensors: its configuration alone counts.
void ConfigReader::read_vocabulary(const Common& options, ModelConfig& c) {
  const Key vocab{"vocab_size", "vocab_size"};
  if (source_.tensors().empty()) {
    c.vocab_size = count(vocab, kMaxVocab);
    c.tied_embeddings = flag_or({nullptr, "tie_word_embeddings"}, true);
    return;
  }
  const TensorInfo* embedding = find_tensor("token_embd.weight", options.embedding);
  if (embedding == nullptr || embedding->shape.size() != 2)
    throw Error(ErrorCode::corrupt_file,
                fmt::format("{}: tensor {} is missing or not a matrix", source_.path(),
                            is_gguf() ? "token_embd.weight" : options.embedding));
  c.vocab_size = embedding->shape[0];
  const int64_t stated = count_or(vocab, c.vocab_size, kMaxVocab);
  if (stated != c.vocab_size)
    corrupt(vocab, fmt::format("is {}, {} has {} rows", stated, embedding->name, c.vocab_size));
  c.tied_embeddings = find_tensor("output.weight", options.output) == nullptr;
}

ModelConfig ConfigReader::common(const char* family) { return common(family, Common{}); }

ModelConfig ConfigReader::common(const char* family, const Common& options) {
  ModelConfig c;
  c.family = family;
  c.name = source_.metadata().text(is_gguf() ? "general.name" : "_name_or_path").value_or("");
  c.n_layers = count({"block_count", "num_hidden_layers|n_layer"}, kMaxLayers);
  c.d_model = count({"embedding_length", "hidden_size|n_embd"}, kMaxWidth);
  c.d_ff = uniform_count({"feed_forward_length", "intermediate_size|n_inner"}, kMaxWidth,
                         is_gguf() ? std::nullopt : std::optional(4 * c.d_model));
  c.max_seq_len = count({"context_length", "max_position_embeddings|n_positions|n_ctx"}, kMaxContext);
  c.n_heads = uniform_count({"attention.head_count", "num_attention_heads|n_head"}, kMaxHeads);
  const Key kv_heads{"attention.head_count_kv", "num_key_value_heads"};
  c.n_kv_heads = uniform_count(kv_heads, kMaxHeads, c.n_heads);
  if (c.n_heads % c.n_kv_heads != 0)
    corrupt(kv_heads, fmt::format("is {}, which does not divide the {} heads", c.n_kv_heads, c.n_heads));
  const Key key_length{"attention.key_length", "head_dim"}, value_length{"attention.value_length", nullptr};
  c.head_dim = count_or(key_length, std::max<int64_t>(1, c.d_model / c.n_heads), kMaxHeads);
  const int64_t value_dim = count_or(value_length, c.head_dim, kMaxHeads);
  if (!options.latent && (c.head_dim < 2 || c.head_dim % 2 != 0))
    corrupt(key_length, fmt::format("is {}, expected an even number", c.head_dim));
  if (!options.latent && value_dim != c.head_dim)
    refuse(value_length, fmt::format("is {}, other than key_length {}", value_dim, c.head_dim));
  c.norm_eps =
      options.norm == NormKind::rms
          ? number({"attention.layer_norm_rms_epsilon", "rms_norm_eps|layer_norm_eps"})
          : number({"attention.layer_norm_epsilon", "layer_norm_epsilon|layer_norm_eps|norm_epsilon"});
  c.final_norm = options.norm;
  c.attention_scale = 1 / std::sqrt(static_cast<double>(c.head_dim));
  read_vocabulary(options, c);
  return c;
}

void ConfigReader::read_gguf_scaling(RopeConfig& r) {
  const Key type_key{"rope.scaling.type", nullptr};
  const std::string type = text_or(type_key, "linear");
  const double factor =
      number_or({"rope.scaling.factor", nullptr}, number_or({"rope.scale_linear", nullptr}, 1));
  const double original = number_or({"rope.scaling.original_context_length", nullptr}, 0);
  if (type == "none" || factor == 0 || factor == 1) return;
  r.factor = factor;
  if (type == "linear") {
    r.scaling = RopeScaling::linear;
  } else if (type == "yarn") {
    r.scaling = RopeScaling::yarn;
    r.original_max_seq_len = original;
    r.beta_fast = number_or({"rope.scaling.yarn_beta_fast", nullptr}, 32);
    r.beta_slow = number_or({"rope.scaling.yarn_beta_slow", nullptr}, 1);
    r.attention_factor = yarn_temperature(factor, 1) * number_or({"rope.scaling.attn_factor", nullptr}, 1);
    if (original <= 0)
      corrupt({"rope.scaling.original_context_length", nullptr}, "is missing, yarn needs it");
  } else {
    refuse(type_key, fmt::format("is \"{}\", a RoPE scaling that is not supported", type));
  }
}

// section: "rope_scaling." or "rope_parameters." …
void ConfigReader::read_scaling(RopeConfig& r, const std::string& section, int64_t context) {
  auto name = [&](const char* key) { return section + key; };
  auto read_number = [&](const char* key, double fallback) {
    const std::string full = name(key);
    return number_or({nullptr, full.c_str()}, fallback);
  };
  const std::string type_name = name("rope_type|") + name("type");
  const Key type_key{nullptr, type_name.c_str()};
  const std::string type = text_or(type_key, "default");
  if (type == "default") return;
  r.factor = read_number("factor", 1);
  r.original_max_seq_len = read_number("original_max_position_embeddings", static_cast<double>(context));
  if (type == "linear") {
    r.scaling = RopeScaling::linear;
  } else if (type == "llama3") {
    r.scaling = RopeScaling::llama3;
    r.low_freq_factor = read_number("low_freq_factor", 1);
    r.high_freq_factor = read_number("high_freq_factor", 4);
    if (r.high_freq_factor <= r.low_freq_factor)
      corrupt(type_key, "wants high_freq_factor above low_freq_factor");
  } else if (type == "yarn") {
    r.scaling = RopeScaling::yarn;
    r.beta_fast = read_number("beta_fast", 32);
    r.beta_slow = read_number("beta_slow", 1);
    const double m = read_number("mscale", 0), all = read_number("mscale_all_dim", 0);
    const double temperature = m > 0 && all > 0
                                   ? yarn_temperature(r.factor, m) / yarn_temperature(r.factor, all)
                                   : yarn_temperature(r.factor, 1);
    r.attention_factor = read_number("attention_factor", temperature);
  } else {
    refuse(type_key, fmt::format("is \"{}\", a RoPE scaling that is not supported", type));
  }
  if (r.factor <= 0 || r.original_max_seq_len <= 0)
    corrupt(type_key, "wants factor and original length above 0");
}

RopeConfig ConfigReader::rope(int64_t head_dim, const char* layer_kind) {
  RopeConfig r;
  // Newer folders keep theta and scaling together in rope_parameters, perhaps per kind of layer.
  std::string section = "rope_parameters.";
  if (layer_kind != nullptr && source_.metadata().has(section + layer_kind + ".rope_theta"))
    section.append(layer_kind).append(".");
  const std::string theta_name = section + "rope_theta|rope_theta";
  const Key theta{"rope.freq_base", theta_name.c_str()};
  r.theta = number_or(theta, 10000);
  if (r.theta <= 1) corrupt(theta, fmt::format("is {}, expected more than 1", r.theta));
  const std::string part_name = section + "partial_rotary_factor|partial_rotary_factor";
  const Key part{nullptr, part_name.c_str()};
  const double fraction = number_or(part, 1);
  if (fraction > 1 || fraction == 0)
    corrupt(part, fmt::format("is {}, expected above 0 and at most 1", fraction));
  const Key dimension{"rope.dimension_count", nullptr};
  r.dim = static_cast<int>(
      count_or(dimension, static_cast<int64_t>(fraction * static_cast<double>(head_dim)), head_dim));
  if (r.dim < 2 || r.dim % 2 != 0)
    corrupt(is_gguf() ? dimension : part, fmt::format("rotates {} values, expected an even number", r.dim));
  if (is_gguf())
    read_gguf_scaling(r);
  else
    for (const std::string& from : {section, std::string("rope_scaling.")})
      if (r.scaling == RopeScaling::none)
        read_scaling(
            r, from,
            count_or({nullptr, "original_max_position_embeddings|max_position_embeddings"}, 1, kMaxContext));
  return r;
}

std::vector<float> ConfigReader::rope_divisors(int64_t pairs) {
  const TensorInfo* tensor = is_gguf() ? source_.find("rope_freqs.weight") : nullptr;
  if (tensor == nullptr) return {};
  if (tensor->type != DType::f32 || tensor->shape != std::vector<int64_t>{pairs})
    throw Error(ErrorCode::corrupt_file,
                fmt::format("{}: tensor rope_freqs.weight is {} {}, expected F32 [{}]", source_.path(),
                            dtype_info(tensor->type).name, shape_text(tensor->shape), pairs));
  std::vector<float> divisors(static_cast<size_t>(pairs));
  kernels::decode_row(DType::f32, tensor->data, pairs, divisors.data());
  for (float d : divisors)
    if (!std::isfinite(d) || d <= 0)
      throw Error(
          ErrorCode::corrupt_file,
          fmt::format("{}: tensor rope_freqs.weight holds {}, expected positive numbers", source_.path(), d));
  return divisors;
}

void ConfigReader::refuse_unread() const {
  const std::string prefix = architecture_ + ".";
  for (const std::string& key : source_.metadata().keys()) {
    if (read_.count(key) != 0) continue;
    if (is_gguf() ? !starts_with(key, prefix) || harmless_in_gguf(key) : harmless_in_config_json(key))
      continue;
    // What is switched off changes nothing.
    if (!is_gguf() && source_.metadata().json(key, 2) == "false") continue;
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{}: key {} is unknown and could change what the model computes", source_.path(), key));
  }
}

}  // namespace liuli
