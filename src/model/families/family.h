// A family is data: how its file becomes a ModelConfig, and which tensors it has.
#pragma once
#include <string_view>
#include <vector>

#include "formats/weight_source.h"
#include "liuli/config.h"
#include "model/families/config_reader.h"
#include "model/tensor_roles.h"

namespace liuli {

struct Family {
  const char* name;         ///< also GGUF's general.architecture; "": there is no such GGUF file
  const char* model_types;  ///< config.json's model_type, alternatives separated by '|'
  /// Reads the family's keys; what it does not read is refused afterwards.
  ModelConfig (*read_config)(ConfigReader& reader);
  /// Every tensor, with the shape the configuration demands.
  std::vector<TensorSpec> (*list_tensors)(const ModelConfig& config, Naming naming);
  std::span<const RoleNames> names = {};  ///< where files differ from the usual names
  /// Tensors a file may hold beside the model (masks, heads for other tasks); null: none.
  bool (*unused_tensor)(const ModelConfig& config, const std::string& name) = nullptr;
};

extern const Family kPhi3, kSmolLm3, kQwen2Moe, kQwen3Moe, kStack;
extern const Family kLlama, kQwen2, kQwen3, kGemma3, kOlmo2, kGpt2, kBert, kTransformer2017, kDeepseek;

/// The family of a source's general.architecture or model_type, or null.
const Family* find_family(Naming naming, std::string_view architecture);
/// The family a configuration was read by.
const Family& family_of(const ModelConfig& config);
/// "llama, qwen2, gemma3"
std::string family_names(Naming naming);

}  // namespace liuli
