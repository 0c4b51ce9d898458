// Direct logit attribution over the values of one run.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "liuli/attribution.h"
#include "model/transformer.h"

namespace liuli {

/// Values of one run by name, as traced: rows of one position have no token axis.
class RunValues {
 public:
  explicit RunValues(std::vector<TracedTensor> tensors);
  /// Errors: unsupported, naming a value that the run does not show.
  const std::vector<float>& of(const std::string& name) const;

 private:
  std::map<std::string, std::vector<float>> values_;
};

/// Errors: unsupported where the last stream is not a sum of parts (post-norm, encoder-decoders), `work` being what was
/// wanted.
void require_additive_stream(const Model& model, const char* work);

/// The names of what is added to the stream before the first block.
std::vector<std::string> embedding_terms(const ModelConfig& config);

/// What to trace for an attribution at `position`.
std::vector<std::string> attribution_points(const Model& model, AttributeBy by, int position);

/// The attribution itself; fills everything but run_logit and product_class.
AttributionReport attribute_values(const Model& model, ThreadPool& pool, const RunValues& values,
                                   const AttributionSettings& settings);

}  // namespace liuli
