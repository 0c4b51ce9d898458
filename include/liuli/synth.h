// Random models of true size: to measure speed and memory without anybody's weights.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace liuli {

struct SynthSettings {
  std::string model;            ///< a built-in configuration (known_model_names)
  std::string type = "q4_k_m";  ///< a mix or a stored type, as quantisers name them
  std::string output;           ///< the GGUF file to write
  int64_t n_layers = 0;         ///< 0: all; fewer: a slice of full width
  int64_t n_experts = 0;        ///< 0: all
  int64_t context = 0;          ///< what the file claims to be trained for; 0: the model's own
  uint64_t seed = 0;
  int threads = 0;  ///< 0: every usable CPU; the bytes do not depend on it
  std::function<void(int64_t done, int64_t total)> on_progress;  ///< bytes; may throw to stop
};

struct SynthReport {
  struct Type {
    std::string type;
    int64_t tensors = 0, bytes = 0;
  };
  std::string title;
  int64_t n_layers = 0, n_experts = 0, parameters = 0, file_bytes = 0;
  std::vector<Type> types;  ///< in order of appearance
};

/// Writes a GGUF file of the model's shape: weights N(0, 1/d_in), so that products keep a vector's size and logits have a
/// deviation of about 1; norms near 1, biases near 0; a made-up byte-level vocabulary of the right size.
/// The same settings give the same bytes; general.description says that they are random.
///
/// Errors: not_found (no such model or type); invalid_argument (more layers or experts than there are, experts that do
/// not fill the groups); unsupported (a model without a GGUF layout, an encoder); io_error (the disk lacks the space).
SynthReport write_synthetic_model(const SynthSettings& settings);

}  // namespace liuli
