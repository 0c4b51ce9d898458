#include "formats/hugging_face.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

#include "formats/byte_cursor.h"
#include "formats/fp8_blocks.h"
#include "formats/strict_json.h"
#include "liuli/error.h"

namespace liuli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr uint64_t kMaxCompanionBytes = uint64_t{256} << 20;
constexpr int kMaxIndexDepth = 4;

[[noreturn]] void fail(ErrorCode code, const std::string& place, const std::string& reason) {
  throw Error(code, fmt::format("{}: {}", place, reason));
}

/// An index comes from strangers: its file names must not lead out of the folder.
bool is_plain_name(std::string_view name) {
  const auto is_refused = [](unsigned char c) { return c < 0x20 || c == 0x7F || c == '/' || c == '\\'; };
  return !name.empty() && name != "." && name != ".." && std::none_of(name.begin(), name.end(), is_refused);
}

/// "tokenizer.json", "1_Pooling/config.json": below the folder, never beside it.
bool is_plain_path(std::string_view path) {
  const size_t slash = path.find('/');
  if (slash == std::string_view::npos) return is_plain_name(path);
  return is_plain_name(path.substr(0, slash)) && is_plain_path(path.substr(slash + 1));
}

/// A whole small file, or nothing when it is not there.
std::optional<std::string> read_small_file(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    if (error) fail(ErrorCode::io_error, path, fmt::format("cannot look for the file: {}", error.message()));
    return std::nullopt;
  }
  if (fs::is_regular_file(path, error) && fs::file_size(path, error) == 0) return std::string();
  const FileBytes bytes = map_file(path);
  if (bytes.size > kMaxCompanionBytes)
    fail(ErrorCode::unsupported, path,
         fmt::format("the file has {} bytes, the limit is {}", bytes.size, kMaxCompanionBytes));
  return std::string(reinterpret_cast<const char*>(bytes.data), bytes.size);
}

/// The DType of a plain safetensors type, or nothing for one that Liuli has no row for.
std::optional<DType> plain_type(std::string_view stored) {
  const std::optional<DType> type = dtype_from_name(stored);
  return type && dtype_info(*type).block == 1 ? type : std::nullopt;
}

using StoredTensor = SafetensorsFile::Tensor;

class HuggingFaceSource final : public WeightSource {
 public:
  explicit HuggingFaceSource(HuggingFaceParts parts)
      : parts_(std::move(parts)), fp8_(announces_fp8_blocks(parts_.path, parts_.config)) {
    for (const SafetensorsFile& shard : parts_.shards) collect(shard);
    for (const SafetensorsFile& shard : parts_.shards)
      for (const StoredTensor& tensor : shard.tensors())
        if (is_stored(tensor)) take(shard, tensor);
    by_name_.resize(tensors_.size());
    std::iota(by_name_.begin(), by_name_.end(), 0u);
    std::sort(by_name_.begin(), by_name_.end(),
              [&](uint32_t a, uint32_t b) { return tensors_[a].name < tensors_[b].name; });
    std::sort(set_aside_.begin(), set_aside_.end(),
              [](const SetAside& a, const SetAside& b) { return a.name < b.name; });
  }

