// A model that is yet to be made: its config.json, and no tensors.
#pragma once
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "formats/weight_source.h"

namespace liuli {

/// What read_model_config() takes. `path` begins every message about the configuration. Errors: corrupt_file (no
/// object).
std::shared_ptr<WeightSource> config_source(const std::string& path, const nlohmann::json& config);

}  // namespace liuli
