#include "engine/embedding_defaults.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "liuli/error.h"

namespace liuli {
namespace {

using nlohmann::json;

// A companion as JSON; null when there is none.
json read_json(const WeightSource& source, const std::string& name) {
  const auto text = source.companion(name);
  if (!text) return nullptr;
  json parsed = json::parse(*text, nullptr, false);
  if (parsed.is_discarded())
    throw Error(ErrorCode::corrupt_file, fmt::format("{}: {} is not JSON", source.path(), name));
  return parsed;
}

std::string text_of(const json& object, const char* key) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

// Older files have a flag per mode ("pooling_mode_mean_tokens": true), newer ones a name.
std::string pooling_mode(const json& config) {
  if (const std::string mode = text_of(config, "pooling_mode"); !mode.empty()) return mode;
  std::string chosen;
  if (!config.is_object()) return chosen;
  for (const auto& [key, value] : config.items()) {
    if (!key.starts_with("pooling_mode_") || value != true) continue;
    if (!chosen.empty()) chosen += "+";
    chosen += key.substr(std::string_view("pooling_mode_").size());
  }
  return chosen;
}

void read_pooling(const WeightSource& source, const std::string& folder, EmbeddingDefaults& defaults) {
  const std::string mode = pooling_mode(read_json(source, folder + "/config.json"));
  if (mode == "mean_tokens" || mode == "mean")
    defaults.pooling = Pooling::mean;
  else if (mode == "cls_token" || mode == "cls")
    defaults.pooling = Pooling::cls;
  else if (mode == "lasttoken" || mode == "last_token")
    defaults.pooling = Pooling::last;
  else if (!mode.empty())
    defaults.problem = fmt::format("{}/config.json asks for the pooling {}", folder, mode);
}

}  // namespace

EmbeddingDefaults embedding_defaults(const WeightSource& source) {
  EmbeddingDefaults defaults;
  if (source.naming() != Naming::hugging_face) return defaults;
  const json limits = read_json(source, "sentence_bert_config.json");
  if (limits.is_object() && limits.contains("max_seq_length") && limits["max_seq_length"].is_number_integer())
    defaults.max_tokens = limits["max_seq_length"].get<int64_t>();
  const json modules = read_json(source, "modules.json");
  if (!modules.is_array()) return defaults;
  defaults.normalise = false;
  for (const json& module : modules) {
    const std::string type = text_of(module, "type"), kind = type.substr(type.rfind('.') + 1);
    if (kind == "Pooling")
      read_pooling(source, text_of(module, "path"), defaults);
    else if (kind == "Normalize")
      defaults.normalise = true;
    else if (kind != "Transformer" && !kind.empty())
      defaults.problem = fmt::format("modules.json asks for the module {}", kind);
  }
  return defaults;
}

}  // namespace liuli
