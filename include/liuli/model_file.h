// Model files without running them: what is inside, and writing results where others can read them.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace liuli {

struct FileKey {
  std::string name, type, json;  ///< json: the value, long arrays cut
};
struct FileTensor {
  std::string name, type;
  std::vector<int64_t> shape;
  int64_t elements = 0, bytes = 0;
};
/// A tensor that is in the files and is not read, with the reason: "is stored as F8_E5M2, …".
struct FileSetAside {
  std::string name, reason;
};
struct FileType {
  std::string type;
  int64_t tensors = 0, elements = 0, bytes = 0;
};

struct FileReport {
  std::string path, format;
  int64_t file_bytes = 0, parameters = 0, tensor_bytes = 0;
  std::vector<FileKey> metadata;
  std::vector<FileTensor> tensors;
  std::vector<FileSetAside> set_aside;
  std::vector<FileType> types;  ///< per stored type, largest first
};

/// Errors: not_found, io_error, corrupt_file, unsupported. array_items: how much of a metadata array to show.
FileReport inspect_file(const std::string& path, size_t array_items = 8);

/// A tensor's values, exactly decoded. Errors: not_found (names the nearest tensors).
struct DecodedTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};
DecodedTensor decode_tensor(const std::string& path, const std::string& tensor);

/// Writes an f32 array as .npy (version 1.0). The file appears whole or not at all. Errors: io_error.
void write_npy(const std::string& path, const std::vector<int64_t>& shape, const std::vector<float>& values);

/// Named f32 arrays of an .npy, .npz or .safetensors file. Errors: not_found, io_error, corrupt_file, unsupported.
std::vector<DecodedTensor> read_arrays(const std::string& path);

/// Writes f32 tensors as one file: an .npz where the name ends so, else safetensors. The values of each may be appended
/// piece by piece, in order, or written at their places, in any order (then to a regular file only).
class TensorFileWriter {
 public:
  struct Entry {
    std::string name;
    std::vector<int64_t> shape;
  };
  TensorFileWriter(const std::string& path, const std::vector<Entry>& entries,
                   const std::map<std::string, std::string>& metadata = {});
  ~TensorFileWriter();
  TensorFileWriter(const TensorFileWriter&) = delete;
  void append(const float* values, size_t n);  ///< the next values, tensor after tensor
  /// n values of one tensor at an index within it; what is never written is 0.
  void write_at(size_t tensor, int64_t first, const float* values, int64_t n);
  void finish();  ///< the file appears under its name; without it nothing remains

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace liuli
