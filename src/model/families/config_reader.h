// Reads a family's keys from a file's metadata and remembers which: a key nobody read could have changed the
// arithmetic.
#pragma once
#include <optional>
#include <set>
#include <string>

#include "formats/weight_source.h"
#include "liuli/config.h"

namespace liuli {

/// A key as GGUF (without "<architecture>.") and as config.json spell it; null where that kind of file has no such key.
/// Alternatives of config.json are separated by '|' and tried in turn.
struct Key {
  const char* gguf;
  const char* hugging_face;
};

class ConfigReader {
 public:
  ConfigReader(const WeightSource& source, std::string architecture);

  Naming naming() const { return source_.naming(); }
  bool is_gguf() const { return naming() == Naming::gguf; }
  bool has(Key key);

  /// Positive integer within [1, max]. Errors: corrupt_file for a missing key, a wrong type or a value out of
  /// range.
  int64_t count(Key key, int64_t max);
  int64_t count_or(Key key, int64_t fallback, int64_t max);
  /// As count_or, but 0 is a value too.
  int64_t count_or_zero(Key key, int64_t fallback, int64_t max);
  /// A finite number ≥ 0.
  double number(Key key);
  double number_or(Key key, double fallback);
  bool flag_or(Key key, bool fallback);
  std::string text_or(Key key, const std::string& fallback);
  std::vector<std::string> texts_or_none(Key key);
  std::vector<int64_t> integers_or_none(Key key);
  /// A per-layer array is accepted when all layers agree; Errors: unsupported otherwise.
  int64_t uniform_count(Key key, int64_t max, std::optional<int64_t> fallback = std::nullopt);
  /// "hidden_act" and its other spellings; GGUF files leave it to the family.
  Activation activation_or(Activation fallback);

  /// What every decoder-only family shares: name, sizes, heads, head_dim, eps, context. `d_model` etc. are
  /// checked to fit. embedding: the name of the token embedding, whose rows are the vocabulary.
  struct Common {
    NormKind norm = NormKind::rms;
    const char* embedding = "model.embed_tokens.weight";  ///< its name in a Hugging Face folder
    const char* output = "lm_head.weight";
    bool latent = false;  ///< head_dim is not d_model / n_heads nor any stated one: the family sets it
  };
  ModelConfig common(const char* family);
  ModelConfig common(const char* family, const Common& options);
  /// RoPE of all layers, or of one kind of layer where config.json tells them apart ("full_attention"): theta, and
  /// scaling none, linear, llama3 or yarn; others are refused by name.
  RopeConfig rope(int64_t head_dim, const char* layer_kind = nullptr);
  /// The divisors tensor of llama3 scaling, if the file has one.
  std::vector<float> rope_divisors(int64_t pairs);

  const TensorInfo* find_tensor(const char* gguf, const char* hugging_face) const;
  /// Errors: unsupported, naming the first key of this architecture that nobody read and that is not known to
  /// be harmless.
  void refuse_unread() const;
  /// Errors: unsupported: `what` of the key named.
  [[noreturn]] void refuse(Key key, const std::string& what) const;
  [[noreturn]] void corrupt(Key key, const std::string& what) const;

 private:
  void read_vocabulary(const Common& options, ModelConfig& config);
  std::string present(Key key);
  std::string shown(Key key) const;
  void read_scaling(RopeConfig& rope, const std::string& section, int64_t context);
  void read_gguf_scaling(RopeConfig& rope);

  const WeightSource& source_;
  std::string architecture_;
  std::set<std::string> read_;
};

}  // namespace liuli
