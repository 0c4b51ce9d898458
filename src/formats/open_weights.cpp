// Which reader a path belongs to.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "formats/gguf.h"
#include "formats/hugging_face.h"
#include "liuli/error.h"

namespace liuli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(ErrorCode code, const std::string& path, const std::string& reason) {
  throw Error(code, fmt::format("{}: {}", path, reason));
}

std::vector<std::string> file_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  if (error) fail(ErrorCode::io_error, folder, fmt::format("cannot list the folder: {}", error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

bool ends_with(const std::string& name, std::string_view end) {
  return name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

/// NAME-00002-of-00003.gguf: opened along with part 1, whose number is 00001. The same for shards of safetensors.
bool is_numbered(const std::string& name, std::string_view extension) {
  constexpr std::string_view kShape = "-00001-of-00003";
  return ends_with(name, extension) && name.size() > kShape.size() + extension.size() &&
         name.substr(name.size() - extension.size() - kShape.size() + 6, 4) == "-of-";
}
bool is_later_part(const std::string& name) {
  constexpr std::string_view kTail = "00001-of-00003.gguf";
  return is_numbered(name, ".gguf") && name.substr(name.size() - kTail.size(), 5) != "00001";
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

std::unique_ptr<WeightSource> open_folder(const std::string& path) {
  const std::vector<std::string> names = file_names(path);
  const auto has = [&](const char* name) { return std::binary_search(names.begin(), names.end(), name); };
  if (has("model.safetensors") || has("model.safetensors.index.json")) return open_hugging_face_folder(path);

  std::vector<std::string> ggufs, tensors, pickles;
  for (const std::string& name : names) {
    if (ends_with(name, ".gguf") && !is_later_part(name)) ggufs.push_back(name);
    if (ends_with(name, ".safetensors")) tensors.push_back(name);
    if (ends_with(name, ".bin") || ends_with(name, ".pt") || ends_with(name, ".pth")) pickles.push_back(name);
  }
  if (ggufs.size() == 1) return open_gguf((fs::path(path) / ggufs[0]).string());
  if (ggufs.size() > 1)
    fail(ErrorCode::invalid_argument, path,
         fmt::format("the folder holds {} GGUF models, name one of them: {}", ggufs.size(), joined(ggufs)));
  if (!tensors.empty())
    fail(ErrorCode::not_found, path,
         fmt::format("the folder has neither model.safetensors nor model.safetensors.index.json; name a file "
                     "of it: {}",
                     joined(tensors)));
  if (!pickles.empty())
    fail(ErrorCode::unsupported, path,
         fmt::format(
             "the weights are in {}, a Python pickle; pickles can run code and are not read. Save them again "
             "in Python with model.save_pretrained(folder, safe_serialization=True)",
             pickles[0]));
  fail(ErrorCode::invalid_argument, path,
       "the folder holds no model: no model.safetensors, model.safetensors.index.json or GGUF file");
}

}  // namespace

void add_weight_file(const std::string& path, const FileBytes& bytes, std::vector<WeightFile>& files) {
  if (bytes.mapped) files.push_back({path, static_cast<int64_t>(bytes.size), bytes.modified_ns});
}

std::unique_ptr<WeightSource> open_weights(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return open_folder(path);
  if (!ends_with(path, ".safetensors")) return open_gguf(path);
  if (is_numbered(path, ".safetensors"))
    fail(ErrorCode::invalid_argument, path, "is one shard of a model; open its folder instead");
  return open_safetensors_model(path);
}

}  // namespace liuli
