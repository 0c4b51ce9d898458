// Writes GGUF files, version 3, little-endian: typed keys, tensors announced first, then their bytes in order.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/output_file.h"
#include "formats/weight_source.h"

namespace liuli {

/// Keys in the order in which they were first set; setting one again replaces its value and type.
///
/// Errors: invalid_argument for an empty key, one above 65535 bytes, or one with a NUL.
class GgufKeys {
 public:
  GgufKeys& u16(std::string_view key, uint16_t value);
  GgufKeys& u32(std::string_view key, uint32_t value);
  GgufKeys& i32(std::string_view key, int32_t value);
  GgufKeys& u64(std::string_view key, uint64_t value);
  GgufKeys& f32(std::string_view key, float value);
  GgufKeys& boolean(std::string_view key, bool value);
  GgufKeys& text(std::string_view key, std::string_view value);
  GgufKeys& u32s(std::string_view key, const std::vector<uint32_t>& values);
  GgufKeys& u8s(std::string_view key, const std::vector<uint8_t>& values);
  GgufKeys& i32s(std::string_view key, const std::vector<int32_t>& values);
  GgufKeys& f32s(std::string_view key, const std::vector<float>& values);
  GgufKeys& booleans(std::string_view key, const std::vector<bool>& values);
  GgufKeys& texts(std::string_view key, const std::vector<std::string>& values);

  /// Carries a key of a GGUF file over, bit for bit; nothing happens if the file lacks it.
  /// Errors: invalid_argument when the source is not GGUF (its keys have no GGUF type to keep).
  GgufKeys& copy(const Metadata& source, std::string_view key);
  GgufKeys& copy_all(const Metadata& source);  ///< every key, in file order

  bool has(std::string_view key) const;
  void remove(std::string_view key);
  size_t size() const { return records_.size(); }

 private:
  friend class GgufWriter;
  struct Record {
    std::string key, value;  ///< value: u32 type, then the bytes as the file holds them
  };

  GgufKeys& set(std::string_view key, std::string value);
  std::vector<Record>::const_iterator at(std::string_view key) const;

  std::vector<Record> records_;
};

/// What a writer announces about one tensor.
struct GgufTensorSpec {
  std::string name;  ///< 1 … 63 bytes
  DType type;        ///< rows are whole blocks
  std::vector<int64_t>
      shape;  ///< 1 … 4 dimensions in our order, the last one contiguous: [n_experts, d_out, d_in]

  int64_t bytes() const;
};

/// Writes tensors in the announced order; a value never has to be in memory longer than its append() call.
/// Padding to general.alignment (32 unless the keys say otherwise) comes by itself, after the last tensor too:
/// other readers demand exactly this layout. The file appears under its name on finish().
///
/// Errors: invalid_argument (a name or shape the format cannot hold, a name twice, more or fewer bytes than
/// announced, a general.alignment that is no power of two ≥ 8); io_error.
class GgufWriter {
 public:
  GgufWriter(const std::string& path, const GgufKeys& keys, std::vector<GgufTensorSpec> tensors);

  /// The next bytes of the data: a part of a tensor, or several tensors back to back.
  void append(const void* data, size_t bytes);
  void finish();

  /// The size the file will have: for a look at the disk before opening anything. `path` is for messages.
  static int64_t file_bytes(const std::string& path, const GgufKeys& keys,
                            const std::vector<GgufTensorSpec>& tensors);

  /// A whole file of these keys and no tensors, in memory: for reading back what a file will say.
  static std::string without_tensors(const std::string& path, const GgufKeys& keys);

 private:
  /// Everything before the data, padded; gives back the alignment that the keys ask for.
  static std::string header(const std::string& path, const GgufKeys& keys,
                            const std::vector<GgufTensorSpec>& tensors, int64_t& alignment);
  void end_tensor();

  std::vector<GgufTensorSpec> tensors_;
  int64_t alignment_ = 0;
  size_t current_ = 0;   ///< tensor that the next byte belongs to
  int64_t written_ = 0;  ///< bytes of it so far
  OutputFile file_;
};

}  // namespace liuli
