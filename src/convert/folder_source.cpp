#include "convert/folder_source.h"

#include <filesystem>

#include <fmt/core.h>

#include "convert/folder_tensors.h"
#include "convert/gguf_keys.h"
#include "convert/tokenizer_keys.h"
#include "formats/gguf.h"
#include "formats/json_metadata.h"
#include "liuli/error.h"
#include "model/binder.h"
#include "model/config_in_gguf.h"
#include "model/load.h"

namespace liuli {
namespace {

/// The file to come, before it is written: its keys, and its tensors by name and shape.
class PlannedFile final : public WeightSource {
 public:
  explicit PlannedFile(const QuantizeSource& source) : path_(source.path) {
    auto bytes = std::make_shared<const std::string>(GgufWriter::without_tensors(path_, source.keys));
    keys_ = open_gguf_bytes(path_, {reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size(), bytes});
    for (const SourceTensor& t : source.tensors) {
      TensorInfo info;
      info.name = t.name;
      info.type = t.bytes == nullptr ? DType::f32 : t.type;
      info.shape = t.shape;
      info.data = t.bytes;
      tensors_.push_back(std::move(info));
    }
  }

  const std::string& path() const override { return path_; }
  std::string format() const override { return keys_->format(); }
  Naming naming() const override { return Naming::gguf; }
  const Metadata& metadata() const override { return keys_->metadata(); }
  std::optional<std::string> companion(std::string_view) const override { return std::nullopt; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const TensorInfo* find(std::string_view name) const override {
    for (const TensorInfo& info : tensors_)
      if (info.name == name) return &info;
    return nullptr;
  }
  const std::vector<SetAside>& set_aside() const override { return keys_->set_aside(); }
  void give_back(const TensorInfo&) const override {}
  int64_t file_bytes() const override { return 0; }

 private:
  std::string path_;
  std::unique_ptr<WeightSource> keys_;
  std::vector<TensorInfo> tensors_;
};

[[noreturn]] void cannot_be_gguf(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::unsupported, fmt::format("{}: cannot be written as GGUF: {}", path, why));
}

/// Reads the keys back, as any reader of the file will.
void check_keys(const QuantizeSource& source, const ModelConfig& config) {
  const PlannedFile file(source);
  ModelConfig read;
  try {
    read = read_model_config(file);
  } catch (const Error& e) {
    cannot_be_gguf(source.path, e.what());
  }
  const std::string difference = first_difference(config, read);
  if (!difference.empty())
    cannot_be_gguf(source.path, fmt::format("{} (what {} files say)", difference, config.family));
}

/// What sentence-transformers keeps beside an encoder; mean where nothing is said, as BERT's readers have it.
Pooling folder_pooling(const WeightSource& source) {
  const auto text = source.companion("1_Pooling/config.json");
  if (!text) return Pooling::unstated;
  const JsonMetadata config = JsonMetadata::parse(source.path() + "/1_Pooling/config.json", *text);
  const auto stated = [&](const char* flag, const char* name) {
    return config.boolean(flag).value_or(false) || config.text("pooling_mode").value_or("") == name;
  };
  if (stated("pooling_mode_cls_token", "cls")) return Pooling::cls;
  if (stated("pooling_mode_lasttoken", "lasttoken")) return Pooling::last;
  if (stated("pooling_mode_mean_tokens", "mean")) return Pooling::mean;
  return Pooling::unstated;
}

/// The folder's own name: what a user called the model.
std::string model_name(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path place = fs::absolute(path, ignored).lexically_normal();
  if (!fs::is_directory(place, ignored) || !place.has_filename()) place = place.parent_path();
  return place.filename().string();
}

MixModel mix_model(const ModelConfig& c) {
  // Latents have no heads of their own that could be shared.
  return {c.n_layers, c.is_latent() ? 1 : c.n_heads / c.n_kv_heads, c.experts.n_experts, c.tied_embeddings,
          false};
}

ModelConfig checked_config(const WeightSource& weights, std::vector<std::string>& warnings) {
  Model model;
  model.config = read_model_config(weights);
  const Family& family = family_of(model.config);
  if (*family.name == '\0')
    cannot_be_gguf(weights.path(), fmt::format("{} has no architecture there", family.model_types));
  const Binder binder(weights, family, model);  // names, shapes, strangers
  for (const std::string& line : load_notices(model)) warnings.push_back(line);
  if (model.config.has_pooler) warnings.push_back("the pooler is left out: GGUF has no tensors for it");
  return config_in_gguf(model.config);
}

}  // namespace

QuantizeSource folder_source(const std::shared_ptr<const WeightSource>& weights, bool tokenizer) {
  QuantizeSource source{weights->path(), {}, {}, {}, weights, {}};
  ModelConfig config = checked_config(*weights, source.warnings);
  if (!config.has_output) config.pooling = folder_pooling(*weights);
  source.model = mix_model(config);
  add_architecture_keys(config, source.keys);
  source.keys.text("general.name", model_name(weights->path()));
  source.tensors = folder_tensors(weights, family_of(config), config);
  check_keys(source, config);
  if (config.n_token_types > 0)
    source.keys.u32("tokenizer.ggml.token_type_count", static_cast<uint32_t>(config.n_token_types));
  if (tokenizer)
    add_tokenizer_keys(*weights, config.vocab_size, source.keys, source.warnings);
  else
    add_no_tokenizer(source.keys);
  return source;
}

}  // namespace liuli
