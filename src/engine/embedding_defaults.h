// What a model's own files say about turning its rows into one vector per text.
#pragma once
#include <string>

#include "formats/weight_source.h"
#include "liuli/config.h"

namespace liuli {

struct EmbeddingDefaults {
  Pooling pooling = Pooling::unstated;
  bool normalise = true;
  int64_t max_tokens = 0;  ///< 0: as many as the model has positions
  std::string problem;     ///< what the files demand and Liuli does not do; "": nothing
};

/// Reads the files that sentence-transformers writes beside a model: modules.json, the pooling module's config.json,
/// sentence_bert_config.json. Without them everything keeps its default. Errors: corrupt_file.
EmbeddingDefaults embedding_defaults(const WeightSource& source);

}  // namespace liuli
