// The typed keys of a GGUF file, kept as views into the file's bytes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/byte_cursor.h"
#include "formats/weight_source.h"

namespace liuli {

/// GGUF's value types, by id.
enum class GgufType : uint8_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

/// A vocabulary of 256 k strings stays in the mapping: an entry is 40 bytes whatever it holds, and arrays are
/// converted when a getter asks. Keys are sorted once, which also finds duplicates.
class GgufMetadata final : public Metadata {
 public:
  /// Reads `count` records at the cursor. `path` is kept for messages; the bytes must outlive this object.
  GgufMetadata(std::string path, ByteCursor& cursor, uint64_t count);

  std::vector<std::string> keys() const override;  ///< in file order
  bool has(std::string_view key) const override { return find(key) != nullptr; }
  std::optional<int64_t> integer(std::string_view key) const override;
  std::optional<double> number(std::string_view key) const override;
  std::optional<bool> boolean(std::string_view key) const override;
  std::optional<std::string> text(std::string_view key) const override;
  std::optional<std::vector<int64_t>> integers(std::string_view key) const override;
  std::optional<std::vector<float>> numbers(
      std::string_view key) const override;  ///< arrays of f32 or f64 only
  std::optional<std::vector<bool>> booleans(std::string_view key) const override;
  std::optional<std::vector<std::string>> texts(std::string_view key) const override;
  bool is_array(std::string_view key) const override;
  std::string type_name(std::string_view key) const override;
  std::string json(std::string_view key, size_t limit) const override;
  /// The record as stored, without its key: u32 type and value. For carrying a key over unchanged; nothing if absent.
  std::optional<std::string> record(std::string_view key) const;

 private:
  /// One record. A single value is an array of one element that is not marked as an array.
  struct Entry {
    const char* key;
    uint32_t key_bytes;
    GgufType element;
    bool is_array;
    uint64_t count;
    const uint8_t* values;  ///< elements back to back; strings with their lengths

    std::string_view name() const { return {key, key_bytes}; }
    std::string type_text() const;
  };

  static Entry read_entry(ByteCursor& cursor);
  void sort_keys();
  const Entry* find(std::string_view key) const;
  const Entry* array(std::string_view key, const char* wanted) const;
  int64_t integer_at(const Entry& entry, uint64_t index) const;
  [[noreturn]] void wrong_type(const Entry& entry, const char* wanted) const;

  std::string path_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> sorted_;  ///< indices into entries_, by key
};

}  // namespace liuli
