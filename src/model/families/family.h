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
  const char* name;  ///< also GGUF's general.architecture
  /// Reads the family's keys; what it does not read is refused afterwards.
  ModelConfig (*read_config)(ConfigReader& reader);
  /// Every tensor, with the shape the configuration demands.
  std::vector<TensorSpec> (*list_tensors)(const ModelConfig& config);
};

extern const Family kLlama, kQwen2, kQwen3, kGemma3, kOlmo2, kGpt2;

/// The family of an architecture's name, or null.
const Family* find_family(std::string_view architecture);
/// "llama, qwen2, gemma3"
std::string family_names();

}  // namespace liuli
