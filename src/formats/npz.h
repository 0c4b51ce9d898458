// NumPy's archives: a ZIP file of .npy files, here always stored, never compressed.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/output_file.h"
#include "formats/npy.h"

namespace liuli {

/// Writes f32 arrays at places known beforehand, in any order, so that none has to be in memory; numpy.load reads them.
/// Every entry has 64-bit sizes, as numpy.savez writes them. `metadata` becomes the array "__metadata__": JSON as bytes.
/// Errors: io_error; invalid_argument (a target that is no regular file, a name twice, values outside an array).
class NpzWriter {
 public:
  struct Spec {
    std::string name;
    std::vector<int64_t> shape;
  };
  NpzWriter(const std::string& path, const std::vector<Spec>& specs,
            const std::map<std::string, std::string>& metadata = {});
  /// n values of one array at an index within it.
  void write_at(size_t array, int64_t first, const float* values, int64_t n);
  /// Adds the checksums (read back from the file) and the directory; the file appears.
  void finish();

 private:
  struct Entry {
    std::string file_name, header;  ///< "blocks.0.attn.z.npy" and the array's own header
    int64_t at = 0;                 ///< of the local header in the file
    int64_t n_values = 0, bytes = 0;
    int64_t data_at() const;  ///< of the values
  };
  uint32_t checksum(const Entry& entry);
  void add_entry(const std::string& name, const std::string& header, int64_t data_bytes);

  OutputFile file_;
  std::vector<Entry> entries_;
  int64_t end_ = 0;
};

/// All arrays of an archive that read_npy can read, in the file's order; others (text) are left out.
/// Errors: as read_npy; unsupported for compressed entries.
std::vector<NpyArray> read_npz(const std::string& path);

}  // namespace liuli
