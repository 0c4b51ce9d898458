// A model's panels in a file of their own: written once, mapped at every load.
#pragma once
#include <functional>
#include <string>

#include "core/thread_pool.h"
#include "formats/panel_file.h"
#include "model/weights.h"

namespace liuli {

/// MODEL.panels, beside the model: for a folder beside the folder, for a split model named after its first part.
std::string panel_path(const WeightSource& source);

/// Opens a panel file and makes sure that it holds what packing this model would build: the same files by size and time
/// of writing, the same list of matrices, and of each the first and the last panel, which are packed for comparison. So
/// no number has to be kept by hand that tells layouts or orders of rows apart. Rows that no file holds (BuiltRows) would
/// have to be built whole: of a model with such rows the file must come from this version of Liuli instead.
///
/// Errors: as PanelFile; invalid_argument where the file is not of this model.
PanelFile open_panels(const Model& model, const WeightSource& source, ThreadPool& pool,
                      const std::string& path);

/// Every matrix takes its panels from the file, which comes into memory at once. Errors: io_error.
void map_panels(Model& model, const PanelFile& file, ThreadPool& pool,
                const std::function<void(int64_t, int64_t)>& progress);

/// Packs matrix after matrix into a file; each lets go of its rows when it is done, and is empty then.
/// start: told how long the file will be. Errors: io_error, out_of_memory.
void write_panels(Model& model, const WeightSource& source, ThreadPool& pool, const std::string& path,
                  const std::function<void(const std::string&, int64_t)>& start,
                  const std::function<void(int64_t, int64_t)>& progress);

}  // namespace liuli
