// safetensors files: named arrays behind a JSON header.
//
//   u64 N   header: N bytes of JSON {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]},
//   …} then the data; offsets count from its start, ranges follow each other without holes.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/output_file.h"
#include "formats/mapped_file.h"

namespace liuli {

/// What a writer announces about one array.
struct SafetensorsSpec {
  std::string name;
  DType type;  ///< f32 f64 f16 bf16 i8 i16 i32 i64
  std::vector<int64_t> shape;
};
using SafetensorsMetadata = std::map<std::string, std::string>;

/// Writes arrays in the announced order; a value never has to be in memory longer than its append() call. The
/// file appears under its name on finish().
///
/// Errors: invalid_argument (a type the format lacks, a name twice, more or fewer bytes than announced);
/// io_error.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::string& path, const std::vector<SafetensorsSpec>& specs,
                    const SafetensorsMetadata& metadata = {});
  /// The next bytes of the data, any number of arrays or parts of one.
  void append(const void* data, size_t bytes);
  /// Bytes of one array at an offset within it, in any order and in place of append(); what is never written is 0.
  /// Errors: also invalid_argument where the target is not a regular file.
  void write_at(size_t array, int64_t offset, const void* data, size_t bytes);
  void finish();

 private:
  OutputFile file_;
  std::vector<int64_t> begins_;          ///< of each array in the file, and the file's end
  int64_t announced_ = 0, written_ = 0;  ///< bytes of data
  bool out_of_order_ = false;
};

/// Reads a whole file's header and hands out its arrays.
///
/// Errors: as map_file; corrupt_file where header, shapes, offsets and file size contradict each other;
/// not_found for a name that is not there; invalid_argument where a value is asked for as another kind than
/// it is stored.
class SafetensorsFile {
 public:
  struct Tensor {
    std::string name, dtype;  ///< dtype as the file spells it: "F32", "U8", …
    std::vector<int64_t> shape;
    const uint8_t* data = nullptr;  ///< may be misaligned
    int64_t bytes = 0;
  };

  explicit SafetensorsFile(const std::string& path);
  SafetensorsFile(const std::string& path, FileBytes bytes);

  const SafetensorsMetadata& metadata() const { return metadata_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }  ///< in the order of their data
  const Tensor* find(std::string_view name) const;
  const std::string& path() const { return path_; }
  const FileBytes& bytes() const { return bytes_; }

  std::vector<float> floats(std::string_view name) const;      ///< F32, F16, BF16; F64 rounded
  std::vector<double> doubles(std::string_view name) const;    ///< F64, F32, F16, BF16
  std::vector<int64_t> integers(std::string_view name) const;  ///< I8 … I64, U8 … U32, BOOL
  std::vector<uint8_t> raw(std::string_view name) const;       ///< any type

 private:
  const Tensor& require(std::string_view name) const;

  std::string path_;
  FileBytes bytes_;
  SafetensorsMetadata metadata_;
  std::vector<Tensor> tensors_;
  std::vector<uint32_t> by_name_;  ///< indices into tensors_
};

}  // namespace liuli
