// The GGUF container, versions 2 and 3, little-endian.
//
//   "GGUF" u32 version u64 tensor_count u64 kv_count
//   kv_count ×      string key, u32 type, value               string = u64 length, bytes
//   tensor_count ×  string name, u32 n_dims, n_dims × u64 dimension, u32 type, u64 offset
//   padding to general.alignment (default 32), then the data section; offsets count from its start
//
// Dimension 0 is the contiguous one: the last of a PyTorch shape. Everything is checked while reading, so
// that whoever gets a GgufFile may use every tensor's bytes without looking back.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "formats/gguf_metadata.h"
#include "formats/mapped_file.h"
#include "formats/weight_source.h"

namespace liuli {

/// One file: a whole model, or a part of one.
struct GgufFile {
  std::string path;
  FileBytes bytes;
  uint32_t version;
  GgufMetadata metadata;
  std::vector<TensorInfo> tensors;  ///< in file order; ranges lie in the file and do not overlap
};

/// Reads header, keys and tensor infos. `path` is for messages only.
///
/// Errors: corrupt_file; unsupported for version 1, later versions, big-endian files and unknown element
/// types. Memory: no allocation above 4 × size + 16 MiB, whatever the counts in the file say.
GgufFile parse_gguf(const std::string& path, FileBytes bytes);

/// parse_gguf as a source of its own: for bytes that are not in a file.
std::unique_ptr<WeightSource> open_gguf_bytes(const std::string& path, FileBytes bytes);

/// A file, with its siblings when it is the first part of a split model (gguf_split.cpp).
std::unique_ptr<WeightSource> open_gguf(const std::string& path);

/// Joins part 0 and the others into one source; refuses a tensor name that occurs in two parts.
std::unique_ptr<WeightSource> join_gguf(std::vector<GgufFile> parts);

}  // namespace liuli
