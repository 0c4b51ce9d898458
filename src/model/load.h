// From a file to a model ready to run.
#pragma once
#include <functional>
#include <memory>

#include "core/thread_pool.h"
#include "model/weights.h"

namespace liuli {

/// How matrices are held: panels to run fast, or the file's mapped rows (exact runs, inspecting).
enum class WeightForm { panels, file_rows };

/// Panels are packed whatever lies beside the model.
constexpr const char* kNoPanelFile = "none";

struct LoadOptions {
  WeightForm form = WeightForm::panels;
  /// Called with bytes done and bytes in total while panels are built. May throw to cancel.
  std::function<void(int64_t, int64_t)> progress = {};
  /// Of the panels form: a panel file, which must fit; "" the one beside the model if it fits; kNoPanelFile.
  std::string panel_file = "";
};

/// Reads configuration and weights. Errors: unsupported (architecture, keys or tensors that Liuli does not
/// know), corrupt_file (missing tensor, wrong shape, values that contradict each other), out_of_memory; of a named panel
/// file as PanelFile, and invalid_argument where it is not of this model.
Model load_model(std::shared_ptr<WeightSource> source, ThreadPool& pool, const LoadOptions& options);

struct PackOptions {
  std::string path = "";  ///< "": beside the model
  std::function<void(const std::string& path, int64_t bytes)> start =
      {};                                               ///< before anything is packed; may throw
  std::function<void(int64_t, int64_t)> progress = {};  ///< as LoadOptions::progress
};

/// Writes the panel file that load_model maps later. Holds little more in memory than some 64 MiB of it.
/// Errors: as load_model; invalid_argument (a source without files; an output that is the model); io_error.
void write_panel_file(const WeightSource& source, ThreadPool& pool, const PackOptions& options);

/// A model over weights in training (Naming::trained), which it uses in place: what changes there changes the model.
Model bind_trained_model(const ModelConfig& config, std::shared_ptr<WeightSource> weights);

/// What a user should know about what was loaded, a line each: "20 tensors of layer 61, …, are not used".
std::vector<std::string> load_notices(const Model& model);

/// Only the configuration, with the same checks on keys.
ModelConfig read_model_config(const WeightSource& source);

}  // namespace liuli
