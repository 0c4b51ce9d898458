// Where a model's tensors and metadata come from, whatever the file format: named tensors and typed keys.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"

namespace liuli {

/// One stored tensor. The bytes stay where the file was mapped, at any alignment; they live as long as the source.
struct TensorInfo {
  std::string name;
  DType type;
  std::vector<int64_t> shape;  ///< PyTorch order: the last index is contiguous ([d_out, d_in] for a matrix)
  const uint8_t* data =
      nullptr;  ///< null: the file holds another form; WeightSource::bytes_of builds this one
  int64_t bytes = 0;
  int64_t file_offset = 0;  ///< of what is stored, in its own file

  int64_t elements() const {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
  }
};

/// "[576, 1536]"
std::string shape_text(const std::vector<int64_t>& shape);

/// Typed keys of a file. A getter returns nothing when the key is absent, and throws Error corrupt_file
/// (naming key, wanted and stored type, or the value out of range) when it holds something else. Integers of
/// any width are accepted.
class Metadata {
 public:
  virtual ~Metadata() = default;
  virtual std::vector<std::string> keys() const = 0;
  virtual bool has(std::string_view key) const = 0;
  virtual std::optional<int64_t> integer(std::string_view key) const = 0;
  virtual std::optional<double> number(std::string_view key) const = 0;  ///< floats and integers
  virtual std::optional<bool> boolean(std::string_view key) const = 0;
  virtual std::optional<std::string> text(std::string_view key) const = 0;
  virtual std::optional<std::vector<int64_t>> integers(std::string_view key) const = 0;  ///< an array
  virtual std::optional<std::vector<float>> numbers(std::string_view key) const = 0;
  virtual std::optional<std::vector<bool>> booleans(std::string_view key) const = 0;
  virtual std::optional<std::vector<std::string>> texts(std::string_view key) const = 0;
  virtual bool is_array(std::string_view key) const = 0;
  /// For `inspect`: the stored type ("u32", "string[49152]") and the value as JSON text, arrays cut after
  /// `limit` items.
  virtual std::string type_name(std::string_view key) const = 0;
  virtual std::string json(std::string_view key, size_t limit) const = 0;
};

/// How a source spells keys and tensors: GGUF's "llama.block_count" and "blk.0.attn_q.weight", or a Hugging Face
/// folder's "num_hidden_layers" (of config.json, nested objects joined by dots) and
/// "model.layers.0.self_attn.q_proj.weight". `trained`: a model in memory, under a folder's names, with every tensor laid
/// out as the block uses it (nothing transposed, interleaved or offset).
enum class Naming : uint8_t { gguf, hugging_face, trained };

/// A tensor that the files hold and tensors() leaves out, and why: "is stored as F8_E5M2, which Liuli does not read".
struct SetAside {
  std::string name, reason;
};

/// A file that holds weights, as it was when it was mapped.
struct WeightFile {
  std::string path;
  int64_t bytes = 0, modified_ns = 0;
};
struct FileBytes;
/// Appends the file of that path; nothing for bytes that are not mapped from one.
void add_weight_file(const std::string& path, const FileBytes& bytes, std::vector<WeightFile>& files);

/// A model on disk: its tensors and its metadata. Immutable, safe to read from several threads.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual const std::string& path() const = 0;
  virtual std::string format() const = 0;  ///< "GGUF v3"
  virtual Naming naming() const = 0;
  virtual const Metadata& metadata() const = 0;
  /// The contents of a small file beside the weights ("tokenizer.json", "generation_config.json"); nothing if there
  /// is none. A GGUF file carries everything itself and has none. Errors: io_error.
  virtual std::optional<std::string> companion(std::string_view file_name) const = 0;
  virtual const std::vector<TensorInfo>& tensors() const = 0;  ///< in file order
  virtual const TensorInfo* find(std::string_view name) const = 0;
  /// A tensor's bytes, whatever form the file has. Mapped ones are not copied and live as long as the source; built
  /// ones (FP8 with its scales: row by row, about as long as the file's) live as long as the pointer, and every call
  /// builds them anew. Errors: out_of_memory.
  virtual std::shared_ptr<const uint8_t> bytes_of(const TensorInfo& tensor) const {
    return {std::shared_ptr<const void>(), tensor.data};
  }
  /// Whoever needs a tensor that find() lacks tells the user the reason from here. Sorted by name.
  virtual const std::vector<SetAside>& set_aside() const = 0;
  /// A hint: the tensor was copied and will not be read soon. A mapped file stops counting in this process's
  /// memory; reading it again still works.
  virtual void give_back(const TensorInfo& tensor) const = 0;
  /// The same for a part of some tensor's mapped bytes, while other threads read the rest. Memory of another kind is
  /// left alone.
  virtual void give_back_bytes(const uint8_t* /*data*/, int64_t /*bytes*/) const {}
  virtual int64_t file_bytes() const = 0;  ///< all parts together
  /// All parts or shards, in their order; none where the weights are not mapped from files.
  virtual std::vector<WeightFile> files() const { return {}; }
};

/// Opens a model: a GGUF file (all parts of a split one), a Hugging Face folder, or a safetensors file in one.
/// Errors: not_found, io_error, corrupt_file, unsupported.
std::unique_ptr<WeightSource> open_weights(const std::string& path);

}  // namespace liuli