  const std::string& path() const override { return parts_.path; }
  std::string format() const override {
    return parts_.weight_map ? fmt::format("safetensors, {} shards", parts_.shards.size()) : "safetensors";
  }
  Naming naming() const override { return Naming::hugging_face; }
  const Metadata& metadata() const override { return parts_.config; }
  std::optional<std::string> companion(std::string_view name) const override {
    if (!is_plain_path(name))
      fail(ErrorCode::invalid_argument, parts_.path,
           fmt::format("{} is not a plain file name", quoted_name(name)));
    return read_small_file((fs::path(parts_.folder) / name).string());
  }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const TensorInfo* find(std::string_view name) const override {
    const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                     [&](uint32_t i, std::string_view n) { return tensors_[i].name < n; });
    return at != by_name_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
  }
  std::shared_ptr<const uint8_t> bytes_of(const TensorInfo& tensor) const override {
    if (tensor.data != nullptr) return WeightSource::bytes_of(tensor);
    return build_fp8_rows(fp8_matrix(*stored_.at(tensor.name)));
  }
  const std::vector<SetAside>& set_aside() const override { return set_aside_; }
  void give_back(const TensorInfo& tensor) const override {
    const StoredTensor& stored = *stored_.at(tensor.name);
    give_back_bytes(stored.data, stored.bytes);
  }
  void give_back_bytes(const uint8_t* data, int64_t bytes) const override {
    for (const SafetensorsFile& shard : parts_.shards)
      if (shard.bytes().holds(data)) drop_resident_pages(shard.bytes(), data, static_cast<size_t>(bytes));
  }
  int64_t file_bytes() const override {
    int64_t bytes = 0;
    for (const SafetensorsFile& shard : parts_.shards) bytes += static_cast<int64_t>(shard.bytes().size);
    return bytes;
  }
  std::vector<WeightFile> files() const override {
    std::vector<WeightFile> files;
    for (const SafetensorsFile& shard : parts_.shards) add_weight_file(shard.path(), shard.bytes(), files);
    return files;
  }

 private:
  /// A tensor may lie in two shards; the index says which one counts.
  void collect(const SafetensorsFile& shard) {
    const std::string file = fs::path(shard.path()).filename().string();
    for (const StoredTensor& tensor : shard.tensors()) {
      const WeightMap::const_iterator at =
          parts_.weight_map ? parts_.weight_map->find(tensor.name) : WeightMap::const_iterator();
      if (!parts_.weight_map || (at != parts_.weight_map->end() && at->second == file))
        stored_[tensor.name] = &tensor;
      else if (at == parts_.weight_map->end())
        set_aside_.push_back(
            {tensor.name, fmt::format("lies in {}, but {} does not name it", file, kIndexName)});
    }
  }
  const StoredTensor* stored(const std::string& name) const {
    const auto at = stored_.find(name);
    return at != stored_.end() ? at->second : nullptr;
  }
  bool is_stored(const StoredTensor& tensor) const { return stored(tensor.name) == &tensor; }

  void take(const SafetensorsFile& shard, const StoredTensor& tensor) {
    const int64_t offset = tensor.data - shard.bytes().data;
    if (is_used_scale(tensor.name)) return;
    if (const std::optional<DType> type = plain_type(tensor.dtype)) {
      tensors_.push_back({tensor.name, *type, tensor.shape, tensor.data, tensor.bytes, offset});
    } else if (!is_fp8(tensor)) {
      set_aside_.push_back(
          {tensor.name, fmt::format("is stored as {}, which Liuli does not read", tensor.dtype)});
    } else if (const auto problem = fp8_problem(fp8_matrix(tensor))) {
      set_aside_.push_back({tensor.name, *problem});
    } else {
      const DType built = fp8_type(fp8_matrix(tensor));
      const int64_t bytes = tensor.shape[0] * row_bytes(built, tensor.shape[1]);
      tensors_.push_back({tensor.name, built, tensor.shape, nullptr, bytes, offset});
    }
  }

  bool is_fp8(const StoredTensor& tensor) const { return fp8_ && tensor.dtype == "F8_E4M3"; }
  Fp8Matrix fp8_matrix(const StoredTensor& codes) const {
    return {&codes, stored(std::string(codes.name).append(kScaleSuffix))};
  }
  /// Scales become a part of their weight's rows.
  bool is_used_scale(const std::string& name) const {
    if (name.size() <= kScaleSuffix.size() || !name.ends_with(kScaleSuffix)) return false;
    const StoredTensor* codes = stored(name.substr(0, name.size() - kScaleSuffix.size()));
    return codes != nullptr && is_fp8(*codes) && !fp8_problem(fp8_matrix(*codes));
  }

  HuggingFaceParts parts_;
  bool fp8_;
  std::map<std::string_view, const StoredTensor*> stored_;  ///< what counts, from all shards
  std::vector<TensorInfo> tensors_;
  std::vector<uint32_t> by_name_;  ///< indices into tensors_
  std::vector<SetAside> set_aside_;
};

void check_weight_map(const HuggingFaceParts& parts) {
  std::map<std::string, const SafetensorsFile*> by_file;
  for (const SafetensorsFile& shard : parts.shards)
    by_file[fs::path(shard.path()).filename().string()] = &shard;
  for (const auto& [tensor, file] : *parts.weight_map) {
    const auto shard = by_file.find(file);
    if (shard == by_file.end() || shard->second->find(tensor) == nullptr)
      fail(ErrorCode::corrupt_file, parts.path,
           fmt::format("{} says that tensor {} is in {}, {}", kIndexName, quoted_name(tensor),
                       quoted_name(file),
                       shard == by_file.end() ? "which is not there" : "which does not hold it"));
  }
}

JsonMetadata read_config(const std::string& weights, const fs::path& folder) {
  const std::string path = (folder / "config.json").string();
  const std::optional<std::string> text = read_small_file(path);
  if (!text) fail(ErrorCode::not_found, weights, "config.json is missing beside it");
  return JsonMetadata::parse(path, *text);
}

}  // namespace

WeightMap parse_weight_map(const std::string& path, std::string_view text) {
  const nlohmann::json index = parse_json_object(path, text, kMaxIndexDepth);
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object())
    fail(ErrorCode::corrupt_file, path, "has no object \"weight_map\"");
  WeightMap files;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || !is_plain_name(file.get_ref<const std::string&>()))
      fail(ErrorCode::corrupt_file, path,
           fmt::format("tensor {} is mapped to {}, not to the name of a file in this folder",
                       quoted_name(tensor),
                       file.is_string() ? quoted_name(file.get<std::string>()) : file.type_name()));
    files[tensor] = file.get<std::string>();
  }
  return files;
}

std::unique_ptr<WeightSource> join_hugging_face(HuggingFaceParts parts) {
  if (parts.weight_map) check_weight_map(parts);
  return std::make_unique<HuggingFaceSource>(std::move(parts));
}

std::unique_ptr<WeightSource> open_safetensors_model(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  SafetensorsFile file(path);
  HuggingFaceParts parts{path, folder.string(), read_config(path, folder), {}, std::nullopt};
  parts.shards.push_back(std::move(file));
  return join_hugging_face(std::move(parts));
}

std::unique_ptr<WeightSource> open_hugging_face_folder(const std::string& path) {
  const fs::path folder(path), single = folder / "model.safetensors", index = folder / kIndexName;
  const bool sharded = !fs::exists(single);
  HuggingFaceParts parts{
      path, path, read_config(sharded ? index.string() : single.string(), folder), {}, std::nullopt};
  if (!sharded) {
    parts.shards.emplace_back(single.string());
    return join_hugging_face(std::move(parts));
  }
  parts.weight_map = parse_weight_map(index.string(), read_small_file(index.string()).value_or(""));
  std::set<std::string> files;
  for (const auto& [tensor, file] : *parts.weight_map) files.insert(file);
  for (const std::string& file : files) parts.shards.emplace_back((folder / file).string());
  return join_hugging_face(std::move(parts));
}

}  // namespace liuli
