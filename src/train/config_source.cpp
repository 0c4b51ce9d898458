#include "train/config_source.h"

#include "formats/json_metadata.h"

namespace liuli {
namespace {

class ConfigSource final : public WeightSource {
 public:
  ConfigSource(const std::string& path, const nlohmann::json& config) : path_(path), config_(path, config) {}
  const std::string& path() const override { return path_; }
  std::string format() const override { return "a configuration"; }
  Naming naming() const override { return Naming::hugging_face; }
  const Metadata& metadata() const override { return config_; }
  std::optional<std::string> companion(std::string_view) const override { return std::nullopt; }
  const std::vector<TensorInfo>& tensors() const override { return none_; }
  const TensorInfo* find(std::string_view) const override { return nullptr; }
  const std::vector<SetAside>& set_aside() const override { return nothing_; }
  void give_back(const TensorInfo&) const override {}
  int64_t file_bytes() const override { return 0; }

 private:
  std::string path_;
  JsonMetadata config_;
  std::vector<TensorInfo> none_;
  std::vector<SetAside> nothing_;
};

}  // namespace

std::shared_ptr<WeightSource> config_source(const std::string& path, const nlohmann::json& config) {
  return std::make_shared<ConfigSource>(path, config);
}

}  // namespace liuli
