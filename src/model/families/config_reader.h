// Reads a family's keys from a file's metadata and remembers which: a key nobody read could have changed the
// arithmetic.
#pragma once
#include <optional>
#include <set>
#include <string>

#include "formats/weight_source.h"
#include "liuli/config.h"

namespace liuli {

class ConfigReader {
 public:
  /// Keys are read as "<architecture>.<key>".
  ConfigReader(const WeightSource& source, std::string architecture);

  /// Positive integer within [1, max]. Errors: corrupt_file for a missing key, a wrong type or a value out of
  /// range.
  int64_t count(const std::string& key, int64_t max);
  int64_t count_or(const std::string& key, int64_t fallback, int64_t max);
  /// A finite number ≥ 0.
  double number(const std::string& key);
  double number_or(const std::string& key, double fallback);
  std::string text_or(const std::string& key, const std::string& fallback);
  /// A per-layer array is accepted when all layers agree; Errors: unsupported otherwise.
  int64_t uniform_count(const std::string& key, int64_t max, std::optional<int64_t> fallback = std::nullopt);

  /// What every decoder-only family shares: name, sizes, heads, head_dim, eps, context. `d_model` etc. are
  /// checked to fit.
  ModelConfig common(const char* family, NormKind norm = NormKind::rms);
  /// "rope.*": theta, scaling none or linear; others are refused by name.
  RopeConfig rope(int64_t head_dim);
  /// The divisors tensor of llama3 scaling, if the file has one.
  std::vector<float> rope_divisors(int64_t pairs);

  bool has_tensor(const std::string& name) const { return source_.find(name) != nullptr; }

  /// Errors: unsupported, naming the first key of this architecture that nobody read and that is not known to
  /// be harmless.
  void refuse_unread() const;

 private:
  std::string full(const std::string& key);
  [[noreturn]] void corrupt(const std::string& key, const std::string& what) const;

  const WeightSource& source_;
  std::string architecture_;
  std::set<std::string> read_;
};

}  // namespace liuli
