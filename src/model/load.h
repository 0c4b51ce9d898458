// From a file to a model ready to run.
#pragma once
#include <functional>
#include <memory>

#include "core/thread_pool.h"
#include "model/weights.h"

namespace liuli {

/// How matrices are held: panels to run fast, or the file's mapped rows (exact runs, inspecting).
enum class WeightForm { panels, file_rows };

struct LoadOptions {
  WeightForm form = WeightForm::panels;
  /// Called with bytes done and bytes in total while panels are built. May throw to cancel.
  std::function<void(int64_t, int64_t)> progress;
};

/// Reads configuration and weights. Errors: unsupported (architecture, keys or tensors that Liuli does not
/// know), corrupt_file (missing tensor, wrong shape, values that contradict each other), out_of_memory.
Model load_model(std::shared_ptr<WeightSource> source, ThreadPool& pool, const LoadOptions& options);

/// A model over weights in training (Naming::trained), which it uses in place: what changes there changes the model.
Model bind_trained_model(const ModelConfig& config, std::shared_ptr<WeightSource> weights);

/// What a user should know about what was loaded, a line each: "20 tensors of layer 61, …, are not used".
std::vector<std::string> load_notices(const Model& model);

/// Only the configuration, with the same checks on keys.
ModelConfig read_model_config(const WeightSource& source);

}  // namespace liuli
