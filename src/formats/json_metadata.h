// Typed keys of a JSON object: a Hugging Face folder's config.json.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "formats/weight_source.h"

namespace liuli {

/// Nested objects are flattened, names joined by dots ("rope_scaling.factor"); null counts as absent; arrays stay
/// what they are. Whole numbers of 64 bits keep every digit. Keys come in alphabetical order.
///
/// Errors of parse() and the constructor: corrupt_file (not JSON, a key twice, also after flattening, absurd nesting).
class JsonMetadata final : public Metadata {
 public:
  /// `path` begins every message.
  static JsonMetadata parse(const std::string& path, std::string_view text);
  JsonMetadata(std::string path, const nlohmann::json& object);

  std::vector<std::string> keys() const override;
  bool has(std::string_view key) const override { return find(key) != nullptr; }
  std::optional<int64_t> integer(std::string_view key) const override;
  std::optional<double> number(std::string_view key) const override;
  std::optional<bool> boolean(std::string_view key) const override;
  std::optional<std::string> text(std::string_view key) const override;
  std::optional<std::vector<int64_t>> integers(std::string_view key) const override;
  std::optional<std::vector<float>> numbers(std::string_view key) const override;  ///< also of whole numbers
  std::optional<std::vector<bool>> booleans(std::string_view key) const override;
  std::optional<std::vector<std::string>> texts(std::string_view key) const override;
  bool is_array(std::string_view key) const override;
  std::string type_name(
      std::string_view key) const override;  ///< "integer", "string[2]", "array[3]" of several kinds
  std::string json(std::string_view key, size_t limit) const override;

 private:
  struct Entry {
    std::string key;
    nlohmann::json value;
  };

  void flatten(const std::string& prefix, const nlohmann::json& object, int depth);
  void sort_keys();
  const Entry* find(std::string_view key) const;
  [[noreturn]] void wrong_type(const Entry& entry, const char* wanted) const;
  int64_t integer_of(const Entry& entry, const nlohmann::json& value, const char* wanted) const;
  /// The items of an array, each through `convert(entry, item)`.
  template <class T, class F>
  std::optional<std::vector<T>> items(std::string_view key, const char* wanted, const F& convert) const;

  std::string path_;
  std::vector<Entry> entries_;  ///< sorted by key
};

}  // namespace liuli
