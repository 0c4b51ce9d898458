// Texts as vectors.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "liuli/config.h"

namespace liuli {

struct EmbedSettings {
  Pooling pooling = Pooling::unstated;  ///< unstated: the model's own
  std::optional<bool> normalise = {};   ///< to length 1; nothing: as the model's files say, else yes
  int max_tokens = 0;                   ///< longer texts are cut; 0: the model's own limit
  int batch_tokens = 1024;              ///< texts run together up to about so many tokens; changes no bit
  std::function<void(int64_t done, int64_t total)> on_progress = {};  ///< texts; may throw to stop
};

/// What an embedding run will do.
struct EmbedPlan {
  Pooling pooling = Pooling::mean;
  bool normalise = true;
  int max_tokens = 0;
};

struct Embedding {
  std::vector<float> values;  ///< [d_model]
  int tokens = 0;             ///< that were run
  bool cut = false;           ///< the text had more
};

const char* to_string(Pooling pooling);
/// "mean", "cls", "last". Errors: invalid_argument.
Pooling pooling_from(const std::string& name);
/// a·b / (‖a‖ ‖b‖); 0 where a vector is 0.
double cosine_similarity(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace liuli
