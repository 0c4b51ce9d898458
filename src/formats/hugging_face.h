// A model folder in Hugging Face's layout: config.json, and the weights in model.safetensors or in shards that
// model.safetensors.index.json lists:
//
//   {"metadata": {"total_size": …}, "weight_map": {"tensor name": "model-00001-of-00003.safetensors", …}}
//
// total_size is informational and wrong in some folders; it is not looked at.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json_metadata.h"
#include "formats/safetensors.h"
#include "formats/weight_source.h"

namespace liuli {

/// Tensor name → file name. Ordered, so that shards come in the order of their numbers.
using WeightMap = std::map<std::string, std::string>;

/// Reads an index. Errors: corrupt_file, also for a file name that is not a plain name in the same folder.
WeightMap parse_weight_map(const std::string& path, std::string_view text);

/// What a folder's files say, each checked for itself.
struct HuggingFaceParts {
  std::string path;    ///< as the user named it
  std::string folder;  ///< where companions are
  JsonMetadata config;
  std::vector<SafetensorsFile> shards;
  std::optional<WeightMap> weight_map;  ///< none: everything in the one shard counts
};

/// Checks the parts against each other. Errors: corrupt_file (a mapped tensor that its file lacks), unsupported (a
/// quantization_config whose packed integers would be taken for weights).
std::unique_ptr<WeightSource> join_hugging_face(HuggingFaceParts parts);

/// A folder that has model.safetensors or an index.
std::unique_ptr<WeightSource> open_hugging_face_folder(const std::string& path);
/// One safetensors file; config.json and companions lie beside it.
std::unique_ptr<WeightSource> open_safetensors_model(const std::string& path);

}  // namespace liuli
