// Panel files: a model's matrices as the kernels read them, so that loading is mapping.
//
//   "LIULIPNL" u32 version (1) u32 N, N bytes of JSON, zeros up to a multiple of 2 MiB, the matrices one after another
//   {"liuli": "0.1.0", "files": [{"name": "m.gguf", "bytes": …, "modified_ns": …}, …],
//    "matrices": [{"name": …, "type": "Q4_K", "shape": [d_out, d_in], "bytes": …}, …]}
//
// Matrices lie in the order of the list, without holes up to the file's end, and begin where a huge page can begin.
#pragma once
#include <string>
#include <vector>

#include "core/arena.h"
#include "core/dtype.h"
#include "core/output_file.h"
#include "formats/mapped_file.h"
#include "formats/weight_source.h"

namespace liuli {

/// A matrix in a panel file. Its bytes are a multiple of 64.
struct PackedMatrix {
  std::string name;
  DType type;
  int64_t d_out = 0, d_in = 0, bytes = 0;
  int64_t offset = 0;  ///< in the file; follows from the bytes of those before it
};

/// What a panel file says of itself.
struct PanelFileHeader {
  std::string liuli;              ///< the version that wrote it
  std::vector<WeightFile> files;  ///< their paths without folders
  std::vector<PackedMatrix> matrices;
};

/// Writes the announced matrices, in order; the file appears under its name on finish().
///
/// Errors: invalid_argument (a header beyond the limit of 64 MiB); io_error.
class PanelFileWriter {
 public:
  PanelFileWriter(const std::string& path, const PanelFileHeader& header);
  int64_t file_bytes() const { return file_bytes_; }
  /// The next bytes of the data, in pieces of any size.
  void append(const uint8_t* data, size_t bytes);
  /// Everything that was announced has been appended.
  void finish();

 private:
  OutputFile file_;
  AlignedBuffer step_;
  size_t filled_ = 0;
  int64_t file_bytes_ = 0, written_ = 0;
};

/// A panel file, checked: every matrix lies in the mapped bytes.
class PanelFile {
 public:
  /// Errors: as map_file; corrupt_file where header and file size contradict each other; unsupported for another version
  /// of the format.
  explicit PanelFile(const std::string& path);
  PanelFile(const std::string& path, FileBytes bytes);

  const std::string& path() const { return path_; }
  const PanelFileHeader& header() const { return header_; }
  /// Its panels, aligned to 64 bytes in a mapped file; they keep the mapping.
  std::shared_ptr<const uint8_t> panels(const PackedMatrix& matrix) const {
    return {bytes_.owner, bytes_.data + matrix.offset};
  }
  /// Brings [offset, offset + bytes) into memory. False: the file cannot be read there.
  [[nodiscard]] bool populate(int64_t offset, int64_t bytes) const noexcept {
    return populate_pages(bytes_, bytes_.data + offset, static_cast<size_t>(bytes));
  }
  int64_t data_begin() const { return data_begin_; }
  int64_t file_bytes() const { return static_cast<int64_t>(bytes_.size); }

 private:
  std::string path_;
  FileBytes bytes_;
  PanelFileHeader header_;
  int64_t data_begin_ = 0;
};

}  // namespace liuli
