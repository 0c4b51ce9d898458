// A run's state on disk: a model folder that anybody can load, and beside it what only training needs.
//
//   step-000120/  model.safetensors config.json tokenizer.json …   as every Hugging Face program reads them
//                 adapter_model.safetensors adapter_config.json    instead of the weights, when adapters learn
//                 optimizer.safetensors                            moments; values a file's form would round
//                 run.json                                         settings, step, best loss
//
// It is written under another name, forced to the disk and renamed: a folder called step-… is complete, whatever
// happened to the process or the machine.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "train/lora.h"
#include "train/optimizer.h"

namespace liuli {

/// What a checkpoint holds and restores.
struct CheckpointParts {
  Parameters& weights;
  Optimizer& optimizer;
  Lora* lora = nullptr;  ///< then its adapters are saved in place of the weights
};

/// Text files by name: config.json, tokenizer files, run.json.
using TextFiles = std::map<std::string, std::string>;

/// Writes FOLDER/step-NNNNNN; one of the same name is replaced. Errors: io_error (disk full, …): then nothing of it is
/// left and older checkpoints are as they were.
void write_checkpoint(const std::string& folder, const CheckpointParts& parts, const TextFiles& texts);

/// A model folder by itself, without what only training needs: the weights as they are, adapters merged. Appears whole
/// or not at all. Errors: io_error.
void write_model_folder(const std::string& path, const Parameters& weights, const TextFiles& texts);

/// Puts weights (or adapters), moments and the number of steps back. Errors: corrupt_file, naming what is missing or of
/// another shape.
void read_checkpoint(const std::string& path, const CheckpointParts& parts);

/// The steps there are complete checkpoints of, ascending.
std::vector<int64_t> list_checkpoints(const std::string& folder);
std::string checkpoint_path(const std::string& folder, int64_t step);
/// Removes all but the last `keep` and that of step `best` (−1: none), and what crashes left behind.
void remove_old_checkpoints(const std::string& folder, int64_t keep, int64_t best);

}  // namespace liuli
