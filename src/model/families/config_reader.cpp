#include "model/families/config_reader.h"

#include <cmath>

#include <fmt/format.h>

#include "kernels/kernels.h"
#include "liuli/error.h"

namespace liuli {
namespace {

constexpr int64_t kMaxLayers = 4096, kMaxHeads = 65536, kMaxWidth = int64_t{1} << 24,
                  kMaxVocab = int64_t{1} << 28;
constexpr int64_t kMaxContext = int64_t{1} << 30;

// Keys that describe a file without changing what it computes.
bool harmless(const std::string& key) {
  for (const char* suffix : {".tensor_data_layout", ".training.", ".quantize."})
    if (key.find(suffix) != std::string::npos) return true;
  return false;
}

}  // namespace

ConfigReader::ConfigReader(const WeightSource& source, std::string architecture)
    : source_(source), architecture_(std::move(architecture)) {}

std::string ConfigReader::full(const std::string& key) {
  std::string name = architecture_ + "." + key;
  read_.insert(name);
  return name;
}

void ConfigReader::corrupt(const std::string& key, const std::string& what) const {
  throw Error(ErrorCode::corrupt_file,
              fmt::format("{}: key {}.{} {}", source_.path(), architecture_, key, what));
}

int64_t ConfigReader::count(const std::string& key, int64_t max) {
  const auto value = source_.metadata().integer(full(key));
  if (!value) corrupt(key, "is missing");
  if (*value < 1 || *value > max) corrupt(key, fmt::format("is {}, expected 1…{}", *value, max));
  return *value;
}

int64_t ConfigReader::count_or(const std::string& key, int64_t fallback, int64_t max) {
  return source_.metadata().has(full(key)) ? count(key, max) : fallback;
}

double ConfigReader::number(const std::string& key) {
  const auto value = source_.metadata().number(full(key));
  if (!value) corrupt(key, "is missing");
  if (!std::isfinite(*value) || *value < 0)
    corrupt(key, fmt::format("is {}, expected a finite number ≥ 0", *value));
  return *value;
}

double ConfigReader::number_or(const std::string& key, double fallback) {
  return source_.metadata().has(full(key)) ? number(key) : fallback;
}

std::string ConfigReader::text_or(const std::string& key, const std::string& fallback) {
  return source_.metadata().text(full(key)).value_or(fallback);
}

int64_t ConfigReader::uniform_count(const std::string& key, int64_t max, std::optional<int64_t> fallback) {
  const std::string name = full(key);
  if (!source_.metadata().has(name) && fallback) return *fallback;
  if (!source_.metadata().is_array(name)) return count(key, max);
  const auto values = source_.metadata().integers(name).value_or(std::vector<int64_t>{});
  if (values.empty()) corrupt(key, "is an empty array");
  for (int64_t v : values)
    if (v != values.front())
      throw Error(ErrorCode::unsupported, fmt::format("{}: key {} differs between layers ({} and {})",
                                                      source_.path(), name, values.front(), v));
  if (values.front() < 1 || values.front() > max)
    corrupt(key, fmt::format("is {}, expected 1…{}", values.front(), max));
  return values.front();
}

ModelConfig ConfigReader::common(const char* family, NormKind norm) {
  ModelConfig c;
  c.family = family;
  c.name = source_.metadata().text("general.name").value_or("");
  c.n_layers = count("block_count", kMaxLayers);
  c.d_model = count("embedding_length", kMaxWidth);
  c.d_ff = uniform_count("feed_forward_length", kMaxWidth);
  c.max_seq_len = count("context_length", kMaxContext);
  c.n_heads = uniform_count("attention.head_count", kMaxHeads);
  c.n_kv_heads = uniform_count("attention.head_count_kv", kMaxHeads, c.n_heads);
  if (c.n_heads % c.n_kv_heads != 0)
    corrupt("attention.head_count_kv",
            fmt::format("is {}, which does not divide the {} heads", c.n_kv_heads, c.n_heads));
  c.head_dim = count_or("attention.key_length", c.d_model / c.n_heads, kMaxHeads);
  const int64_t value_length = count_or("attention.value_length", c.head_dim, kMaxHeads);
  if (c.head_dim < 2 || c.head_dim % 2 != 0)
    corrupt("attention.key_length", fmt::format("is {}, expected an even number", c.head_dim));
  if (value_length != c.head_dim)
    throw Error(ErrorCode::unsupported, fmt::format("{}: value_length {} differs from key_length {}",
                                                    source_.path(), value_length, c.head_dim));
  c.norm_eps =
      number(norm == NormKind::rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon");
  c.final_norm = norm;
  c.attention_scale = 1 / std::sqrt(static_cast<double>(c.head_dim));
  const TensorInfo* embedding = source_.find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2)
    throw Error(ErrorCode::corrupt_file,
                source_.path() + ": tensor token_embd.weight is missing or not a matrix");
  c.vocab_size = embedding->shape[0];
  const int64_t stated = count_or("vocab_size", c.vocab_size, kMaxVocab);
  if (stated != c.vocab_size)
    corrupt("vocab_size", fmt::format("is {}, token_embd.weight has {} rows", stated, c.vocab_size));
  c.tied_embeddings = !has_tensor("output.weight");
  return c;
}

RopeConfig ConfigReader::rope(int64_t head_dim) {
  RopeConfig r;
  r.theta = number_or("rope.freq_base", 10000);
  if (r.theta <= 1) corrupt("rope.freq_base", fmt::format("is {}, expected more than 1", r.theta));
  r.dim = static_cast<int>(count_or("rope.dimension_count", head_dim, head_dim));
  if (r.dim % 2 != 0) corrupt("rope.dimension_count", fmt::format("is {}, expected an even number", r.dim));
  const std::string type = text_or("rope.scaling.type", "linear");
  const double factor = number_or("rope.scaling.factor", number_or("rope.scale_linear", 1));
  if (type != "none" && type != "linear")
    throw Error(ErrorCode::unsupported, fmt::format("{}: RoPE scaling type \"{}\" is not supported for {}",
                                                    source_.path(), type, architecture_));
  if (type == "linear" && factor != 0 && factor != 1) {
    r.scaling = RopeScaling::linear;
    r.factor = factor;
  }
  return r;
}

std::vector<float> ConfigReader::rope_divisors(int64_t pairs) {
  const TensorInfo* tensor = source_.find("rope_freqs.weight");
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
  for (const std::string& key : source_.metadata().keys())
    if (key.rfind(prefix, 0) == 0 && read_.count(key) == 0 && !harmless(key))
      throw Error(
          ErrorCode::unsupported,
          fmt::format("{}: key {} is unknown and could change what the model computes", source_.path(), key));
}

}  // namespace liuli
